/* SPDX-License-Identifier: BSD-2-Clause */
/* Everything public at once. */
#ifndef NAPIER_NAPIER_H
#define NAPIER_NAPIER_H

#include <napier/bridge.h>
#include <napier/busy_poll.h>
#include <napier/counters.h>
#include <napier/engine.h>
#include <napier/error.h>
#include <napier/handler.h>
#include <napier/host.h>
#include <napier/machine.h>
#include <napier/machine_virtual.h>
#include <napier/napi.h>
#include <napier/packet.h>
#include <napier/port.h>
#include <napier/udp.h>

#pragma GCC visibility push(default)

/* "0.1.0" */
const char *napier_version(void);

#pragma GCC visibility pop

#endif
