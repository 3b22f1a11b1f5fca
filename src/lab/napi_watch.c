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

enum { NAME = 16 /* of an interface, with the NUL */, THREADS = 8192 };

/* Of enum in <linux/interrupt.h>: NET_TX, NET_RX, TASKLET. */
enum { VECTORS = 1 << 2 | 1 << 3 | 1 << 6 };

/* Of a CPU. */
struct span {
	uint64_t begin; /* of the softirq that is running; 0: none */
	uint64_t mark;	/* the last poll's end in it, or its begin; 0: none */
	uint64_t total;
};

struct counts {
	uint64_t softirq, polls, packets;
};

/* Of a thread, by its id. */
struct back {
	uint64_t ns;
	uint64_t ids; /* process << 32 | thread, as bpf_get_current_pid_tgid has them */
};

enum { PROGRAMS = 3 };

struct napi_watch {
	int spans, interfaces, threads;
	int program[PROGRAMS], link[PROGRAMS];
	unsigned cpus;
	struct span *each;
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

#define COPY_W(to, from) INSTRUCTION(BPF_ALU | BPF_MOV | BPF_X, to, from, 0, 0)
#define ADD_REG(to, from) INSTRUCTION(BPF_ALU64 | BPF_ADD | BPF_X, to, from, 0, 0)
#define SUB_REG(to, from) INSTRUCTION(BPF_ALU64 | BPF_SUB | BPF_X, to, from, 0, 0)
#define AND_IMM(to, value) INSTRUCTION(BPF_ALU64 | BPF_AND | BPF_K, to, 0, 0, value)
#define SHIFT_LEFT(to, by) INSTRUCTION(BPF_ALU64 | BPF_LSH | BPF_X, to, by, 0, 0)
#define ATOMIC_ADD(at, offset, from)                                                               \
	INSTRUCTION(BPF_STX | BPF_ATOMIC | BPF_DW, at, from, offset, BPF_ADD)
/* So many instructions; 0: to the last two, which leave. */
#define SKIP_EQUAL(what, value, by) INSTRUCTION(BPF_JMP | BPF_JEQ | BPF_K, what, 0, by, value)
#define SKIP_OTHER(what, value, by) INSTRUCTION(BPF_JMP | BPF_JNE | BPF_K, what, 0, by, value)

/* Leaves, unless the softirq in ctx[0] is one of ours; its CPU's span in r6. */
#define SPAN_FIND(fd)                                                                              \
	LOAD(BPF_DW, BPF_REG_6, BPF_REG_1, 0), SET(BPF_REG_1, 1),                                  \
		SHIFT_LEFT(BPF_REG_1, BPF_REG_6), AND_IMM(BPF_REG_1, VECTORS),                     \
		SKIP_EQUAL(BPF_REG_1, 0, 0), SPAN_LOOKUP(fd), COPY(BPF_REG_6, BPF_REG_0)

#define SPAN_LOOKUP(fd)                                                                            \
	STORE_VALUE(BPF_W, BPF_REG_10, -4, 0), COPY(BPF_REG_2, BPF_REG_10), ADD(BPF_REG_2, -4),    \
		MAP(BPF_REG_1, fd), HELPER(BPF_FUNC_map_lookup_elem), SKIP_EQUAL(BPF_REG_0, 0, 0)

static int program_load(struct bpf_insn *insns, size_t size)
{
	unsigned n = (unsigned)(size / sizeof(*insns));

	for (unsigned i = 0; i + 2 < n; i++) {
		unsigned op = BPF_OP(insns[i].code);

		if (BPF_CLASS(insns[i].code) == BPF_JMP && (op == BPF_JEQ || op == BPF_JNE) &&
		    !insns[i].off)
			insns[i].off = (int16_t)(n - 2 - i - 1);
	}
	return bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "napi_watch", "Dual BSD/GPL", insns, n,
			     NULL);
}

