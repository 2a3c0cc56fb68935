#!/usr/bin/env bash
# Runs a program in a scratch copy of this system, and says which files it has left there.
#
# usage: unshare --mount packaging/debian/in-scratch-root.sh DIR PROGRAM
#
# The copy is an overlay: this system's files, and on top of them, in memory, what is changed. DIR is copied to
# /packages, and PROGRAM runs in it as root.
set -euo pipefail

packages=$1
program=$2
layers=$packages/scratch
mkdir "$layers"
mount -t tmpfs percid-scratch "$layers"
mkdir "$layers"/{changes,work,root}
mount -t overlay overlay -o "lowerdir=/,upperdir=$layers/changes,workdir=$layers/work" "$layers/root" || {
    echo "$0: this kernel or container permits no overlay: packages cannot be installed for a trial" >&2
    exit 1
}
root=$layers/root
for folder in proc sys dev; do
    mount --rbind "/$folder" "$root/$folder"
done
mount -t tmpfs percid-scratch "$root/tmp"
mkdir "$root/packages"
here=$(dirname "$program")
cp "$packages"/*.deb "$program" "$root/packages/"
cp -r "$here/debian/tests" "$root/packages/tests"
cp -r "$here/../../examples/debian" "$root/packages/example"
chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp LC_ALL=C.UTF-8 \
    "/packages/$(basename "$program")"

# What packages may leave: what the package manager, the dynamic linker and man know.
left=$(cd "$layers/changes" && find . ! -type d ! -path './packages/*' ! -path './var/lib/dpkg/*' \
    ! -path './var/lib/apt/*' ! -path './var/log/*' ! -path './var/cache/*' ! -path './etc/ld.so.cache')
[ -z "$left" ] || {
    printf '%s: these files are left or changed:\n%s\n' "$0" "$left" >&2
    exit 1
}
