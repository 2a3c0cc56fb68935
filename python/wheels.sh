#!/usr/bin/env bash
# Builds the wheels that can be built on Linux: python/wheels.sh [FOLDER], by default target/python/wheels.
#
# For x86-64 and 64-bit Arm, for every distribution with glibc 2.17 or later (manylinux2014) and for musl
# (musllinux_1_2): Zig is linker and C compiler, which has the libraries of both. One wheel serves every
# Python from 3.10 on. macOS and Windows: see docs/how-to/sweep-parameters.md.
set -euo pipefail
cd "$(dirname "$0")"

out=$(realpath -m "${1:-../target/python/wheels}")
place=$(realpath -m ../target/python)
mkdir -p "$place"
[ -x "$place/zig/bin/maturin" ] || {
    python3 -m venv "$place/zig"
    "$place/zig/bin/pip" install --quiet "maturin[zig]>=1.9,<2"
}
# Zig is run as python-zig, or from the environment.
export PATH=$place/zig/bin:$PATH
for target in x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu x86_64-unknown-linux-musl aarch64-unknown-linux-musl; do
    rustup target add --toolchain "$(rustup show active-toolchain | cut -d ' ' -f 1)" "$target" >/dev/null
    case $target in
        *-gnu) compatibility=manylinux2014 ;;
        *) compatibility=musllinux_1_2 ;;
    esac
    maturin build --release --locked --zig --target "$target" --compatibility "$compatibility" \
        --target-dir "$place/cross" --out "$out"
done
ls -l "$out"
