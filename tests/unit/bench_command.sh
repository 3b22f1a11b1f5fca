#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# usage: bench_command.sh NAPIER: what `napier bench` says and ends with, for what people type of
# workloads and their server.
set -u
napier=$1
failed=0

# expect STATUS TEXT ARGUMENT…: it ends so, and says this
expect() {
	local status=$1 text=$2 said

	shift 2
	said=$("$napier" bench "$@" 2>&1)
	if [ $? -ne "$status" ] || ! grep -qF -- "$text" <<<"$said"; then
		echo "napier bench $*: not status $status and \"$text\", but: $said"
		failed=1
	fi
}

expect 0 'rrul ' --help
expect 0 'Usage: napier bench rr ' rr --help
expect 0 'Usage: napier bench stream ' --help stream
expect 0 'Usage: napier bench server ' server -h
expect 2 'say what to measure'
expect 2 '"foo": it takes options only' rr foo
expect 2 '"foo": it takes no arguments' server foo
expect 2 'unknown option --flow: see napier bench rrul --help' rrul --flow 1
expect 2 'unknown option -Q: see napier bench stream --help' stream -Q 1
expect 2 '--rate needs a value' rr --rate
expect 2 'bench rr: --flows 0: it is a whole number, 1 at least' rr -F 0
expect 2 'bench rr: --flows 4097: 4097 is not 0..4096' rr -F 4097
expect 2 'bench rr: --flows 1k: it is a whole number' rr --flows 1k
expect 2 'bench rr: threads = 8 for flows = 4' rr -F 4 -T 8
expect 2 'bench rr: --rate -1: -1 is not 0..' rr --rate -1
expect 2 'bench rr: --rate nan: it is a number' rr --rate nan
expect 2 'bench rr: --work 1h: it is a time' rr --work 1h
expect 2 'bench rr: --work 2s: 2000000000 is not 0..1000000000' rr --work 2s
expect 2 'bench rr: connect is of TCP' rr --udp --connect
expect 2 'bench rr: poisson arrivals are of the open loop: give a rate' rr --poisson
expect 2 'bench rr: -H there:1: the port is given by -P 1' rr -H there:1
expect 2 'bench rr: -l 0: a time, 0.1 to 3600 s' rr -l 0
expect 2 'bench rr: -l x: a time' rr -l x
expect 2 'bench rr: --warm -1: a time' --warm -1 rr
expect 2 'bench rr: -p 100: percentiles are numbers above 0' rr -p 100
expect 2 'bench rr: --cpus 1-: CPUs are' rr --cpus 1-
expect 2 'bench rr: -P 65536: a port' rr -P 65536
expect 2 'bench stream: --sizes 1,,2: it is whole numbers with commas' stream --sizes 1,,2
expect 2 'bench stream: --sizes 0: 0 is not 1..' stream --sizes 0
expect 2 'bench stream: --direction left: it is one of up, down, both' stream --direction left
expect 2 'bench server: -p 0: a port' server -p 0
expect 2 'bench server: --fd 1: a descriptor' server --fd 1
expect 2 'bench server: --timeout 2h: it is a time' server --timeout 2h
expect 1 'no.such.host.invalid: ' rr -H no.such.host.invalid
# Nobody listens at the port that nothing is given.
expect 1 '127.0.0.1 port 1: nobody listens there: start napier bench server' rr -H 127.0.0.1 -P 1
# What the command line alone has wrong is misuse; a file that is missing or wrong is a failure.
wrong=$(mktemp --suffix=.conf) || exit 1
there=$(mktemp -d) || exit 1
trap 'rm -rf "$wrong" "$there"' EXIT
echo 'workloads = { a = { kind = "bulk"; }; }; systems = { k = { }; };' >"$wrong"
expect 1 'no-such-file.conf: No such file' ./no-such-file.conf
expect 1 'no-such-file.conf: No such file' no-such-file.conf --list
expect 1 "$wrong:1: unknown kind" "$wrong" --list
expect 2 'there is no specification "no-such-name": there are ' no-such-name
expect 2 '--set quick.duration=soon: ' wang-2020 --set quick.duration=soon --list
expect 2 '--set quick.durations=1s: ' wang-2020 --set quick.durations=1s --list
expect 2 '--set no.such=1: ' wang-2020 --set no.such=1 --list
expect 2 'bench: --only: ' wang-2020 --only no-such --list
# Results that are there give way to no others unasked, not to those of a file beside them either.
nothing='{"schema":"napier-results","version":1,"systems":[],"workloads":[],"runs":[],"notes":[]'
echo "$nothing, \"name\": \"these\"}" >"$there/results.json"
echo "$nothing, \"name\": \"others\"}" >"$there/other.json"
expect 1 "$there: there are other results in it" report -o "$there" "$there/other.json"
expect 0 these report -o "$there" "$there/results.json"
expect 0 these report -o "$there" "$there"
expect 0 others report -o "$there" --replace "$there/other.json"
expect 0 others report "$there"
# JSON that finds no room is not called a want of memory.
said=$("$napier" bench core --quick --only hash --json 2>&1 >/dev/full)
if [ $? -ne 1 ] || ! grep -qF 'the output cannot be written' <<<"$said"; then
	echo "napier bench core --json >/dev/full: $said"
	failed=1
fi
exit $failed
