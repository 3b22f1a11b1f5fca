/* SPDX-License-Identifier: BSD-2-Clause */
/* What libconfig would take from a configuration's text, but not as it is meant. */
#ifndef CONTROL_SETUP_TEXT_H
#define CONTROL_SETUP_TEXT_H

#include <control/reader.h>

/*
 * -EINVAL: it includes a file. (libconfig's scanner ends the whole program when that cannot be
 * read: a directory, say.) -ERANGE: an integer without L that does not fit into 32 bits, of which
 * libconfig would keep the lower ones.
 */
int setup_text_check(struct reader *r, const char *text);

#endif
