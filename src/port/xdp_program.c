/* SPDX-License-Identifier: BSD-2-Clause */
#include "port/xdp_program.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <napier/port.h>

#include "port/bpf_code.h"

/* Linux 6.3: the program is for one device, and may call what its driver offers. */
#ifndef BPF_F_XDP_DEV_BOUND_ONLY
#define BPF_F_XDP_DEV_BOUND_ONLY (1u << 6)
#endif

#define PROGRAM_NAME "napier"
/* The kernel lets only programs with a GPL-compatible licence call its functions. */
#define PROGRAM_LICENCE "Dual BSD/GPL"
/* Linux 6.8; the driver's word on the tag that it or the sender took out of the frame. */
#define TAG_FUNCTION "bpf_xdp_metadata_rx_vlan_tag"

enum { R0, R1, R2, R3, R4, R6 = 6, STACK = 10 };

#define TO_NETWORK16(to) INSTRUCTION(BPF_ALU | BPF_END | BPF_TO_BE, to, 0, 0, 16)
#define KERNEL_FUNCTION(id) INSTRUCTION(BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_KFUNC_CALL, 0, id)
#define SKIP_UNLESS_ZERO(reg, n) INSTRUCTION(BPF_JMP | BPF_JNE | BPF_K, reg, 0, n, 0)
#define SKIP_UNLESS_ABOVE(a, b, n) INSTRUCTION(BPF_JMP | BPF_JLE | BPF_X, a, b, n, 0)

#define CONTEXT_AT(field) ((int16_t)offsetof(struct xdp_md, field))

/*
 * r6 is the context. Asks for the tag; when there is one, makes room at the front, moves the
 * addresses there, and writes the tag behind them. A frame for which that fails would go out with
 * the wrong meaning, so it is dropped.
 */
#define TAG_INSTRUCTIONS 29
static void tag_instructions(struct bpf_insn *out, int function)
{
	const struct bpf_insn code[] = {
		STORE_VALUE(BPF_W, STACK, -8, 0),
		STORE_VALUE(BPF_W, STACK, -4, 0),
		COPY(R1, R6),
		COPY(R2, STACK),
		ADD(R2, -8), /* the protocol, as in the frame */
		COPY(R3, STACK),
		ADD(R3, -4), /* the tag, in the host's order */
		KERNEL_FUNCTION(function),
		SKIP_UNLESS_ZERO(R0, TAG_INSTRUCTIONS - 9),
		COPY(R1, R6),
		SET(R2, -4),
		HELPER(BPF_FUNC_xdp_adjust_head),
		SKIP_UNLESS_ZERO(R0, 5),
		LOAD(BPF_W, R2, R6, CONTEXT_AT(data)),
		LOAD(BPF_W, R3, R6, CONTEXT_AT(data_end)),
		COPY(R4, R2),
		ADD(R4, 18),
		SKIP_UNLESS_ABOVE(R4, R3, 2),
		SET(R0, XDP_DROP),
		EXIT,
		LOAD(BPF_DW, R4, R2, 4),
		STORE(BPF_DW, R2, 0, R4),
		LOAD(BPF_W, R4, R2, 12),
		STORE(BPF_W, R2, 8, R4),
		LOAD(BPF_H, R4, STACK, -8),
		STORE(BPF_H, R2, 12, R4),
		LOAD(BPF_H, R4, STACK, -4),
		TO_NETWORK16(R4),
		STORE(BPF_H, R2, 14, R4),
	};

	_Static_assert(sizeof(code) == TAG_INSTRUCTIONS * sizeof(*code), "the jump lands behind");
	memcpy(out, code, sizeof(code));
}

static int program_load(int map, int ifindex, int tag_function)
{
	const struct bpf_insn head[] = {COPY(R6, R1)};
	const struct bpf_insn tail[] = {
		LOAD(BPF_W, R2, R6, CONTEXT_AT(rx_queue_index)),
		MAP(R1, map),
		SET(R3, XDP_PASS), /* the verdict where the map has no socket */
		HELPER(BPF_FUNC_redirect_map),
		EXIT,
	};
	struct bpf_insn code[sizeof(head) / sizeof(*head) + TAG_INSTRUCTIONS +
			     sizeof(tail) / sizeof(*tail)];
	size_t n = sizeof(head) / sizeof(*head);
	LIBBPF_OPTS(bpf_prog_load_opts, options);
	int fd;

	memcpy(code, head, sizeof(head));
	if (tag_function) {
		tag_instructions(code + n, tag_function);
		n += TAG_INSTRUCTIONS;
		options.prog_ifindex = (uint32_t)ifindex;
		options.prog_flags = BPF_F_XDP_DEV_BOUND_ONLY;
		options.expected_attach_type = BPF_XDP;
	}
	memcpy(code + n, tail, sizeof(tail));
	n += sizeof(tail) / sizeof(*tail);
	fd = bpf_prog_load(BPF_PROG_TYPE_XDP, PROGRAM_NAME, PROGRAM_LICENCE, code, n, &options);
	return fd < 0 ? -errno : fd;
}

/* The number by which this kernel knows the function; 0: it has none. */
static int tag_function_find(void)
{
	struct btf *btf = btf__load_vmlinux_btf();
	int id;

	if (!btf)
		return 0;
	id = btf__find_by_name_kind(btf, TAG_FUNCTION, BTF_KIND_FUNC);
	btf__free(btf);
	return id > 0 ? id : 0;
}

