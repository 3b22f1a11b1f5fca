/* SPDX-License-Identifier: BSD-2-Clause */
/* A target's input as a stream of choices; after its end all of them are 0. */
#ifndef FUZZ_INPUT_H
#define FUZZ_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct input {
	const uint8_t *at, *end;
};

static inline size_t input_left(const struct input *in)
{
	return (size_t)(in->end - in->at);
}

static inline uint8_t input_byte(struct input *in)
{
	return in->at < in->end ? *in->at++ : 0;
}

static inline uint16_t input_u16(struct input *in)
{
	uint8_t high = input_byte(in);

	return (uint16_t)(high << 8 | input_byte(in));
}

#endif
