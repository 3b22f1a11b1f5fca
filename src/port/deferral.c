/* SPDX-License-Identifier: BSD-2-Clause */
#include "port/deferral.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <unistd.h>

const char *const deferral_names[DEFERRAL_VALUES] = {
	[DEFER_HARD_IRQS] = "napi_defer_hard_irqs",
	[GRO_FLUSH_TIMEOUT] = "gro_flush_timeout",
};

/* A mount of sysfs that is nowhere in the tree, of the calling thread's network namespace. */
static int sysfs_mount(void)
{
	int context = fsopen("sysfs", FSOPEN_CLOEXEC);
	int mount = -1, code;

	if (context < 0)
		return -errno;
	if (!fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		mount = fsmount(context, FSMOUNT_CLOEXEC, 0);
	code = -errno;
	close(context);
	return mount < 0 ? code : mount;
}

int deferral_open(struct deferral *d, const char *interface, bool own)
{
	int root = sysfs_mount();
	char path[64];

	*d = DEFERRAL_CLOSED;
	if (root < 0 && own)
		root = open("/sys", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return root == -1 ? -errno : root;
	snprintf(path, sizeof(path), "class/net/%s", interface);
	d->dir = openat(root, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	close(root);
	return d->dir < 0 ? -errno : 0;
}

void deferral_close(struct deferral *d)
{
	if (d->dir >= 0)
		close(d->dir);
	*d = DEFERRAL_CLOSED;
}

int deferral_read(const struct deferral *d, uint64_t values[DEFERRAL_VALUES])
{
	for (int i = 0; i < DEFERRAL_VALUES; i++) {
		char text[32];
		int fd = openat(d->dir, deferral_names[i], O_RDONLY | O_CLOEXEC);
		ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
		int code = n < 0 ? -errno : 0;

		if (fd >= 0)
			close(fd);
		if (code)
			return code;
		text[n] = '\0';
		values[i] = strtoull(text, NULL, 10);
	}
	return 0;
}

int deferral_write(const struct deferral *d, int which, uint64_t value)
{
	int fd = openat(d->dir, deferral_names[which], O_WRONLY | O_CLOEXEC);
	char text[32];
	int n = snprintf(text, sizeof(text), "%" PRIu64 "\n", value);
	int code = fd < 0 || write(fd, text, (size_t)n) != n ? -errno : 0;

	if (fd >= 0)
		close(fd);
	return code;
}

bool deferral_ours(const struct deferral *d)
{
	return d->ours[DEFER_HARD_IRQS].asked || d->ours[GRO_FLUSH_TIMEOUT].asked;
}