static int entry_load(const struct napi_watch *watch)
{
	struct bpf_insn insns[] = {
		SPAN_FIND(watch->spans),
		HELPER(BPF_FUNC_ktime_get_ns),
		STORE(BPF_DW, BPF_REG_6, 0, BPF_REG_0),
		STORE(BPF_DW, BPF_REG_6, 8, BPF_REG_0),
		SET(BPF_REG_0, 0),
		EXIT,
	};

	return program_load(insns, sizeof(insns));
}

/* What it took is added to the CPU's total and to the thread that it interrupted. */
static int exit_load(const struct napi_watch *watch)
{
	struct bpf_insn insns[] = {
		SPAN_FIND(watch->spans),
		HELPER(BPF_FUNC_ktime_get_ns),
		COPY(BPF_REG_7, BPF_REG_0),
		LOAD(BPF_DW, BPF_REG_1, BPF_REG_6, 0),
		SKIP_EQUAL(BPF_REG_1, 0, 0), /* it began before the watch did */
		SUB_REG(BPF_REG_7, BPF_REG_1),
		STORE_VALUE(BPF_DW, BPF_REG_6, 0, 0),
		STORE_VALUE(BPF_DW, BPF_REG_6, 8, 0),
		LOAD(BPF_DW, BPF_REG_1, BPF_REG_6, 16),
		ADD_REG(BPF_REG_1, BPF_REG_7),
		STORE(BPF_DW, BPF_REG_6, 16, BPF_REG_1),
		HELPER(BPF_FUNC_get_current_pid_tgid),
		STORE(BPF_W, BPF_REG_10, -4, BPF_REG_0),
		STORE(BPF_DW, BPF_REG_10, -16, BPF_REG_0), /* a struct back */
		STORE(BPF_DW, BPF_REG_10, -24, BPF_REG_7),
		COPY(BPF_REG_2, BPF_REG_10),
		ADD(BPF_REG_2, -4),
		MAP(BPF_REG_1, watch->threads),
		HELPER(BPF_FUNC_map_lookup_elem),
		SKIP_OTHER(BPF_REG_0, 0, 10),
		COPY(BPF_REG_2, BPF_REG_10),
		ADD(BPF_REG_2, -4),
		COPY(BPF_REG_3, BPF_REG_10),
		ADD(BPF_REG_3, -24),
		SET(BPF_REG_4, BPF_ANY),
		MAP(BPF_REG_1, watch->threads),
		HELPER(BPF_FUNC_map_update_elem),
		SET(BPF_REG_0, 0),
		EXIT,
		ATOMIC_ADD(BPF_REG_0, 0, BPF_REG_7), /* CPUs that idle are one thread, 0 */
		SET(BPF_REG_0, 0),
		EXIT,
	};

	return program_load(insns, sizeof(insns));
}

