/* SPDX-License-Identifier: BSD-2-Clause */
#include "port/irq_defer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <unistd.h>

const char *const irq_defer_names[IRQ_DEFER_VALUES] = {
	[IRQ_DEFER_COUNT] = "napi_defer_hard_irqs",
	[IRQ_DEFER_TIMEOUT] = "gro_flush_timeout",
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

int irq_defer_open(struct irq_defer *d, const char *interface, bool own)
{
	int root = sysfs_mount();
	char path[64];

	*d = IRQ_DEFER_CLOSED;
	if (root < 0 && own)
		root = open("/sys", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return root == -1 ? -errno : root;
	snprintf(path, sizeof(path), "class/net/%s", interface);
	d->dir = openat(root, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	close(root);
	return d->dir < 0 ? -errno : 0;
}

void irq_defer_close(struct irq_defer *d)
{
	if (d->dir >= 0)
		close(d->dir);
	*d = IRQ_DEFER_CLOSED;
}

int irq_defer_read(const struct irq_defer *d, uint64_t values[IRQ_DEFER_VALUES])
{
	for (int i = 0; i < IRQ_DEFER_VALUES; i++) {
		char text[32];
		int fd = openat(d->dir, irq_defer_names[i], O_RDONLY | O_CLOEXEC);
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

int irq_defer_write(const struct irq_defer *d, int which, uint64_t value)
{
	int fd = openat(d->dir, irq_defer_names[which], O_WRONLY | O_CLOEXEC);
	char text[32];
	int n = snprintf(text, sizeof(text), "%" PRIu64 "\n", value);
	int code = fd < 0 || write(fd, text, (size_t)n) != n ? -errno : 0;

	if (fd >= 0)
		close(fd);
	return code;
}

bool irq_defer_ours(const struct irq_defer *d)
{
	return d->ours[IRQ_DEFER_COUNT].asked || d->ours[IRQ_DEFER_TIMEOUT].asked;
}
