/* SPDX-License-Identifier: BSD-2-Clause */
/* build: of what the program was built. */
#ifndef CMD_BUILD_H
#define CMD_BUILD_H

/* The commit, with "+changes" where files differed from it; "unknown" where there is no git. */
extern const char build_commit[];

#endif
