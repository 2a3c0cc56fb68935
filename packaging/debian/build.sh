#!/bin/sh
# Makes Debian packages of a commit.
set -eu
export LC_ALL=C

usage() {
    cat <<'END_OF_USAGE'
usage: packaging/debian/build.sh [OPTIONS]

Makes Debian packages of a commit: a source package that contains the crates it needs, and of that alone,
without a network, the binary packages libpercid1, libpercid-dev (the library for C and C++) and percid
(the commands). All is put into one folder; the file NAME.changes there lists it.

Needed are dpkg-dev, debhelper, Python 3.11, what packaging/source-archive.sh needs, and Rust 1.87. If
cargo and rustc are not Debian's, as on releases with an older Rust, those of PATH are used, and the
packages are built with the profile pkg.percid.othertoolchain, which leaves the dependencies on Debian's away.
DEB_BUILD_OPTIONS (parallel=N, nocheck) are passed on. Lintian is not run: packaging/debian/check.sh does.

  --output DIR       where to put them; emptied first [default: target/debian]
  --revision REV     the commit [default: HEAD; changes that are not committed are not in it]
  --library          without the package percid, whose crates take minutes to build
                     (profile pkg.percid.nocommands)
  --source           only the source package
  --maintainer TEXT  "NAME <ADDRESS>" of whoever gives the packages to others
                     [default: an address where nobody reads]
  --offline          fetches no crates
  -h, --help         shows this
END_OF_USAGE
}

wrong() {
    echo "packaging/debian/build.sh: $1" >&2
    exit "${2:-1}"
}

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
output=$root/target/debian
revision=HEAD
kind=vendored
profiles=
task=full
maintainer=
offline=
while [ $# -gt 0 ]; do
    case $1 in
        --output | --revision | --maintainer)
            [ $# -gt 1 ] || wrong "$1 needs a value" 2
            case $1 in
                --output) output=$2 ;;
                --revision) revision=$2 ;;
                --maintainer) maintainer=$2 ;;
            esac
            shift
            ;;
        --library)
            kind=libpercid
            profiles=pkg.percid.nocommands
            ;;
        --source) task=source ;;
        --offline) offline=--offline ;;
        -h | --help)
            usage
            exit
            ;;
        *) wrong "unknown: $1; --help lists the options" 2 ;;
    esac
    shift
done

# The toolchain itself: rustup's cargo finds that by $HOME, which debhelper hides.
if [ "$(command -v cargo)" != /usr/bin/cargo ]; then
    PATH=$(rustc --print sysroot)/bin:$PATH
    profiles="$profiles pkg.percid.othertoolchain"
fi
export DEB_BUILD_PROFILES="${DEB_BUILD_PROFILES:-} $profiles"

# What lies in DIR is replaced, if this program has made it.
mark=$output/.made-by-build.sh
if [ -d "$output" ] && [ ! -e "$mark" ] && [ -n "$(ls -A "$output")" ]; then
    wrong "$output holds files of others"
fi
rm -rf "$output"
mkdir -p "$output"
: >"$mark"
output=$(cd "$output" && pwd)

# From the commit's archive.
"$root/packaging/source-archive.sh" --output "$output/archive" --revision "$revision" $offline $kind
archive=$(echo "$output"/archive/*.tar.xz)
mkdir "$output/unpacked"
tar -x -C "$output/unpacked" -f "$archive"
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' "$output"/unpacked/*/Cargo.toml)
tree=$output/percid-$version
mv "$output"/unpacked/* "$tree"
rmdir "$output/unpacked"
mv "$archive" "$output/percid_$version.orig.tar.xz"
rmdir "$output/archive"

# The folder debian/ of the same commit, and the licences of what the archive holds.
folder=$tree/packaging/debian
cp -R "$folder/debian" "$tree/debian"
CARGO_HOME=$output/cargo-home "$folder/copyright.py" "$tree" >"$tree/debian/copyright"
rm -rf "$output/cargo-home"
"$folder/symbols.sh" --check
if [ -n "$maintainer" ]; then
    sed -i "s|^Maintainer: .*|Maintainer: $maintainer|" "$tree/debian/control"
    sed -i "s|^ -- .*>  | -- $maintainer  |" "$tree/debian/changelog"
fi
packaged=$(dpkg-parsechangelog -l "$tree/debian/changelog" -S Version)
[ "${packaged%-*}" = "$version" ] || wrong "debian/changelog has $packaged, but this is percid $version"

cd "$tree"
dpkg-buildpackage --build="$task" --no-sign --sanitize-env
