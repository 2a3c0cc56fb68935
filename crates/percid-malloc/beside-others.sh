#!/usr/bin/env bash
# Runs a command with percid-malloc, with the C library's allocator, and with others that are installed.
#
# usage: crates/percid-malloc/beside-others.sh ROUNDS COMMAND
#
# COMMAND is a line for bash. Prints the seconds of user and system time, the largest resident set, the exit status
# and a checksum of the output of every run. Needs GNU time, and a library made by:
# cargo build --release -p percid-malloc
set -euo pipefail
usage() { sed -n '2,8s/^# \{0,1\}//p' "$0"; }
case " $* " in *' --help '*) usage; exit 0 ;; esac
[ $# = 2 ] || { usage >&2; exit 2; }
own=$(dirname "$0")/../../target/release/libpercid_malloc.so
[ -e "$own" ] || { echo "expected $own: cargo build --release -p percid-malloc" >&2; exit 2; }

known=$(ldconfig -p)
library() { awk -v name="$1" 'index($1, name) == 1 { print $NF; exit }' <<<"$known"; }

said=$(mktemp)
trap 'rm -f "$said"' EXIT
run() {
    local status=0 sum
    sum=$(set +e; LD_PRELOAD='' /usr/bin/time -o "$said" -f '%U + %S s, %M KiB' \
        env LD_PRELOAD="$2" bash -c "$3" 2>/dev/null | cksum; exit "${PIPESTATUS[0]}") || status=$?
    printf '%-16s %s, status %s, output %s\n' "$1" "$(sed -n '$p' "$said")" "$status" "${sum% *}"
}

for ((round = 0; round < $1; round++)); do
    run glibc '' "$2"
    run percid-malloc "$(realpath "$own")" "$2"
    for name in libmimalloc libjemalloc libtcmalloc; do
        path=$(library "$name")
        [ -z "$path" ] || run "$name" "$path" "$2"
    done
done