/* Called with (napi, work, budget) after each poll. */
static int poll_load(const struct napi_watch *watch, int device, int device_name)
{
	struct bpf_insn insns[] = {
		LOAD(BPF_DW, BPF_REG_6, BPF_REG_1, 0), /* napi */
		LOAD(BPF_DW, BPF_REG_7, BPF_REG_1, 8), /* work, an int */
		COPY_W(BPF_REG_7, BPF_REG_7),
		SPAN_LOOKUP(watch->spans),
		COPY(BPF_REG_8, BPF_REG_0),
		LOAD(BPF_DW, BPF_REG_9, BPF_REG_8, 8),
		SKIP_EQUAL(BPF_REG_9, 0, 5), /* not in softirq: no time */
		HELPER(BPF_FUNC_ktime_get_ns),
		COPY(BPF_REG_1, BPF_REG_0),
		SUB_REG(BPF_REG_1, BPF_REG_9),
		STORE(BPF_DW, BPF_REG_8, 8, BPF_REG_0),
		COPY(BPF_REG_9, BPF_REG_1),
		/* The name in napi->dev; a backlog has no device, which reads as zeros. */
		COPY(BPF_REG_3, BPF_REG_6),
		ADD(BPF_REG_3, device),
		COPY(BPF_REG_1, BPF_REG_10),
		ADD(BPF_REG_1, -16),
		SET(BPF_REG_2, 8),
		HELPER(BPF_FUNC_probe_read_kernel),
		LOAD(BPF_DW, BPF_REG_3, BPF_REG_10, -16),
		ADD(BPF_REG_3, device_name),
		COPY(BPF_REG_1, BPF_REG_10),
		ADD(BPF_REG_1, -32),
		SET(BPF_REG_2, NAME),
		HELPER(BPF_FUNC_probe_read_kernel),
		COPY(BPF_REG_2, BPF_REG_10),
		ADD(BPF_REG_2, -32),
		MAP(BPF_REG_1, watch->interfaces),
		HELPER(BPF_FUNC_map_lookup_elem),
		SKIP_EQUAL(BPF_REG_0, 0, 0),
		ATOMIC_ADD(BPF_REG_0, 0, BPF_REG_9),
		SKIP_EQUAL(BPF_REG_7, 0, 0),
		SET(BPF_REG_1, 1),
		ATOMIC_ADD(BPF_REG_0, 8, BPF_REG_1),
		ATOMIC_ADD(BPF_REG_0, 16, BPF_REG_7),
		SET(BPF_REG_0, 0),
		EXIT,
	};

	return program_load(insns, sizeof(insns));
}

/* Of this kernel they are always the same, and to find them takes longer than all else. */
static int offsets_find(int *device, int *device_name, struct error *err)
{
	static _Atomic int known_device, known_name; /* and one more; 0: not yet */
	struct btf *btf;

	*device = known_device - 1;
	*device_name = known_name - 1;
	if (*device >= 0 && *device_name >= 0)
		return 0;
	btf = btf__load_vmlinux_btf();
	if (libbpf_get_error(btf))
		return error_set(err, -EOPNOTSUPP, "the kernel has no BTF");
	*device = member_offset(btf, "napi_struct", "dev");
	*device_name = member_offset(btf, "net_device", "name");
	btf__free(btf);
	if (*device < 0 || *device_name < 0)
		return error_set(err, -EOPNOTSUPP, "this kernel's NAPI has another layout");
	known_device = *device + 1;
	known_name = *device_name + 1;
	return 0;
}

static void key_of(const char *interface, char key[NAME])
{
	memset(key, 0, NAME);
	memcpy(key, interface, strnlen(interface, NAME - 1));
}

static int maps_make(struct napi_watch *watch, const char *const *interfaces, unsigned n)
{
	struct counts none = {0};
	char key[NAME];

	watch->spans = bpf_map_create(BPF_MAP_TYPE_PERCPU_ARRAY, "napi_spans", 4,
				      sizeof(struct span), 1, NULL);
	watch->interfaces = bpf_map_create(BPF_MAP_TYPE_HASH, "napi_interfaces", NAME,
					   sizeof(struct counts), n, NULL);
	watch->threads = bpf_map_create(BPF_MAP_TYPE_HASH, "napi_backs", 4, sizeof(struct back),
					THREADS, NULL);
	if (watch->spans < 0 || watch->interfaces < 0 || watch->threads < 0)
		return -errno;
	for (unsigned i = 0; i < n; i++) {
		key_of(interfaces[i], key);
		if (bpf_map_update_elem(watch->interfaces, key, &none, BPF_ANY))
			return -errno;
	}
	return 0;
}

/* Polls before softirq_exit, and that before softirq_entry, so that no begin lacks its end. */
static int programs_attach(struct napi_watch *watch, int device, int device_name)
{
	static const char *const point[PROGRAMS] = {"napi_poll", "softirq_exit", "softirq_entry"};

	watch->program[0] = poll_load(watch, device, device_name);
	watch->program[1] = exit_load(watch);
	watch->program[2] = entry_load(watch);
	for (unsigned i = 0; i < PROGRAMS; i++) {
		if (watch->program[i] < 0)
			return watch->program[i];
		watch->link[i] = bpf_raw_tracepoint_open(point[i], watch->program[i]);
		if (watch->link[i] < 0)
			return watch->link[i];
	}
	return 0;
}

