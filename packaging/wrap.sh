#!/bin/sh
# Prints subprojects/percid.wrap for Meson.
#
# usage: packaging/wrap.sh ARCHIVE   (of packaging/source-archive.sh, which is put into subprojects/packagefiles)
set -eu
file=$(basename "$1")
cat <<END_OF_WRAP
[wrap-file]
directory = ${file%.tar.xz}
source_filename = $file
source_hash = $(sha256sum "$1" | cut -d ' ' -f 1)

[provide]
dependency_names = percid
END_OF_WRAP
