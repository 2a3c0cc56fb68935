#!/usr/bin/env bash
# Unpacks the C library of a newer Debian (2.41 registers as many bytes for rseq as the kernel announces) into a
# folder, for PERCID_NEWER_LIBC. Nothing is installed.
set -euo pipefail

[ $# = 1 ] || { echo "usage: $0 FOLDER" >&2; exit 2; }
mkdir -p "$1"
cd "$1"
[ -e usr/lib/x86_64-linux-gnu/libc.so.6 ] && exit

# The mirror is the one that this machine uses.
mirror=$(apt-get indextargets --format '$(LABEL) $(REPO_URI)' | sed -n 's/^Debian //p' | sed -n 1p)
[ -n "$mirror" ] || { echo "$0: the package lists name no mirror of Debian: run apt-get update" >&2; exit 1; }

mkdir -p apt/lists/partial apt/cache/archives/partial
echo "deb $mirror trixie main" >apt/sources.list
cat >apt/apt.conf <<END
Dir::Etc::sourcelist "$PWD/apt/sources.list";
Dir::Etc::sourceparts "-";
Dir::State::lists "$PWD/apt/lists";
Dir::State::status "/dev/null";
Dir::Cache "$PWD/apt/cache";
APT::Architecture "amd64";
APT::Architectures {"amd64";};
APT::Sandbox::User "root";
Acquire::Languages "none";
END
apt-get -qq -c apt/apt.conf update
apt-get -qq -c apt/apt.conf download libc6 libgcc-s1
for package in *.deb; do dpkg-deb -x "$package" .; done
rm -r apt ./*.deb