int napi_watch_open(const char *const *interfaces, unsigned n, struct napi_watch **out,
		    struct error *err)
{
	struct napi_watch *watch = calloc(1, sizeof(*watch));
	int cpus = libbpf_num_possible_cpus(), device = 0, device_name = 0, ret;

	if (watch)
		watch->each = calloc(cpus < 1 ? 1 : (size_t)cpus, sizeof(*watch->each));
	if (!watch || !watch->each) {
		free(watch);
		return error_set(err, -ENOMEM, "no memory");
	}
	watch->cpus = cpus < 1 ? 1 : (unsigned)cpus;
	watch->spans = watch->interfaces = watch->threads = -1;
	for (unsigned i = 0; i < PROGRAMS; i++)
		watch->program[i] = watch->link[i] = -1;
	ret = offsets_find(&device, &device_name, err);
	if (!ret) {
		ret = maps_make(watch, interfaces, n);
		if (!ret)
			ret = programs_attach(watch, device, device_name);
		if (ret)
			ret = error_set(err, -EOPNOTSUPP,
					"no programs at the kernel's tracepoints: %s",
					strerror(-ret));
	}
	if (ret)
		napi_watch_close(watch);
	else
		*out = watch;
	return ret;
}

void napi_watch_read(const struct napi_watch *watch, const char *interface,
		     struct napi_watched *out)
{
	struct counts counts = {0};
	char key[NAME];

	key_of(interface, key);
	if (bpf_map_lookup_elem(watch->interfaces, key, &counts))
		counts = (struct counts){0};
	*out = (struct napi_watched){
		.polls = counts.polls,
		.packets = counts.packets,
		.softirq = (int64_t)counts.softirq,
	};
}

int64_t napi_watch_softirq(const struct napi_watch *watch)
{
	uint32_t key = 0;
	uint64_t sum = 0;

	if (bpf_map_lookup_elem(watch->spans, &key, watch->each))
		return 0;
	for (unsigned i = 0; i < watch->cpus; i++)
		sum += watch->each[i].total;
	return (int64_t)sum;
}

int64_t napi_watch_back(const struct napi_watch *watch, pid_t thread)
{
	uint32_t key = (uint32_t)thread;
	struct back back;

	return bpf_map_lookup_elem(watch->threads, &key, &back) ? 0 : (int64_t)back.ns;
}

int napi_watch_backs(const struct napi_watch *watch, struct napi_back **out, unsigned *n)
{
	struct napi_back *all = calloc(THREADS, sizeof(*all));
	uint32_t key, *last = NULL;
	struct back back;

	*out = all;
	*n = 0;
	if (!all)
		return -ENOMEM;
	while (*n < THREADS && !bpf_map_get_next_key(watch->threads, last, &key)) {
		last = &key;
		if (bpf_map_lookup_elem(watch->threads, &key, &back))
			continue;
		all[(*n)++] = (struct napi_back){
			.process = (pid_t)(back.ids >> 32),
			.thread = (pid_t)key,
			.softirq = (int64_t)back.ns,
		};
	}
	return *n < THREADS ? 0 : -ENOSPC;
}

static void descriptor_close(int fd)
{
	if (fd >= 0)
		close(fd);
}

void napi_watch_close(struct napi_watch *watch)
{
	for (unsigned i = 0; i < PROGRAMS; i++) {
		descriptor_close(watch->link[i]);
		descriptor_close(watch->program[i]);
	}
	descriptor_close(watch->spans);
	descriptor_close(watch->interfaces);
	descriptor_close(watch->threads);
	free(watch->each);
	free(watch);
}
