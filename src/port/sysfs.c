/* SPDX-License-Identifier: BSD-2-Clause */
#include "port/sysfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

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

int sysfs_interface_open(const char *interface, bool own)
{
	int root = sysfs_mount(), dir, code;
	char path[64];

	if (root < 0 && own) {
		root = open("/sys", O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (root < 0)
			return -errno;
	}
	if (root < 0)
		return root;
	snprintf(path, sizeof(path), "class/net/%s", interface);
	dir = openat(root, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	code = -errno;
	close(root);
	return dir < 0 ? code : dir;
}

int sysfs_read(int dir, const char *file, char *text, size_t size)
{
	int fd = openat(dir, file, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);
	int code = n < 0 ? -errno : 0;

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return code;
}

int sysfs_write(int dir, const char *file, const char *text)
{
	int fd = openat(dir, file, O_WRONLY | O_CLOEXEC);
	ssize_t size = (ssize_t)strlen(text);
	int code = fd < 0 || write(fd, text, (size_t)size) != size ? -errno : 0;

	if (fd >= 0)
		close(fd);
	return code;
}
