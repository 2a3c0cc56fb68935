#!/bin/sh
# Puts what other tests read into the corpora: fuzz/corpus/TARGET. What is there already stays.
set -eu
cd "$(dirname "$0")/.."

traces=crates/percid-trace/tests/fixtures

# Copies files to the corpus of a target.
seed() {
    target=$1
    shift
    mkdir -p "fuzz/corpus/$target"
    for file in "$@"; do
        cp "$file" "fuzz/corpus/$target/seed-$(basename "$file")"
    done
}

# The same, but the first lines only: long inputs are few inputs.
seed_lines() {
    target=$1 lines=$2
    shift 2
    mkdir -p "fuzz/corpus/$target"
    for file in "$@"; do
        head --lines "$lines" "$file" >"fuzz/corpus/$target/seed-$(basename "$file")"
    done
}

seed perf_data "$traces"/*.data
seed trace_dat "$traces"/*.dat
seed packed "$traces"/*.gz
for file in "$traces"/*.txt.gz; do
    mkdir -p fuzz/corpus/ftrace_text
    gzip -dc "$file" | head --lines 40 >"fuzz/corpus/ftrace_text/seed-$(basename "$file" .gz)"
done
seed_lines ftrace_text 40 "$traces"/*.script.txt "$traces"/trace*.txt "$traces"/instances*.txt "$traces"/timehist.txt
seed ftrace_text "$traces"/reported/*.txt
seed perfetto "$traces"/perfetto/*.pftrace "$traces"/reported/*.pftrace
seed parquet "$traces"/build.parquet "$traces"/wakes.parquet "$traces"/counters.parquet
seed machine_file crates/percid-sim/machines/*.toml
seed workload_file crates/percid-sim/workloads/*.toml
seed_lines recording 60 crates/percid-sim/tests/recordings/*.txt
for file in fuzz/corpus/recording/seed-*; do
    tail --lines 1 "$file" | grep -qx end || echo end >>"$file"
done
# Ours, which no other test has.
for folder in fuzz/seeds/*; do
    seed "$(basename "$folder")" "$folder"/*
done
