#!/usr/bin/env bash
# Builds the Debian packages of the commit, has lintian look at them, installs them into a scratch copy of this
# system, uses them there, and removes them.
#
# usage: packaging/debian/check.sh [--long]
#
# --long: with the commands' package and with the tests that the packages' build has; else the libraries alone.
# Needs root, or sudo, for a mount namespace.
set -euo pipefail
cd "$(dirname "$0")/../.."

long=
case ${1-} in
    '') ;;
    --long) long=yes ;;
    *)
        echo "usage: packaging/debian/check.sh [--long]" >&2
        exit 2
        ;;
esac

output=$PWD/target/debian
here=$PWD/packaging/debian

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

wrong() {
    echo "packaging/debian/check.sh: $1" >&2
    exit 1
}

refused() {
    if "$@" >"$output/refused" 2>&1; then wrong "was not refused: $*"; fi
}

lint() { lintian --no-cfg --allow-root --fail-on error,warning "$@"; }

build() {
    local options=parallel=$(nproc)
    [ "$long" ] || options="nocheck $options"
    DEB_BUILD_OPTIONS=$options "$here/build.sh" --output "$output" $([ "$long" ] || echo --library) >"$output.log" 2>&1 || {
        cat "$output.log"
        wrong "cannot build the packages"
    }
}

# What must be noticed.
check_controls() {
    local tree=$output/percid-$version work=$output/controls
    mkdir "$work"
    # A file where packages have none.
    dpkg-deb --raw-extract "$output"/libpercid1_*.deb "$work/misplaced"
    mkdir -p "$work/misplaced/usr/local/lib"
    : >"$work/misplaced/usr/local/lib/misplaced"
    dpkg-deb --build --root-owner-group "$work/misplaced" "$work/libpercid1_0_$architecture.deb" >/dev/null
    refused lint "$work/libpercid1_0_$architecture.deb"
    grep -q 'usr/local' "$output/refused" || wrong "lintian does not say what is misplaced"

    cd "$tree"
    symbols() {
        dpkg-gensymbols -c4 -plibpercid1 -Pdebian/libpercid1 "-I$work/symbols" "-O$work/found"
    }
    cp debian/libpercid1.symbols "$work/symbols"
    symbols
    # One that the library has not, and one that the file has not.
    echo ' percid_never@PERCID_1 0.1.0' >>"$work/symbols"
    refused symbols
    sed '/percid_version@/d' debian/libpercid1.symbols >"$work/symbols"
    refused symbols
    sed 's/percid_version;/&\n        percid_later;/' crates/percid-capi/percid.map >"$work/map"
    refused "$here/symbols.sh" --check --map "$work/map"
    cp debian/libpercid1.symbols "$work/symbols"
    "$here/symbols.sh" --map "$work/map" --version 7.0 --symbols "$work/symbols"
    [ "$(diff debian/libpercid1.symbols "$work/symbols" | sed -n 's/^> //p')" = \
        "$(printf ' percid_interface_1@PERCID_1 7.0\n percid_later@PERCID_1 7.0')" ] ||
        wrong "a new function makes the wrong dependency"

    # A file in no package.
    dh_missing --fail-missing
    : >debian/tmp/usr/stray
    refused dh_missing --fail-missing
    cd - >/dev/null
}

build
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
architecture=$(dpkg --print-architecture)
lint --pedantic --display-info --tag-display-limit 0 "$output"/*.changes
check_controls
as_root unshare --mount "$here/in-scratch-root.sh" "$output" "$here/use.sh"
