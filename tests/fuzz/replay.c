/* SPDX-License-Identifier: BSD-2-Clause */
/* usage: fuzz-TARGET DIRECTORY: runs the target over every file there; what a build without
 * libFuzzer does with the corpus. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "fuzz.h"

#define INPUT_MAX (1u << 20)

static int file_replay(const char *path, uint8_t *data)
{
	FILE *file = fopen(path, "rb");
	size_t n;
	uint8_t *exact;

	if (!file)
		return -1;
	n = fread(data, 1, INPUT_MAX, file);
	fclose(file);
	/* In memory that ends where the input does, so that reading on is noticed. */
	exact = malloc(n + !n);
	for (size_t i = 0; exact && i < n; i++)
		exact[i] = data[i];
	if (exact)
		LLVMFuzzerTestOneInput(exact, n);
	free(exact);
	return exact ? 0 : -1;
}

int main(int argc, char **argv)
{
	uint8_t *data = malloc(INPUT_MAX);
	DIR *directory = argc == 2 ? opendir(argv[1]) : NULL;
	const struct dirent *entry;
	unsigned n = 0;

	if (!data || !directory)
		return 1;
	while ((entry = readdir(directory))) {
		char path[4096];

		snprintf(path, sizeof(path), "%s/%s", argv[1], entry->d_name);
		if (entry->d_name[0] == '.')
			continue;
		if (file_replay(path, data)) {
			fprintf(stderr, "%s: cannot be read\n", path);
			return 1;
		}
		n++;
	}
	closedir(directory);
	free(data);
	printf("%u inputs\n", n);
	return n ? 0 : 1;
}
