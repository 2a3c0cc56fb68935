#!/bin/sh
# Installs what the real-kernel tests need on Debian: the emulators, the tools
# that fetch and unpack kernels, and what static builds link with, for the
# machines of either architecture.
# Does nothing, quickly, where everything is there. Packages that are named as
# arguments are installed as well.
set -eu

packages="qemu-system-x86 qemu-system-arm debian-archive-keyring zstd lz4 xz-utils gzip cpio \
    gcc libc6-dev gcc-aarch64-linux-gnu libc6-dev-arm64-cross $*"
target=aarch64-unknown-linux-gnu

is_installed() {
    test "$(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null)" = installed
}

missing=
for package in $packages; do
    is_installed "$package" || missing="$missing $package"
done

# The harness learns from the package lists where Debian's archives are.
update=$missing
for label in Debian Debian-Security; do
    apt-get indextargets --format '$(LABEL)' | grep --quiet --line-regexp "$label" || update=yes
done

if command -v rustup >/dev/null; then
    rustup target list --installed | grep --quiet --line-regexp "$target" || rustup target add "$target"
fi

if [ -z "$missing$update" ]; then
    echo "percid-vm: all packages are installed"
    exit 0
fi

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    else
        sudo "$@"
    fi
}

as_root env DEBIAN_FRONTEND=noninteractive apt-get update --quiet
if [ -n "$missing" ]; then
    echo "percid-vm: installing$missing"
    # shellcheck disable=SC2086 # a list of words
    as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install --quiet --yes --no-install-recommends $missing
fi
