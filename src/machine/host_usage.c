/* SPDX-License-Identifier: BSD-2-Clause */
/* What runners used and CPUs did not, as the kernel counts it. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "machine/host.h"

static bool schedstat_read(pid_t tid, struct runner_usage *out)
{
	char path[64], text[96];
	long long cpu, ready;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return false;
	text[n] = '\0';
	if (sscanf(text, "%lld %lld", &cpu, &ready) != 2)
		return false;
	*out = (struct runner_usage){.cpu_time = cpu, .ready_time = ready};
	return true;
}

void host_runner_usage(struct runner *runner, struct runner_usage *out)
{
	struct runner_observation seen;
	pid_t tid = atomic_load(&host_runner_of(runner)->tid);

	if (tid && schedstat_read(tid, out))
		return;
	/* A kernel without schedstat, or it has ended. */
	host_runner_observe(runner, &seen);
	*out = (struct runner_usage){.cpu_time = seen.cpu_time};
}

/* "cpu0 user nice system idle iowait ...", in ticks. */
void host_idle_times(struct machine *m, int64_t *idle, unsigned n)
{
	int64_t tick = NSEC_PER_SEC / sysconf(_SC_CLK_TCK);
	FILE *file = fopen("/proc/stat", "re");
	char line[512];

	(void)m;
	memset(idle, 0, n * sizeof(*idle));
	while (file && fgets(line, sizeof(line), file) && !strncmp(line, "cpu", 3)) {
		long long free_ticks, waiting;
		unsigned cpu;

		if (sscanf(line, "cpu%u %*d %*d %*d %lld %lld", &cpu, &free_ticks, &waiting) == 3 &&
		    cpu < n)
			idle[cpu] = (free_ticks + waiting) * tick;
	}
	if (file)
		fclose(file);
}
