/* SPDX-License-Identifier: BSD-2-Clause */
/* What every cmocka test includes, in the order that cmocka wants. */
#ifndef TEST_H
#define TEST_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/*
 * A call that changes a running engine. It may take a second, which is much, yet a busy machine may
 * not run a thread for as long: then it is -ETIMEDOUT with everything as it was, and asked for
 * again. What had lost its wake-up would fail each time.
 */
#define ASK_PATIENTLY(call)                                                                        \
	({                                                                                         \
		int asked_rc, asked = 0;                                                           \
                                                                                                   \
		do                                                                                 \
			asked_rc = (call);                                                         \
		while (asked_rc == -ETIMEDOUT && ++asked < 30);                                    \
		asked_rc;                                                                          \
	})

#endif
