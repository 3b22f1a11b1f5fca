#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# usage: sim_command.sh NAPIER: what `napier sim` says and ends with, for what people type.
set -u
napier=$1
failed=0

# expect STATUS TEXT ARGUMENT…: it ends so, and says this
expect() {
	local status=$1 text=$2 said

	shift 2
	said=$("$napier" sim "$@" 2>&1)
	if [ $? -ne "$status" ] || ! grep -qF -- "$text" <<<"$said"; then
		echo "napier sim $*: not status $status and \"$text\", but: $said"
		failed=1
	fi
}

expect 2 '--seed x: must be a number' --seed x
expect 2 '--seed -1: must be a number' --seed -1
expect 2 '--seeds 5..1: must be A..B' --seeds 5..1
expect 2 '--seeds 5: must be A..B' --seeds 5
expect 2 '--count 0: must be a number from 1' --count 0
expect 2 '--jobs 0: must be 1 to' --jobs 0
expect 2 '--trace shows one seed' --trace
expect 2 'leave out --seeds' --seed 1 --seeds 1..2
expect 2 'leave out --count' --count 1 --seeds 1..2
expect 2 '"7": it takes options only' 7
expect 2 'unknown option --seeed' --seeed
expect 0 'Usage: napier sim' --help
expect 0 'seeds         3 of 5..7 passed, 0 failed' --seeds 5..7 -j 2
expect 0 'phase    liveness' --seed 9 --trace
[ "$("$napier" sim --seed 9)" = "$("$napier" sim --seed 9)" ] || {
	echo "seed 9 does not repeat"
	failed=1
}

# Ctrl-C: what has been run is told, and no process is left.
said=$(mktemp)
setsid "$napier" sim --count 1000000 >"$said" 2>&1 &
# It handles that before it has any process.
for ((i = 0; i < 600; i++)); do
	pgrep -P $! >/dev/null && break
	sleep 0.1
done
kill -INT $!
wait $!
status=$?
if [ $status -ne 130 ] || ! grep -q '^seeds ' "$said"; then
	echo "interrupted: status $status: $(cat "$said")"
	failed=1
fi
if pgrep -g $! >/dev/null; then
	echo "interrupted: processes are left"
	failed=1
fi
rm -f "$said"
exit $failed
