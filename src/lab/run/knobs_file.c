/* SPDX-License-Identifier: BSD-2-Clause */
/* Knobs that are files: of receive queues in sysfs, of interrupts and the system in /proc. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <napier/machine.h>
#include <port/sysfs.h>

#include "lab/run/knob.h"

static int file_error(const struct knob_site *site, const struct knob *knob, const char *file,
		      int code, struct error *err)
{
	return error_set(err, code, "%s%s%s: %s: %s", knob->key, site->interface[0] ? " of " : "",
			 site->interface, file, strerror(-code));
}

/* The kernel writes masks of CPUs in words of 32 bits, highest first. */
static void mask_format(const char *list, char *text, size_t size)
{
	struct cpuset cpus = {0};
	unsigned words = 1;
	int n = 0;

	if (strcmp(list, "none") != 0)
		cpuset_parse(list, &cpus);
	for (unsigned cpu = 0; cpu < CPU_MAX; cpu++)
		if (cpuset_has(&cpus, cpu))
			words = cpu / 32 + 1;
	for (unsigned word = words; word-- > 0;) {
		uint32_t bits = (uint32_t)(cpus.bits[word / 2] >> (word % 2 * 32));

		n += snprintf(text + n, size - (size_t)n, n ? ",%08x" : "%x", bits);
	}
}

/* In the order of their numbers, since the first one's value is taken for that of all. */
static int numbers_compare(const void *a, const void *b)
{
	unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;

	return (x > y) - (x < y);
}

/* The numbers N of entries prefixN in a directory; negative: there is no such directory. */
static int numbers_list(int at, const char *path, const char *prefix, unsigned *out, unsigned max)
{
	int fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	size_t length = strlen(prefix);
	struct dirent *entry;
	unsigned n = 0;

	if (!dir) {
		int code = -errno;

		if (fd >= 0)
			close(fd);
		return code;
	}
	while (n < max && (entry = readdir(dir))) {
		const char *number = entry->d_name + length;

		if (!strncmp(entry->d_name, prefix, length) && *number >= '0' && *number <= '9')
			out[n++] = (unsigned)strtoul(number, NULL, 10);
	}
	closedir(dir);
	qsort(out, n, sizeof(*out), numbers_compare);
	return (int)n;
}

/* Reads one file of each part; what is there is made canonical by `mask`: it is one in hex. */
static int parts_read(const struct knob_site *site, const struct knob *knob, int dir,
		      const char *format, const unsigned *ids, unsigned n, bool mask,
		      struct knob_state *out, struct error *err)
{
	memset(out, 0, sizeof(*out));
	out->all = n;
	for (unsigned i = 0; i < n; i++) {
		char file[64], text[KNOB_VALUE_MAX + 2] = "0x", value[KNOB_VALUE_MAX];
		int rc;

		snprintf(file, sizeof(file), format, ids[i], knob->file);
		rc = sysfs_read(dir, file, text + 2, sizeof(text) - 2);
		if (rc)
			return file_error(site, knob, file, rc, err);
		rc = knob_parse(knob, mask ? text : text + 2, value, err);
		if (rc)
			return rc;
		if (!i)
			strcpy(out->base, value);
		rc = knob_state_part(out, knob, ids[i], value, err);
		if (rc)
			return rc;
	}
	return 0;
}

enum { QUEUES_MAX = 1024 };

static int queues_list(const struct knob_site *site, const struct knob *knob,
		       unsigned ids[QUEUES_MAX], struct error *err)
{
	int n = numbers_list(site->dir, "queues", "rx-", ids, QUEUES_MAX);
	char file[64];

	if (n > 0) {
		snprintf(file, sizeof(file), "queues/rx-%u/%s", ids[0], knob->file);
		if (!faccessat(site->dir, file, F_OK, 0))
			return n;
	}
	return error_set(err, -EOPNOTSUPP, "%s of %s: this kernel has it not (CONFIG_RPS)",
			 knob->key, site->interface);
}

static int queues_read(const struct knob_site *site, const struct knob *knob,
		       struct knob_state *out, struct error *err)
{
	unsigned ids[QUEUES_MAX];
	int n = queues_list(site, knob, ids, err);

	if (n < 0)
		return n;
	return parts_read(site, knob, site->dir, "queues/rx-%u/%s", ids, (unsigned)n,
			  knob->type == KNOB_CPUS, out, err);
}

static int queues_write(const struct knob_site *site, const struct knob *knob,
			const struct knob_state *state, struct error *err)
{
	unsigned ids[QUEUES_MAX];
	int n = queues_list(site, knob, ids, err);

	for (int i = 0; i < n; i++) {
		const char *value = knob_state_of(state, ids[i]);
		char file[64], mask[CPU_MAX / 32 * 9 + 1];
		int rc;

		snprintf(file, sizeof(file), "queues/rx-%u/%s", ids[i], knob->file);
		if (knob->type == KNOB_CPUS)
			mask_format(value, mask, sizeof(mask));
		rc = sysfs_write(site->dir, file, knob->type == KNOB_CPUS ? mask : value);
		if (rc == -EOVERFLOW || rc == -EINVAL)
			return error_set(err, -EINVAL, "%s of %s: the machine has not all of %s",
					 knob->key, site->interface, value);
		if (rc)
			return file_error(site, knob, file, rc, err);
	}
	return n < 0 ? n : 0;
}

const struct knob_ops knob_queue_ops = {
	.of_interface = true,
	.read = queues_read,
	.write = queues_write,
};

