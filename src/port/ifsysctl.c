/* SPDX-License-Identifier: BSD-2-Clause */
#include "port/ifsysctl.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void path_make(char path[256], const char *group, const char *interface, const char *key)
{
	snprintf(path, 256, "/proc/sys/net/%s/%s/%s", group, interface, key);
}

int ifsysctl_read(const char *group, const char *interface, const char *key,
		  char value[IFSYSCTL_VALUE])
{
	char path[256];
	ssize_t n;
	int fd, rc = 0;

	path_make(path, group, interface, key);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, value, IFSYSCTL_VALUE - 1);
	if (n < 0)
		rc = -errno;
	close(fd);
	value[n > 0 ? n : 0] = '\0';
	value[strcspn(value, "\n")] = '\0';
	return rc;
}

int ifsysctl_write(const char *group, const char *interface, const char *key, const char *value)
{
	char path[256];
	int fd, rc = 0;

	path_make(path, group, interface, key);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, value, strlen(value)) < 0)
		rc = -errno;
	close(fd);
	return rc;
}

static bool key_copies(const char *key)
{
	static const char *const not [] = {"mtu", "addr_gen_mode", "mc_forwarding"};

	for (size_t i = 0; i < sizeof(not ) / sizeof(*not ); i++)
		if (!strcmp(key, not [i]))
			return false;
	return key[0] != '.';
}

static unsigned group_copy(const char *group, const char *from, const char *to, char failed[64])
{
	char path[256], value[IFSYSCTL_VALUE], there[IFSYSCTL_VALUE];
	struct dirent *entry;
	unsigned n = 0;
	DIR *dir;

	path_make(path, group, from, "");
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		const char *key = entry->d_name;

		/* One that cannot be read has not been set (stable_secret). */
		if (!key_copies(key) || ifsysctl_read(group, from, key, value))
			continue;
		if (!ifsysctl_read(group, to, key, there) && !strcmp(value, there))
			continue;
		if (!ifsysctl_write(group, to, key, value))
			continue;
		snprintf(failed, 64, "%.63s", key);
		n++;
	}
	if (dir)
		closedir(dir);
	return n;
}

unsigned ifsysctl_copy(const char *from, const char *to, char failed[64])
{
	static const char *const groups[] = {"ipv4/conf", "ipv6/conf", "ipv4/neigh", "ipv6/neigh"};
	unsigned n = 0;

	for (size_t i = 0; i < sizeof(groups) / sizeof(*groups); i++)
		n += group_copy(groups[i], from, to, failed);
	return n;
}
