#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# usage: completion.sh NAPIER COMPLETION: what the shell offers, with no engine running.
set -u
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
ln -s "$(realpath "$1")" "$directory/napier"
PATH=$directory:$PATH
compopt() { :; }
. "$2"
failed=0

# expect LINE CANDIDATE…: exactly these, in this order
expect() {
	local line=$1

	shift
	COMP_LINE=$line COMP_POINT=${#line} COMPREPLY=()
	_napier
	if [ "${COMPREPLY[*]}" != "$*" ]; then
		echo "\"$line\" gives \"${COMPREPLY[*]}\", not \"$*\""
		failed=1
	fi
}

touch "$directory/some.conf" "$directory/lab.7"
mkdir "$directory/one"
touch "$directory/one/pid"
expect 'napier ' run show set rebalance port stop demo sim bench --help --version
expect 'napier s' show set stop sim
expect 'napier sim --se' --seed --seeds
expect 'napier run --h' --help --handler --host
expect 'napier run --host xdp:l' lo
expect 'napier run --handler ' bridge drop
expect 'napier run --poller ' softirq thread workqueue busy-poll app auto
expect "napier run -c $directory/so" "$directory/some.conf"
expect 'napier run p' packet: pcap:
expect 'napier run xdp:l' lo
expect "napier run pcap:$directory/s" "$directory/some.conf"
expect 'napier show -' --name --run-dir --help --json --fdb --interval --names --softnet
expect "napier set --run-dir $directory " default engine
expect 'napier set default ' poller=
expect 'napier set engine ' cpus= dev_weight= netdev_budget= netdev_budget_usecs= \
	busy_poll= busy_read= gro_normal_batch= netdev_max_backlog= flow_limit= rps_sock_flow_entries= symmetric_hash= deferral=
expect 'napier set cpu/0 ' deferral=
expect 'napier set cpu/0 deferral=' never restart-limit looped:1 looped:2 ksoftirqd-running
expect 'napier set a p' poller= priority=
expect 'napier set a n' nice= napi_defer_hard_irqs=
expect 'napier set default poller=' softirq thread workqueue busy-poll app auto
expect 'napier set default poller=t' thread
expect 'napier set a/0 weight=3 class=' fair fifo
expect 'napier port ' add remove
expect 'napier port add tap:x p' poller= priority= pvid=
expect "napier stop --run-dir $directory --name " one
expect 'napier stop x'
expect 'napier bench r' rr rrul report riel-2014
expect 'napier bench --set x=1 -H there s' stream server
expect 'napier bench pollers -' --json --only --quick --help
expect 'napier bench pollers --only w' wake workers
expect 'napier bench khawaja-2025 --q' --quick
expect 'napier bench khawaja-2025 --only let' letter-base letter-threaded letter-napier
expect 'napier bench khawaja-2025 --only a-softirq,b-p' a-softirq,b-pinning
expect 'napier bench core --only cost,w' cost,wake
expect 'napier bench rr --re' --request-size --response-size
expect 'napier bench server --fl' --flows
expect 'napier bench core --only ' cost event wake packet hash gro udp
expect 'napier bench delivery --only ' stream rr rate
exit $failed
