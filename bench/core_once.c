/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * core_once N: N packets at vectors of 64 through the bridge, in one thread, on the virtual
 * machine. To be run under callgrind, which counts instructions, while `napier bench core` counts
 * time:
 *
 *      valgrind --tool=callgrind --toggle-collect=napi_poll core_once 100000
 */
#include <stdio.h>
#include <stdlib.h>

#include <lab/parts/core.h>

int main(int argc, char **argv)
{
	uint64_t packets = argc == 2 ? strtoull(argv[1], NULL, 10) : 0, done = 0;
	const struct core_ring_config config = {.poller = POLLER_THREAD, .weight = 64};
	struct machine *machine;
	struct core_ring ring;
	struct error err;

	if (!packets) {
		fprintf(stderr, "usage: core_once PACKETS\n");
		return 2;
	}
	if (machine_virtual_create(&(struct virtual_config){.cpus = 2}, &machine)) {
		fprintf(stderr, "core_once: no memory\n");
		return 1;
	}
	if (core_ring_open(&ring, machine, &config, &err)) {
		fprintf(stderr, "core_once: %s\n", err.text);
		return 1;
	}
	while (done < packets) {
		machine_virtual_run(machine, machine_now(machine) + 20 * NSEC_PER_USEC);
		for (uint32_t n; (n = core_ring_turn(&ring));)
			done += n;
	}
	printf("%lu packets\n", (unsigned long)done);
	core_ring_close(&ring);
	return 0;
}
