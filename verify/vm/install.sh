#!/bin/sh
# Installs what the real-kernel tests need on Debian: the emulator, the tools
# that unpack kernels and packages, and what a static build links with.
# Does nothing, quickly, where everything is there. Packages that are named as
# arguments are installed as well.
set -eu

packages="qemu-system-x86 zstd lz4 xz-utils gzip cpio gcc libc6-dev $*"

# The package lists must know the kernels that the harness will download.
kernels="linux-image-cloud-amd64 linux-image-6.12-cloud-amd64"

is_installed() {
    test "$(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null)" = installed
}

missing=
for package in $packages; do
    is_installed "$package" || missing="$missing $package"
done

update=$missing
for kernel in $kernels; do
    apt-cache show --no-all-versions "$kernel" >/dev/null 2>&1 || update=yes
done

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
