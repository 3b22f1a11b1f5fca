/* SPDX-License-Identifier: BSD-2-Clause */
/* The configuration file: read whole, and its groups. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <control/setup_keys.h>
#include <control/setup_text.h>

static int take_kind(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	const char *text;
	int rc = reader_text(r, s, &text);

	(void)object;
	(void)key;
	if (rc)
		return rc;
	rc = setup_handler_parse(text, &setup_of(r)->handler, r->err);
	return rc ? reader_wrong_there(r, s, rc) : 0;
}

static int take_entries(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	struct bridge_config *bridge = object;
	int rc = reader_number(r, s, object, key);

	if (!rc && (bridge->entries & (bridge->entries - 1)))
		return reader_wrong(r, s, -EINVAL, "entries = %u: it is a power of two",
				    bridge->entries);
	return rc;
}

static int take_handler(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
#define BRIDGE(field) offsetof(struct bridge_config, field)
	static const struct key keys[] = {
		{"kind", take_kind},
		{"entries", take_entries, BRIDGE(entries), 2, 1 << 20},
		{"ageing", reader_number, BRIDGE(ageing_seconds), 1, 1000000},
		{"vlan_filtering", reader_bool, BRIDGE(vlan_filtering)},
	};
#undef BRIDGE

	(void)object;
	(void)key;
	return reader_group(r, s, keys, sizeof(keys) / sizeof(*keys), &setup_of(r)->bridge);
}

static int root_read(struct reader *r, config_t *config)
{
	static const struct key keys[] = {
		{"engine", setup_take_engine},
		{"handler", take_handler},
		{"ports", setup_take_ports},
	};

	return reader_group(r, config_root_setting(config), keys, sizeof(keys) / sizeof(*keys),
			    NULL);
}

int setup_text_read(struct setup *setup, const char *path, const char *text, struct error *err)
{
	struct error own;
	struct reader r = {.arg = setup, .path = path, .err = err ? err : &own};
	config_t config;
	int rc = setup_text_check(&r, text);

	if (rc)
		return rc;
	config_init(&config);
	if (config_read_string(&config, text))
		rc = root_read(&r, &config);
	else
		rc = error_set(r.err, -EINVAL, "%.120s:%d: %s%s", path, config_error_line(&config),
			       config_error_text(&config),
			       strcmp(config_error_text(&config), "syntax error")
				       ? ""
				       : " (texts are in quotes, and ';' ends a key)");
	config_destroy(&config);
	return rc;
}

/* *text is the caller's to free. */
static int file_load(const char *path, char **text, struct error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	ssize_t n = 0;
	int rc = 0;

	if (fd < 0)
		return error_set(err, -errno, "%s: %s", path, strerror(errno));
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		rc = error_set(err, -EINVAL, "%s: not a file", path);
	} else if (st.st_size > SETUP_FILE_MAX) {
		rc = error_set(err, -EFBIG, "%s: longer than %u bytes, so no configuration", path,
			       SETUP_FILE_MAX);
	} else if (!(*text = malloc(SETUP_FILE_MAX + 1))) {
		rc = error_set(err, -ENOMEM, "%s: no memory", path);
	} else {
		n = read(fd, *text, SETUP_FILE_MAX);
		if (n < 0)
			rc = error_set(err, -errno, "%s: %s", path, strerror(errno));
	}
	close(fd);
	if (rc || n < 0)
		return rc;
	(*text)[n] = '\0';
	if (strlen(*text) != (size_t)n)
		return error_set(err, -EINVAL, "%s: not a text file", path);
	return 0;
}

int setup_file_read(struct setup *setup, const char *path, struct error *err)
{
	char *text = NULL;
	int rc = file_load(path, &text, err);

	if (!rc)
		rc = setup_text_read(setup, path, text, err);
	free(text);
	return rc;
}
