#!/bin/bash -eu
# Builds the fuzz targets for OSS-Fuzz: the programs, their first inputs, dictionaries and options go to
# $OUT. OSS-Fuzz sets SRC, OUT and SANITIZER, and chooses the compiler.
cd "$SRC/percid"

# For coverage the compiler's own instrumentation comes with the flags that OSS-Fuzz sets.
sanitizer=$SANITIZER
[ "$sanitizer" != coverage ] || sanitizer=none
# Options of cargo-fuzz may be given, to try this script: --no-default-features leaves the files of traces out.
cargo fuzz build --release --sanitizer "$sanitizer" "$@"

fuzz/seeds.sh
host=$(rustc -vV | sed -n 's/^host: //p')
for program in $(sed -n 's/^name = "\(.*\)"/\1/p' fuzz/Cargo.toml | grep -vx percid-fuzz); do
    built=fuzz/target/$host/release/$program
    [ -e "$built" ] || continue
    cp "$built" "$OUT/"
    printf '[libfuzzer]\ntimeout = 10\nrss_limit_mb = 1024\nmax_len = 65536\n' >"$OUT/$program.options"
    dictionary=fuzz/dictionaries/$program.dict
    [ ! -e "$dictionary" ] || cp "$dictionary" "$OUT/"
    corpus=fuzz/corpus/$program
    [ ! -d "$corpus" ] || zip --quiet --junk-paths "$OUT/${program}_seed_corpus.zip" "$corpus"/seed-*
done