static int program_attach(struct xdp_program *p, int ifindex)
{
	LIBBPF_OPTS(bpf_link_create_opts, options,
		    .flags = p->native ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE);

	p->link = bpf_link_create(p->program, ifindex, BPF_XDP, &options);
	return p->link < 0 ? -errno : 0;
}

/* Loads and attaches one form of it; without tag_function the one that runs everywhere. */
static int program_try(struct xdp_program *p, int ifindex, int tag_function)
{
	int rc;

	p->program = program_load(p->map, ifindex, tag_function);
	if (p->program < 0)
		return p->program;
	rc = program_attach(p, ifindex);
	if (rc) {
		close(p->program);
		p->program = -1;
	}
	p->tags = !rc && tag_function;
	return rc;
}

int xdp_program_open(struct xdp_program *p, int ifindex, bool native)
{
	struct bpf_prog_info info = {0};
	uint32_t size = sizeof(info);
	int tag_function, rc = -ENOENT;

	*p = XDP_PROGRAM_CLOSED;
	p->native = native;
	p->map = bpf_map_create(BPF_MAP_TYPE_XSKMAP, PROGRAM_NAME, sizeof(int), sizeof(int),
				PORT_QUEUES_MAX, NULL);
	if (p->map < 0)
		return -errno;
	/* Only a driver's own hook knows of tags. */
	tag_function = native ? tag_function_find() : 0;
	if (tag_function)
		rc = program_try(p, ifindex, tag_function);
	if (rc && rc != -EBUSY && rc != -EEXIST && rc != -EPERM)
		rc = program_try(p, ifindex, 0);
	if (rc) {
		xdp_program_close(p);
		return rc;
	}
	if (!bpf_obj_get_info_by_fd(p->program, &info, &size))
		p->id = info.id;
	return 0;
}

void xdp_program_close(struct xdp_program *p)
{
	if (p->link >= 0)
		close(p->link);
	if (p->program >= 0)
		close(p->program);
	if (p->map >= 0)
		close(p->map);
	*p = XDP_PROGRAM_CLOSED;
}

int xdp_program_redirect(struct xdp_program *p, uint32_t queue, int socket)
{
	return bpf_map_update_elem(p->map, &queue, &socket, BPF_ANY) ? -errno : 0;
}

/* The id of the link that holds this program on an interface; 0: none, or we may not look. */
static uint32_t link_find(uint32_t program)
{
	uint32_t id = 0;

	while (!bpf_link_get_next_id(id, &id)) {
		struct bpf_link_info info = {0};
		uint32_t size = sizeof(info);
		int fd = bpf_link_get_fd_by_id(id);
		int rc;

		if (fd < 0)
			continue;
		rc = bpf_obj_get_info_by_fd(fd, &info, &size);
		close(fd);
		if (!rc && info.type == BPF_LINK_TYPE_XDP && info.prog_id == program)
			return id;
	}
	return 0;
}

/* Whether one of the descriptors behind this fdinfo directory is the link. */
static bool descriptors_have_link(int directory, uint32_t link)
{
	DIR *files = fdopendir(directory);
	const struct dirent *entry;
	bool found = false;

	if (!files) {
		close(directory);
		return false;
	}
	while (!found && (entry = readdir(files))) {
		char text[512] = "", wanted[32];
		int fd = openat(dirfd(files), entry->d_name, O_RDONLY | O_CLOEXEC);

		if (fd < 0)
			continue;
		snprintf(wanted, sizeof(wanted), "link_id:\t%u\n", link);
		if (read(fd, text, sizeof(text) - 1) > 0 && strstr(text, wanted))
			found = true;
		close(fd);
	}
	closedir(files);
	return found;
}

/* Looks through all processes: only done to say whom to ask when the interface is taken. */
static bool link_owner(uint32_t link, char *name, size_t size, int *pid)
{
	DIR *processes = opendir("/proc");
	const struct dirent *entry;
	bool found = false;

	while (processes && !found && (entry = readdir(processes))) {
		char path[64], comm[17] = "?";
		FILE *file;
		int directory;

		if (sscanf(entry->d_name, "%d", pid) != 1)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/fdinfo", *pid);
		directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (directory < 0 || !descriptors_have_link(directory, link))
			continue;
		found = true;
		snprintf(path, sizeof(path), "/proc/%d/comm", *pid);
		file = fopen(path, "re");
		if (file) {
			if (fscanf(file, "%16[^\n]", comm) != 1)
				strcpy(comm, "?");
			fclose(file);
		}
		snprintf(name, size, "%s", comm);
	}
	if (processes)
		closedir(processes);
	return found;
}

void xdp_program_describe(uint32_t id, char *text, size_t size, bool *held)
{
	struct bpf_prog_info info = {0};
	uint32_t info_size = sizeof(info), link;
	char owner[32];
	int pid, used;
	int fd = bpf_prog_get_fd_by_id(id);

	*held = false;
	used = snprintf(text, size, "id %u", id);
	if (fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &info_size) && info.name[0])
		used += snprintf(text + used, size - (size_t)used, " '%s'", info.name);
	if (fd >= 0)
		close(fd);
	link = link_find(id);
	if (!link)
		return;
	*held = true;
	if (link_owner(link, owner, sizeof(owner), &pid))
		snprintf(text + used, size - (size_t)used, ", held by process %d (%s)", pid, owner);
}
