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

#endif
