# SPDX-License-Identifier: BSD-2-Clause
# Completion of napier's command line for bash. It asks napier itself for pollers, and the counters
# of a running engine for ports and queues.

_napier_pollers() {
	napier set --help 2>/dev/null | sed -n 's/^ *poller=\([^ ]*\).*/\1/p' | tr '|' ' '
}

_napier_deferrals() {
	napier set --help 2>/dev/null | sed -n 's/^ *deferral=\([^ ]*\).*/\1/p' | tr '|' '\n' |
		sed 's/^looped:.*/looped:1\nlooped:2/'
}

# The engine's CPUs, as its threads irq/N.
_napier_cpus() {
	napier show --json "${engine[@]}" 2>/dev/null | sed -n 's|.*"name": "irq/\([0-9]*\)".*|cpu/\1|p' |
		sort -u
}

# What can be measured: commands, then specifications.
_napier_benches() {
	napier bench --help 2>/dev/null | sed -n '/^Names:/,/^$/s/^  \([a-z]*\)  .*/\1/p'
	napier bench --list 2>/dev/null | sed 's/ .*//'
}

# Of the benchmark that was named, or of none.
_napier_bench_options() {
	napier bench ${1:+"$1"} --help 2>/dev/null |
		sed -n 's/^  \(-., \|    \)\(--[a-z-]*\).*/\2/p' | awk '!seen[$0]++'
}

# Parts of a benchmark, or else systems of a specification; behind those of the list that are there.
_napier_parts() {
	{
		napier bench "$1" --help | sed -n 's/^  \([a-z]*\)  .*/\1/p'
		napier bench "$1" --list | sed -n '/^Systems:/,/^$/s/^  \([^ ]*\)  .*/\1/p'
	} 2>/dev/null | sed "s/^/${cur%"${cur##*,}"}/"
}

# Names of ports and queues of the engine that the command line is about.
_napier_names() {
	napier show --names "${engine[@]}" 2>/dev/null
}

# What else lies in a run directory is no engine.
_napier_engines() {
	local directory=/run/napier file

	[ "$EUID" -eq 0 ] || directory=${XDG_RUNTIME_DIR:-/nonexistent}/napier
	for file in "${base:-$directory}"/*/pid; do
		[ -e "$file" ] && basename "${file%/pid}"
	done
}

_napier_interfaces() {
	ls /sys/class/net 2>/dev/null
}

# What can stand for the word after the options, by how many words stand before it.
_napier_words() {
	local command=$1 before=$2

	case $command in
	run)
		case $cur in
		xdp:* | packet:*) _napier_interfaces | sed "s/^/${cur%%:*}:/" ;;
		pcap:*) compgen -f -- "${cur#pcap:}" | sed 's/^/pcap:/' ;;
		*) printf '%s\n' xdp: packet: tap: pcap: ;;
		esac
		;;
	show)
		[ "$before" -eq 0 ] && _napier_names
		;;
	set)
		case $before:$cur in
		0:*)
			echo default engine
			_napier_names
			_napier_cpus
			;;
		*:poller=*) printf 'poller=%s\n' $(_napier_pollers) ;;
		*:class=*) printf '%s\n' class=fair class=fifo ;;
		*:cpus=*) echo cpus=any ;;
		*:rps_cpus=*) echo rps_cpus=none ;;
		*:gro=*) printf '%s\n' gro=auto gro=on gro=off ;;
		*:symmetric_hash=*) printf '%s\n' symmetric_hash=on symmetric_hash=off ;;
		*:deferral=*) printf 'deferral=%s\n' $(_napier_deferrals) ;;
		[1-9]*:*)
			case $first in
			default) echo poller= ;;
			engine)
				printf '%s\n' cpus= dev_weight= netdev_budget= netdev_budget_usecs= \
					busy_poll= busy_read= gro_normal_batch= netdev_max_backlog= flow_limit= rps_sock_flow_entries= \
					symmetric_hash= deferral=
				;;
			cpu/*) echo deferral= ;;
			*)
				printf '%s\n' poller= weight= idle_suspend= cpu= cpus= class= nice= \
					priority= napi_defer_hard_irqs= gro_flush_timeout= \
					irq_suspend_timeout= gro= \
					rps_cpus= rps_flow_cnt=
				;;
			esac
			;;
		esac
		;;
	bench)
		[ "$before" -eq 0 ] && _napier_benches
		;;
	port)
		case $before in
		0) printf '%s\n' add remove ;;
		1)
			if [ "$first" = remove ]; then
				_napier_names | grep -v /
			else
				_napier_words run 0
			fi
			;;
		*)
			if [ "$first" = add ]; then
				_napier_words set 1
				printf '%s\n' pvid= tagged= untagged=
			fi
			;;
		esac
		;;
	esac
}

_napier_options() {
	local common='--name --run-dir --help'

	case $1 in
	run) echo "$common --config --daemon --handler --host --poller --cpus --frames --no-realtime" ;;
	show) echo "$common --json --fdb --interval --names --softnet" ;;
	set | port | stop) echo "$common" ;;
	rebalance) echo "$common --dry-run --force --interval --json" ;;
	demo) echo '--json --quick --help' ;;
	sim) echo '--seed --seeds --count --jobs --trace --no-faults --help' ;;
	bench) _napier_bench_options "$first" ;;
	esac
}

# The value of an option.
_napier_value() {
	case $1 in
	--name) _napier_engines ;;
	--run-dir | -o | --output) compgen -d -- "$cur" ;;
	-c | --config) compgen -f -- "$cur" ;;
	--handler) printf '%s\n' bridge drop ;;
	--host) _napier_interfaces | sed 's/^/xdp:/' ;;
	--only) _napier_parts "$first" ;;
	--poller) printf '%s\n' $(_napier_pollers) ;;
	esac
}

_napier() {
	# bash splits at = and : too; here a word is what blanks part.
	local line=${COMP_LINE:0:COMP_POINT} cur= command= option= first= base= before=0 word
	local -a words engine
	local candidates

	read -ra words <<<"$line"
	case $line in
	*[[:space:]]) ;;
	*)
		cur=${words[-1]}
		unset 'words[-1]'
		;;
	esac
	for word in "${words[@]:1}"; do
		if [ -n "$option" ]; then
			case $option in
			--name | --run-dir) engine+=("$option" "$word") ;;&
			--run-dir) base=$word ;;
			esac
			option=
		elif [ -z "$command" ]; then
			command=$word
		else
			case $word in
			--name | --run-dir | -c | --config | --handler | --host | --poller | --cpus | --frames | -i | --interval | \
				--seed | --seeds | --count | --jobs | --only | --set | -o | --output | -H | --host)
				option=$word
				;;
			-*) ;;
			*)
				[ "$before" -eq 0 ] && first=$word
				before=$((before + 1))
				;;
			esac
		fi
	done

	if [ -n "$option" ]; then
		candidates=$(_napier_value "$option")
	elif [ -z "$command" ]; then
		candidates='run show set rebalance port stop demo sim bench --help --version'
	elif [[ $cur == -* ]]; then
		candidates=$(_napier_options "$command")
	else
		candidates=$(_napier_words "$command" "$before")
	fi
	mapfile -t COMPREPLY < <(compgen -W "$candidates" -- "$cur")
	# What readline takes for the word begins after the last = or :.
	word=${cur%"${cur##*[=:]}"}
	COMPREPLY=("${COMPREPLY[@]#"$word"}")
	case ${#COMPREPLY[@]}:${COMPREPLY[0]-} in
	1:*= | 1:*:) compopt -o nospace 2>/dev/null ;;
	esac
}

complete -F _napier napier
