/* SPDX-License-Identifier: BSD-2-Clause */
/* For programs of the kernel's that are written out instruction by instruction. */
#ifndef PORT_BPF_CODE_H
#define PORT_BPF_CODE_H

#include <linux/bpf.h>

#define INSTRUCTION(op, to, from, offset, value)                                                   \
	((struct bpf_insn){.code = (op),                                                           \
			   .dst_reg = (to),                                                        \
			   .src_reg = (from),                                                      \
			   .off = (offset),                                                        \
			   .imm = (value)})
#define SET(to, value) INSTRUCTION(BPF_ALU64 | BPF_MOV | BPF_K, to, 0, 0, value)
#define COPY(to, from) INSTRUCTION(BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0, 0)
#define ADD(to, value) INSTRUCTION(BPF_ALU64 | BPF_ADD | BPF_K, to, 0, 0, value)
#define LOAD(size, to, from, offset) INSTRUCTION(BPF_LDX | BPF_MEM | (size), to, from, offset, 0)
#define STORE(size, to, offset, from) INSTRUCTION(BPF_STX | BPF_MEM | (size), to, from, offset, 0)
#define STORE_VALUE(size, to, offset, value)                                                       \
	INSTRUCTION(BPF_ST | BPF_MEM | (size), to, 0, offset, value)
#define HELPER(function) INSTRUCTION(BPF_JMP | BPF_CALL, 0, 0, 0, function)
#define EXIT INSTRUCTION(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)

/* Two instructions: 64 bits, or a map by its descriptor. */
#define WIDE(to, kind, low, high)                                                                  \
	INSTRUCTION(BPF_LD | BPF_DW | BPF_IMM, to, kind, 0, (int32_t)(low)),                       \
		INSTRUCTION(0, 0, 0, 0, (int32_t)(high))
#define MAP(to, map) WIDE(to, BPF_PSEUDO_MAP_FD, map, 0)

#endif
