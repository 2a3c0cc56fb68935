#!/usr/bin/env bash
# Installs percid for C and C++ in every way that its README has, from a source archive, without a network, and builds
# the examples with each.
#
# usage: packaging/check.sh [--long] [PART...]
set -euo pipefail
cd "$(dirname "$0")/.."

short='archive cmake meson vcpkg'
parts=()
long=
for argument in "$@"; do
    case $argument in
        --long) long=yes ;;
        archive | commands | cmake | meson | vcpkg | conan) parts+=("$argument") ;;
        *)
            echo "packaging/check.sh: there is no '$argument': archive, commands, cmake, meson, vcpkg, conan" >&2
            exit 2
            ;;
    esac
done
if [ ${#parts[@]} = 0 ]; then
    read -ra parts <<<"$short${long:+ commands conan}"
fi

root=$PWD
work=$root/target/packaging-check
rm -rf "$work"
# Nothing that Cargo has fetched before, and no configuration but the archive's.
mkdir -p "$work/no-crates"
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
archive=$work/one/libpercid-$version.tar.xz

# A command without a network, where the kernel lets us take it away.
offline() {
    if unshare --map-root-user --net true 2>/dev/null; then
        CARGO_HOME=$work/no-crates unshare --map-root-user --net "$@"
    else
        CARGO_HOME=$work/no-crates CARGO_NET_OFFLINE=true "$@"
    fi
}

wrong() {
    echo "packaging/check.sh: $1" >&2
    exit 1
}

quietly() {
    "$@" >"$work/log" 2>&1 || { cat "$work/log"; wrong "failed: $*"; }
}

refused() {
    if "$@" >"$work/log" 2>&1; then wrong "was not refused: $*"; fi
}

# The sources, in a folder of this name.
unpacked() {
    mkdir -p "$work/$1"
    tar -x -C "$work/$1" -f "$archive"
    echo "$work/$1/libpercid-$version"
}

make_archive() { packaging/source-archive.sh --output "$work/one" "$@"; }

# The same bytes from another clone, elsewhere, with other rights, at another time.
check_archive() {
    git clone --quiet . "$work/clone"
    mkdir "$work/elsewhere"
    (
        umask 077
        TMPDIR=$work/elsewhere "$work/clone/packaging/source-archive.sh" --offline \
            --output "$work/two" libpercid
    )
    cmp "$archive" "$work/two/libpercid-$version.tar.xz"
    local source
    source=$(unpacked refused)
    (cd "$source" && refused offline cargo check --frozen --package percid-cli)
    grep -q 'not in this source archive' "$work/log" || wrong "Cargo does not say what is missing"
}

# The commands, from the archive with all crates.
check_commands() {
    make_archive vendored
    tar -x -C "$work" -f "$work/one/percid-$version-vendored.tar.xz"
    local folder=$work/percid-$version-vendored
    (cd "$folder" && offline cargo build --frozen --package percid-cli --package percid-trace-cli)
    "$folder/target/debug/percid" --version
}

# The program of the examples counts, and needs the shared library or not.
counts() {
    [ "$("$1")" = "400000 requests" ] || wrong "$1 does not count"
    case $2-$(readelf -d "$1") in
        shared-*libpercid.so.1*) ;;
        static-*libpercid.so.1*) wrong "$1 needs libpercid.so.1" ;;
        static-*) ;;
        *) wrong "$1 does not need libpercid.so.1" ;;
    esac
}

