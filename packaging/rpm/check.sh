#!/usr/bin/env bash
# Builds the library's RPM packages of the commit, and compiles and runs a program against what is in them.
# Everything is below target/rpm; nothing is installed.
#
# usage: packaging/rpm/check.sh
set -euo pipefail
cd "$(dirname "$0")/../.."

work=$PWD/target/rpm
spec=$PWD/packaging/rpm/percid.spec
rm -rf "$work"
mkdir -p "$work/root"

wrong() {
    echo "packaging/rpm/check.sh: $1" >&2
    exit 1
}

version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
[ "$(rpmspec --query --srpm --queryformat '%{version}' "$spec")" = "$version" ] ||
    wrong "the spec file is of another version than $version"
packaging/source-archive.sh --output "$work/SOURCES" libpercid
# Debian's rpm knows nothing of what is installed here: --nodeps.
rpmbuild -bb --quiet --nodeps --without commands --without check --define "_topdir $work" "$spec" \
    >"$work/log" 2>&1 || {
    cat "$work/log"
    wrong "rpmbuild failed"
}
packages=("$work"/RPMS/*/*.rpm)
printf '%s\n' "${packages[@]##*/}"

provided() { rpm --query --package --provides "$work"/RPMS/*/"percid-$1-$version"-*.rpm; }
provided libs | grep -xF 'libpercid.so.1(PERCID_1)(64bit)' >/dev/null || wrong "the library's symbol version is not provided"
provided devel | grep '^percid-static = ' >/dev/null || wrong "the static library is not provided"
rpm --query --package --requires "$work"/RPMS/*/"percid-devel-$version"-*.rpm | grep '^percid-libs' >/dev/null ||
    wrong "percid-devel does not need percid-libs"

for package in "${packages[@]}"; do
    (cd "$work/root" && rpm2cpio "$package" | cpio --extract --make-directories --quiet)
done
libdir=$work/root$(rpm --eval '%{_libdir}')
export PKG_CONFIG_SYSROOT_DIR=$work/root PKG_CONFIG_LIBDIR=$libdir/pkgconfig
# shellcheck disable=SC2046 # options
cc -O2 -pthread examples/c/counters.c $(pkg-config --cflags --libs percid) -o "$work/counters"
LD_LIBRARY_PATH=$libdir "$work/counters"
# By its place: Debian's CMake does not look into lib64.
cmake -S examples/cmake -B "$work/cmake" "-Dpercid_DIR=$libdir/cmake/percid" >"$work/log"
cmake --build "$work/cmake" >"$work/log"
LD_LIBRARY_PATH=$libdir "$work/cmake/requests"
