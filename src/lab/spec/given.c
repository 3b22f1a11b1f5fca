/* SPDX-License-Identifier: BSD-2-Clause */
/* Interfaces that are there. */
#include <errno.h>
#include <string.h>

#include "lab/spec/reading.h"

#define SPEC(field) offsetof(struct spec, field)
#define KEYS(list) list, sizeof(list) / sizeof(*list)

static int end_take(struct reader *r, config_setting_t *s, struct spec_end *end, bool address)
{
#define END(field) offsetof(struct spec_end, field), 0, sizeof(((struct spec_end *)0)->field)
	static const struct key keys[] = {
		{"interface", take_text, END(interface)},
		{"netns", take_text, END(netns)},
		{"address", take_text, END(address)},
	};
#undef END
	int rc = reader_group(r, s, KEYS(keys), end);

	if (rc)
		return rc;
	if (!end->interface[0])
		return reader_wrong(r, s, -EINVAL, "which interface? interface = \"eth1\";");
	if (address && !strchr(end->address, '/'))
		return reader_wrong(r, s, -EINVAL,
				    "its address, with the length of the prefix: address = "
				    "\"10.0.0.1/24\";");
	if (!address && end->address[0])
		return reader_wrong(r, s, -EINVAL, "what forwards needs no address here");
	return 0;
}

static int take_end(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	return end_take(r, s, (struct spec_end *)((char *)object + key->offset), true);
}

static int take_middle(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	struct spec *spec = object;
	int rc = 0;

	(void)key;
	if (!config_setting_is_list(s) || config_setting_length(s) != 2)
		return reader_wrong_type(
			r, s, "( { interface = \"eth2\"; }, { interface = \"eth3\"; } )");
	for (unsigned i = 0; i < 2 && !rc; i++)
		rc = end_take(r, config_setting_get_elem(s, i), &spec->middle[i], false);
	return rc;
}

int given_take(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	static const struct key keys[] = {
		{"client", take_end, SPEC(client)},
		{"server", take_end, SPEC(server)},
		{"middle", take_middle},
	};
	struct spec *spec = object;

	(void)key;
	spec->given = true;
	return reader_group(r, s, KEYS(keys), object);
}