check_cmake() {
    local source prefix=$work/cmake/prefix
    source=$(unpacked cmake)
    quietly cmake -S "$source" -B "$work/cmake/build" "-DCMAKE_INSTALL_PREFIX=$prefix"
    quietly offline cmake --build "$work/cmake/build"
    quietly env "DESTDIR=$work/cmake/stage" cmake --install "$work/cmake/build"
    [ -e "$work/cmake/stage$prefix/lib/libpercid.a" ] || wrong "not staged"
    [ ! -e "$prefix" ] || wrong "not only staged"
    quietly cmake --install "$work/cmake/build"

    # What a stranger has: the example alone, and the installed files.
    cp -r examples/cmake "$work/cmake/example"
    quietly cmake -S "$work/cmake/example" -B "$work/cmake/installed" "-DCMAKE_PREFIX_PATH=$prefix"
    quietly cmake --build "$work/cmake/installed"
    counts "$work/cmake/installed/requests" shared
    sed 's/percid 0.1/percid 0.2/' examples/cmake/CMakeLists.txt >"$work/cmake/example/CMakeLists.txt"
    refused cmake -S "$work/cmake/example" -B "$work/cmake/later" "-DCMAKE_PREFIX_PATH=$prefix"

    # As a part of another project.
    # shellcheck disable=SC2016 # CMake's variable
    sed 's/find_package(percid.*/include(FetchContent)\
FetchContent_Declare(percid URL ${ARCHIVE} FIND_PACKAGE_ARGS 0.1)\
FetchContent_MakeAvailable(percid)\
add_library(plugin MODULE requests.cpp)\
target_link_libraries(plugin PRIVATE percid::static)/' examples/cmake/CMakeLists.txt >"$work/cmake/example/CMakeLists.txt"
    quietly cmake -S "$work/cmake/example" -B "$work/cmake/part" -G Ninja "-DARCHIVE=$archive" \
        -DBUILD_SHARED_LIBS=OFF
    quietly offline cmake --build "$work/cmake/part"
    counts "$work/cmake/part/requests" static
    case $(readelf -d "$work/cmake/part/libplugin.so") in
        *NODELETE*) ;;
        *) wrong "a plugin does not stay loaded" ;;
    esac

    quietly cmake --build "$work/cmake/build" --target uninstall
    [ ! -e "$prefix" ] || wrong "something is left in $prefix"
}

check_meson() {
    local prefix=$work/meson/prefix folder=$work/meson/example
    mkdir -p "$work/meson"
    cp -r examples/meson "$folder"
    refused meson setup "$work/meson/without" "$folder"

    # As a part of another project, which installs it too.
    mkdir -p "$folder/subprojects/packagefiles"
    cp "$archive" "$folder/subprojects/packagefiles/"
    packaging/wrap.sh "$archive" >"$folder/subprojects/percid.wrap"
    local kind
    for kind in shared static; do
        quietly meson setup "$work/meson/$kind" "$folder" "--default-library=$kind" "--prefix=$prefix" --libdir=lib
        quietly offline ninja -C "$work/meson/$kind"
        counts "$work/meson/$kind/requests" "$kind"
    done
    quietly meson install -C "$work/meson/shared"

    # With the installed files alone, by pkg-config.
    rm -r "$folder/subprojects"
    quietly env "PKG_CONFIG_PATH=$prefix/lib/pkgconfig" meson setup "$work/meson/installed" "$folder"
    quietly ninja -C "$work/meson/installed"
    LD_LIBRARY_PATH=$prefix/lib counts "$work/meson/installed/requests" shared
}

check_vcpkg() {
    local source linkage
    source=$(unpacked vcpkg)
    for linkage in static ${long:+dynamic}; do
        quietly offline cmake "-DLINKAGE=$linkage" "-DWORK=$work/vcpkg" -P "$source/packaging/vcpkg/stand-in.cmake"
        # It moves packages to where they are used.
        mv "$work/vcpkg/packages/percid" "$work/vcpkg/installed"
        quietly cmake -S examples/cmake -B "$work/vcpkg/example-$linkage" "-DCMAKE_PREFIX_PATH=$work/vcpkg/installed"
        quietly cmake --build "$work/vcpkg/example-$linkage"
        counts "$work/vcpkg/example-$linkage/requests" "${linkage/dynamic/shared}"
        PKG_CONFIG_PATH=$work/vcpkg/installed/lib/pkgconfig pkg-config --exists 'percid >= 0.1'
        rm -r "$work/vcpkg/installed" "$work/vcpkg/buildtrees"
    done
}

check_conan() {
    local source shared
    source=$(unpacked conan)
    export CONAN_HOME=$work/conan/home
    quietly target/conan/bin/conan profile detect
    for shared in False True; do
        quietly offline target/conan/bin/conan create "$source/packaging/conan" -s compiler.cppstd=17 \
            -o "percid/*:shared=$shared" -c "tools.cmake.cmake_layout:test_folder=$work/conan/example-$shared"
        counts_in_log
    done
}

counts_in_log() { grep -qx '400000 requests' "$work/log" || wrong "the test package does not count"; }

make_archive libpercid
for part in "${parts[@]}"; do
    started=$SECONDS
    "check_$part"
    printf '%s: %d s\n' "$part" $((SECONDS - started))
done
