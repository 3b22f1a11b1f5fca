/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include <port/bpf_code.h>

#include "lab/napi_watch.h"

enum { NAME = 16 }; /* of an interface, with the NUL */

struct counts {
	uint64_t polls, packets;
};

struct napi_watch {
	int map, program, link;
	unsigned cpus;
	struct counts *each;
};

/* Bytes from the start of a structure of the kernel to one of its members. */
static int member_offset(const struct btf *btf, const char *structure, const char *member)
{
	int id = btf__find_by_name_kind(btf, structure, BTF_KIND_STRUCT);
	const struct btf_type *type = id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;

	for (uint32_t i = 0; type && i < btf_vlen(type); i++) {
		const char *name = btf__name_by_offset(btf, btf_members(type)[i].name_off);

		if (name && !strcmp(name, member))
			return (int)(btf_member_bit_offset(type, i) / 8);
	}
	return -ENOENT;
}

#define ADD_REGISTER(d, s) INSTRUCTION(BPF_ALU64 | BPF_ADD | BPF_X, d, s, 0, 0)
#define JEQ(d, i) INSTRUCTION(BPF_JMP | BPF_JEQ | BPF_K, d, 0, 0, i)
#define JNER(d, s) INSTRUCTION(BPF_JMP | BPF_JNE | BPF_X, d, s, 0, 0)

/* Called with (napi, work, budget): when napi->dev->name is ours and there was work, counts. */
static int program_load(const struct napi_watch *watch, const char name[NAME], int device,
			int device_name)
{
	uint32_t word[4];

	memcpy(word, name, sizeof(word));
	struct bpf_insn insns[] = {
		LOAD(BPF_DW, BPF_REG_6, BPF_REG_1, 8), /* work, an int */
		INSTRUCTION(BPF_ALU | BPF_MOV | BPF_X, BPF_REG_6, BPF_REG_6, 0, 0),
		JEQ(BPF_REG_6, 0),
		LOAD(BPF_DW, BPF_REG_3, BPF_REG_1, 0), /* napi */
		ADD(BPF_REG_3, device),
		COPY(BPF_REG_1, BPF_REG_10),
		ADD(BPF_REG_1, -8),
		SET(BPF_REG_2, 8),
		HELPER(BPF_FUNC_probe_read_kernel),
		LOAD(BPF_DW, BPF_REG_3, BPF_REG_10, -8),
		ADD(BPF_REG_3, device_name),
		COPY(BPF_REG_1, BPF_REG_10),
		ADD(BPF_REG_1, -24),
		SET(BPF_REG_2, NAME),
		HELPER(BPF_FUNC_probe_read_kernel),
		LOAD(BPF_DW, BPF_REG_1, BPF_REG_10, -24),
		WIDE(BPF_REG_2, 0, word[0], word[1]),
		JNER(BPF_REG_1, BPF_REG_2),
		LOAD(BPF_DW, BPF_REG_1, BPF_REG_10, -16),
		WIDE(BPF_REG_2, 0, word[2], word[3]),
		JNER(BPF_REG_1, BPF_REG_2),
		STORE_VALUE(BPF_W, BPF_REG_10, -8, 0),
		COPY(BPF_REG_2, BPF_REG_10),
		ADD(BPF_REG_2, -8),
		MAP(BPF_REG_1, watch->map),
		HELPER(BPF_FUNC_map_lookup_elem),
		JEQ(BPF_REG_0, 0),
		LOAD(BPF_DW, BPF_REG_1, BPF_REG_0, 0),
		ADD(BPF_REG_1, 1),
		STORE(BPF_DW, BPF_REG_0, 0, BPF_REG_1),
		LOAD(BPF_DW, BPF_REG_1, BPF_REG_0, 8),
		ADD_REGISTER(BPF_REG_1, BPF_REG_6),
		STORE(BPF_DW, BPF_REG_0, 8, BPF_REG_1),
		SET(BPF_REG_0, 0),
		EXIT,
	};
	unsigned last = sizeof(insns) / sizeof(*insns) - 2;

	/* All jumps go to the end; its distance is counted here. */
	for (unsigned i = 0; i < last; i++) {
		if (BPF_CLASS(insns[i].code) == BPF_JMP && BPF_OP(insns[i].code) != BPF_CALL)
			insns[i].off = (int16_t)(last - i - 1);
	}
	return bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "napi_watch", "Dual BSD/GPL", insns,
			     sizeof(insns) / sizeof(*insns), NULL);
}

static int watch_attach(struct napi_watch *watch, const char *interface, struct error *err)
{
	struct btf *btf = btf__load_vmlinux_btf();
	char name[NAME] = "";
	int device, device_name;

	if (libbpf_get_error(btf))
		return error_set(err, -EOPNOTSUPP, "the kernel has no BTF");
	device = member_offset(btf, "napi_struct", "dev");
	device_name = member_offset(btf, "net_device", "name");
	btf__free(btf);
	if (device < 0 || device_name < 0)
		return error_set(err, -EOPNOTSUPP, "this kernel's NAPI has another layout");
	strncpy(name, interface, NAME - 1);
	watch->map = bpf_map_create(BPF_MAP_TYPE_PERCPU_ARRAY, "napi_watch", 4,
				    sizeof(struct counts), 1, NULL);
	if (watch->map >= 0)
		watch->program = program_load(watch, name, device, device_name);
	if (watch->program >= 0)
		watch->link = bpf_raw_tracepoint_open("napi_poll", watch->program);
	if (watch->link < 0)
		return error_set(err, -EOPNOTSUPP, "no program at the tracepoint napi_poll: %s",
				 strerror(errno));
	return 0;
}

int napi_watch_open(const char *interface, struct napi_watch **out, struct error *err)
{
	struct napi_watch *watch = malloc(sizeof(*watch));
	int cpus = libbpf_num_possible_cpus(), rc;

	if (!watch || cpus < 1) {
		free(watch);
		return error_set(err, -ENOMEM, "no memory");
	}
	*watch = (struct napi_watch){.map = -1, .program = -1, .link = -1, .cpus = (unsigned)cpus};
	watch->each = calloc((size_t)cpus, sizeof(*watch->each));
	rc = watch->each ? watch_attach(watch, interface, err)
			 : error_set(err, -ENOMEM, "no memory");
	if (rc)
		napi_watch_close(watch);
	else
		*out = watch;
	return rc;
}

void napi_watch_read(const struct napi_watch *watch, uint64_t *packets, uint64_t *polls)
{
	uint32_t key = 0;

	*packets = *polls = 0;
	if (bpf_map_lookup_elem(watch->map, &key, watch->each))
		return;
	for (unsigned i = 0; i < watch->cpus; i++) {
		*packets += watch->each[i].packets;
		*polls += watch->each[i].polls;
	}
}

void napi_watch_close(struct napi_watch *watch)
{
	if (watch->link >= 0)
		close(watch->link);
	if (watch->program >= 0)
		close(watch->program);
	if (watch->map >= 0)
		close(watch->map);
	free(watch->each);
	free(watch);
}
