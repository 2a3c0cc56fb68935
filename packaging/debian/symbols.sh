#!/bin/sh
# Writes the symbols file of libpercid1, by which packages get their dependency on it.
set -eu
export LC_ALL=C

usage() {
    cat <<'END_OF_USAGE'
usage: packaging/debian/symbols.sh [OPTIONS]

Writes packaging/debian/debian/libpercid1.symbols anew: every symbol that the library exports, with the
version of percid in which it first was. That is what programs get as their dependency's version.

Programs in C and C++ refer to the table percid_interface_1 alone, to which functions are appended. So the
table has the newest version of all: a program that was compiled with this libpercid-dev may use all that
is in it.

  --check         writes nothing; fails if the file is not as it would be written
  --symbols FILE  the symbols file [default: debian/libpercid1.symbols beside this script]
  --map FILE      the linker's version script [default: crates/percid-capi/percid.map]
  --version NAME  the version of percid [default: Cargo.toml's]
  -h, --help      shows this
END_OF_USAGE
}

wrong() {
    echo "packaging/debian/symbols.sh: $1" >&2
    exit "${2:-1}"
}

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
symbols=$here/debian/libpercid1.symbols
map=$root/crates/percid-capi/percid.map
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' "$root/Cargo.toml")
check=
while [ $# -gt 0 ]; do
    case $1 in
        --symbols | --map | --version)
            [ $# -gt 1 ] || wrong "$1 needs a value" 2
            case $1 in
                --symbols) symbols=$2 ;;
                --map) map=$2 ;;
                --version) version=$2 ;;
            esac
            shift
            ;;
        --check) check=yes ;;
        -h | --help)
            usage
            exit
            ;;
        *) wrong "unknown: $1; --help lists the options" 2 ;;
    esac
    shift
done

# NAME@NODE of all that is exported.
exported() {
    awk '/^PERCID_[0-9]+ \{/ { node = $1 }
         /^[ \t]+[a-z][a-z0-9_]*;$/ { sub(/;/, ""); print $1 "@" node }' "$map" | sort
}

current() {
    echo 'libpercid.so.1 libpercid1 #MINVER#'
    echo '* Build-Depends-Package: libpercid-dev'
    # The nodes are symbols too, and as old as the first of theirs.
    {
        exported
        exported | sed 's/.*@\(.*\)/\1@\1/' | sort -u
    } | while read -r symbol; do
        since=$(awk -v symbol="$symbol" '$1 == symbol { print $2 }' "$symbols" 2>/dev/null || true)
        echo " $symbol ${since:-$version}"
    done | sort >"$work/lines"
    newest=$(sed 's/.* //' "$work/lines" | sort -V | tail -n 1)
    sed "s/^\( percid_interface_[0-9]*@.*\) .*/\1 $newest/" "$work/lines"
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
current >"$work/new"
if [ -e "$symbols" ]; then
    gone=$(awk '/^ / { print $1 }' "$symbols" | sort | while read -r symbol; do
        grep -qF -e " $symbol " "$work/new" || echo "$symbol"
    done)
    [ -z "$gone" ] || wrong "symbols are never taken back, but these are not exported any more: $gone"
fi
if [ -z "$check" ]; then
    cat "$work/new" >"$symbols"
elif ! diff -u "$symbols" "$work/new"; then
    wrong "$symbols is not current: run packaging/debian/symbols.sh"
fi
