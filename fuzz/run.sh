#!/usr/bin/env bash
# Builds the fuzz targets, runs each for some seconds, and prints what that was.
#
# usage: fuzz/run.sh [SECONDS [TARGET...]]
#
# Ten seconds and all targets, unless it is said. The first inputs are those of
# fuzz/seeds.sh; what was found before, in fuzz/corpus, is not used, so that runs can be compared.
# An input that ends a target, takes longer than a second or more than 512 MB stays in
# fuzz/artifacts, and the exit status is 1.
#
# FUZZ_SEED (1) chooses the sequence of inputs. FUZZ_JOBS (2) run at a time. FUZZ_OPTIONS are further ones
# of libFuzzer, such as -timeout=10 where the machine is busy: it measures by the clock on the wall.
# FUZZ_NO_BUILD=yes takes the programs that are there.
set -euo pipefail
cd "$(dirname "$0")/.."

case " $* " in
    *" -h "* | *" --help "*)
        sed -n '2,/^set/ { /^set/d; s/^# \{0,1\}//; p }' "$0"
        exit
        ;;
esac
seconds=${1:-10}
[ $# = 0 ] || shift
nightly=$(sed -n 's/^nightly=//p' .ci/install-tools)
host=$(rustc -vV | sed -n 's/^host: //p')
programs=target/fuzz/$host/release
results=target/fuzz/results
at_once=${FUZZ_JOBS:-2}

targets() { sed -n 's/^name = "\(.*\)"/\1/p' fuzz/Cargo.toml | grep -vx percid-fuzz; }

# As cargo-fuzz does it, but for what fuzz/rustc.sh says.
build() {
    RUSTC_WRAPPER=$PWD/fuzz/rustc.sh RUSTFLAGS="-Zsanitizer=address --cfg fuzzing" \
        cargo "+$nightly" build --release --locked --manifest-path fuzz/Cargo.toml --bins \
        --target "$host" --target-dir target/fuzz
}

# One target; what libFuzzer prints goes to a file.
run() {
    local target=$1 dictionary=fuzz/dictionaries/$1.dict work=$results/$1
    local options=(
        -seed="${FUZZ_SEED:-1}" -max_total_time="$seconds" -print_final_stats=1 -verbosity=1
        -timeout=1 -rss_limit_mb=512 -malloc_limit_mb=512 -max_len=65536
        -artifact_prefix="fuzz/artifacts/$target/"
    )
    [ ! -e "$dictionary" ] || options+=(-dict="$dictionary")
    # Of each pool the address space stays, and AddressSanitizer keeps an eighth of that: some 10 KB for a run.
    [ "$target" != stack ] || options+=(-rss_limit_mb=2048 -runs=80000)
    # shellcheck disable=SC2206 # options without spaces
    options+=(${FUZZ_OPTIONS:-})
    rm -rf "$work"
    mkdir -p "$work/corpus" "fuzz/artifacts/$target"
    local seeds=()
    if [ -d "fuzz/corpus/$target" ]; then
        mkdir "$work/seeds"
        find "fuzz/corpus/$target" -name 'seed-*' -exec cp -t "$work/seeds" {} +
        seeds=("$work/seeds")
    fi
    # AddressSanitizer's quarantine is no memory of the target's.
    ASAN_OPTIONS=quarantine_size_mb=16:detect_odr_violation=0 \
        "$programs/$target" "${options[@]}" "$work/corpus" "${seeds[@]}" \
        >"$work/log" 2>&1 || echo "$?" >"$work/status"
}

# A line of the table.
report() {
    local target=$1 log=$results/$1/log
    awk -v target="$target" -v failed="$(cat "$results/$target/status" 2>/dev/null || true)" '
        / INITED / && /cov:/ { for (i = 1; i < NF; i++) if ($i == "cov:") first = $(i + 1) }
        / cov: / { for (i = 1; i < NF; i++) if ($i == "cov:") last = $(i + 1) }
        $1 == "stat::number_of_executed_units:" { runs = $2 }
        $1 == "stat::average_exec_per_sec:" { rate = $2 }
        $1 == "stat::new_units_added:" { inputs = $2 }
        $1 == "stat::slowest_unit_time_sec:" { slowest = $2 }
        $1 == "stat::peak_rss_mb:" { memory = $2 }
        END {
            printf "%-17s %10d %8d %7d %8d %7d %7d %8d  %s\n", target, runs, rate, first,
                last - first, inputs, memory, slowest, failed ? "FAILED, see below" : "none"
        }' "$log"
}

[ -n "${FUZZ_NO_BUILD:-}" ] || build
fuzz/seeds.sh
[ $# -gt 0 ] || mapfile -t chosen < <(targets)
[ $# = 0 ] || chosen=("$@")
for target in "${chosen[@]}"; do
    while [ "$(jobs -rp | wc -l)" -ge "$at_once" ]; do wait -n; done
    run "$target" &
done
wait
echo "fuzzed for $seconds s each, seed ${FUZZ_SEED:-1}, at most $at_once at a time"
printf '%-17s %10s %8s %7s %8s %7s %7s %8s  %s\n' \
    target runs runs/s edges '+edges' '+inputs' MB slowest/s findings
failed=0
for target in "${chosen[@]}"; do report "$target"; done
for target in "${chosen[@]}"; do
    if [ -e "$results/$target/status" ]; then
        failed=1
        echo "--- $target: status $(cat "$results/$target/status")"
        tail -n 60 "$results/$target/log"
    fi
done
exit $failed
