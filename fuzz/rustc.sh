#!/bin/sh
# A wrapper of rustc, for RUSTC_WRAPPER: percid's own crates tell the fuzzer which ways an input takes.
# Where all crates do, as with cargo-fuzz, Arrow and Parquet take longer to build than all else together.
set -eu
case ${CARGO_PKG_NAME:-} in
    percid*)
        exec "$@" -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
            -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
            -Cllvm-args=-sanitizer-coverage-pc-table \
            -Cllvm-args=-sanitizer-coverage-trace-compares \
            -Cllvm-args=-simplifycfg-branch-fold-threshold=0
        ;;
    *) exec "$@" ;;
esac