/*
 * In /proc/interrupts a line's last word is who has it: "eth0-TxRx-0", or by the device that the
 * interface stands on, "virtio3-input.0". One without a number after it is not of a queue.
 */
static unsigned irqs_by_name(const char *name, unsigned *out, unsigned max)
{
	FILE *file = fopen("/proc/interrupts", "re");
	size_t length = strlen(name), size = 0;
	char *line = NULL;
	unsigned n = 0;

	while (file && n < max && getline(&line, &size, file) > 0) {
		char *end, *word, *colon = strchr(line, ':');
		unsigned irq = (unsigned)strtoul(line, &end, 10);

		if (end != colon || end == line)
			continue;
		line[strcspn(line, "\n")] = '\0';
		word = strrchr(line, ' ');
		if (word && !strncmp(word + 1, name, length) &&
		    (!word[1 + length] || strchr("-@:.", word[1 + length])) &&
		    !strstr(word, "-config"))
			out[n++] = irq;
	}
	free(line);
	if (file)
		fclose(file);
	return n;
}

/* Each once: those that the NAPIs name, else by the names of its device, else all the device's. */
static int irqs_list(const struct knob_site *site, unsigned *out, unsigned max)
{
	struct napi_seen napi[NAPI_SEEN_MAX];
	int napis = site->netlink.fd < 0
			    ? 0
			    : napi_netlink_list(&site->netlink, site->ifindex, napi, NAPI_SEEN_MAX);
	char device[256];
	unsigned n = 0;
	ssize_t size;
	int all;

	for (int i = 0; i < napis && i < NAPI_SEEN_MAX && n < max; i++)
		if (napi[i].has[NAPI_IRQ])
			out[n++] = (unsigned)napi[i].value[NAPI_IRQ];
	size = readlinkat(site->dir, "device", device, sizeof(device) - 1);
	if (size > 0) {
		device[size] = '\0';
		if (!n)
			n = irqs_by_name(site->interface, out, max);
		if (!n && strrchr(device, '/'))
			n = irqs_by_name(strrchr(device, '/') + 1, out, max);
		if (!n) {
			all = numbers_list(site->dir, "device/msi_irqs", "", out, max);
			n = all > 0 ? (unsigned)all : 0;
		}
	}
	qsort(out, n, sizeof(*out), numbers_compare);
	for (unsigned i = 1; i < n;) {
		if (out[i] != out[i - 1]) {
			i++;
			continue;
		}
		memmove(out + i, out + i + 1, (n - i - 1) * sizeof(*out));
		n--;
	}
	return (int)n;
}

static int irqs_found(const struct knob_site *site, const struct knob *knob,
		      unsigned ids[QUEUES_MAX], struct error *err)
{
	int n = irqs_list(site, ids, QUEUES_MAX);

	if (n)
		return n;
	return error_set(err, -EOPNOTSUPP,
			 "%s of %s: it has no interrupt (a veth has none: set "
			 "rps_cpus)",
			 knob->key, site->interface);
}

static int irqs_read(const struct knob_site *site, const struct knob *knob, struct knob_state *out,
		     struct error *err)
{
	unsigned ids[QUEUES_MAX];
	int n = irqs_found(site, knob, ids, err);

	if (n < 0)
		return n;
	return parts_read(site, knob, -1, "/proc/irq/%u/smp_affinity_list", ids, (unsigned)n, false,
			  out, err);
}

static int irqs_write(const struct knob_site *site, const struct knob *knob,
		      const struct knob_state *state, struct error *err)
{
	unsigned ids[QUEUES_MAX];
	int n = irqs_found(site, knob, ids, err);

	for (int i = 0; i < n; i++) {
		char file[64];
		int rc;

		snprintf(file, sizeof(file), "/proc/irq/%u/smp_affinity_list", ids[i]);
		rc = sysfs_write(-1, file, knob_state_of(state, ids[i]));
		if (rc)
			return file_error(site, knob, file, rc, err);
	}
	return n < 0 ? n : 0;
}

const struct knob_ops knob_irq_ops = {
	.of_interface = true,
	.read = irqs_read,
	.write = irqs_write,
};

static int system_error(const struct knob *knob, int code, struct error *err)
{
	if (code == -ENOENT)
		return error_set(err, -EOPNOTSUPP,
				 "%s: this kernel has it not%s%s (/proc/sys/net/core/%s)",
				 knob->key, knob->since ? "; it is there from Linux " : "",
				 knob->since ? knob->since : "", knob->file);
	return error_set(err, code, "%s: /proc/sys/net/core/%s: %s", knob->key, knob->file,
			 strerror(-code));
}

static int system_read(const struct knob_site *site, const struct knob *knob,
		       struct knob_state *out, struct error *err)
{
	char text[KNOB_VALUE_MAX];
	int rc = sysfs_read(site->dir, knob->file, text, sizeof(text));

	memset(out, 0, sizeof(*out));
	if (rc)
		return system_error(knob, rc, err);
	snprintf(out->base, sizeof(out->base), "%s", text);
	return 0;
}

static int system_write(const struct knob_site *site, const struct knob *knob,
			const struct knob_state *state, struct error *err)
{
	int rc = sysfs_write(site->dir, knob->file, state->base);

	if (rc == -EINVAL)
		return error_set(err, rc, "%s: the kernel does not take %s", knob->key,
				 state->base);
	return rc ? system_error(knob, rc, err) : 0;
}

const struct knob_ops knob_system_ops = {
	.read = system_read,
	.write = system_write,
};
