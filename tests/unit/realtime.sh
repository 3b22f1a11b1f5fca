#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Where interrupts cannot have a real-time class, the warning names the option that asks for none;
# and with it there is no warning.
napier=$1
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
failed=0

# A capture without packets: the engine ends by itself.
printf '\324\303\262\241\002\000\004\000\000\000\000\000\000\000\000\000\000\000\001\000\001\000\000\000' \
	>"$dir/empty.pcap"
if [ "$(id -u)" = 0 ]; then
	command -v setpriv >/dev/null || { echo "skipped: needs setpriv"; exit 77; }
	cp "$napier" "$dir/napier"
	napier=$dir/napier
	chmod 755 "$dir"
	mkdir "$dir/run"
	chown 65534 "$dir/run"
	as="setpriv --reuid 65534 --regid 65534 --clear-groups"
else
	mkdir "$dir/run"
	as=
fi

run() { # OPTION...
	# No limit of its own may stand in for the capability.
	(ulimit -r 0 2>/dev/null; cd "$dir" && exec $as "$napier" run --run-dir "$dir/run" \
		--frames 64 --handler drop "$@" pcap:empty.pcap 2>&1 >/dev/null)
}

says() { # TEXT WANTED OUTPUT
	case $3 in
	*"$1"*) got=yes ;;
	*) got=no ;;
	esac
	[ $got = "$2" ] && return
	echo "\"$1\": wanted $2, got $got in: $3"
	failed=1
}

out=$(run) || { echo "failed: $out"; exit 1; }
says "SCHED_FIFO needs CAP_SYS_NICE" yes "$out"
says "with --no-realtime" yes "$out"
out=$(run --no-realtime) || { echo "failed: $out"; exit 1; }
says "SCHED_FIFO" no "$out"
says "realtime" no "$out"
exit $failed
