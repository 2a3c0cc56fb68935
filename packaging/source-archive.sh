#!/bin/sh
# Makes source archives, the same bytes wherever and whenever they are made of a commit.
set -eu
export LC_ALL=C TZ=UTC

usage() {
    cat <<'END_OF_USAGE'
usage: packaging/source-archive.sh [OPTIONS] [KIND...]

Makes archives of a commit, bit for bit the same wherever and whenever it is done with the same versions
of Cargo and xz. Needs git, GNU tar and xz; Cargo fetches the crates that it has not yet. An archive
unpacks into a folder of its name. The paths of the archives are printed, with their SHA-256 sums.

  plain      percid-VERSION.tar.xz: the files of the commit
  libpercid  libpercid-VERSION.tar.xz: and what the library for C and C++ is built of, without a network
  vendored   percid-VERSION-vendored.tar.xz: and what the commands are built of on Linux, too

Without a KIND all three. In the last two, vendor/ holds the crates that are named in Cargo.lock, and
.cargo/config.toml says so. Of those that are not needed there is the manifest alone: whoever builds
something that needs them (tests, other systems) is told.

  --output DIR     where to put them [default: target/source-archive]
  --revision REV   the commit [default: HEAD; changes that are not committed are not in it]
  --offline        fetches nothing
  -h, --help       shows this
END_OF_USAGE
}

# Systems for which the vendored crates are whole.
targets='x86_64-unknown-linux-gnu x86_64-unknown-linux-musl aarch64-unknown-linux-gnu
riscv64gc-unknown-linux-gnu s390x-unknown-linux-gnu powerpc64le-unknown-linux-gnu'

wrong() {
    echo "packaging/source-archive.sh: $1; --help lists the options" >&2
    exit 2
}

root=$(cd "$(dirname "$0")/.." && pwd)
output=$root/target/source-archive
revision=HEAD
offline=
kinds=
while [ $# -gt 0 ]; do
    case $1 in
        --output | --revision)
            [ $# -gt 1 ] || wrong "$1 needs a value"
            if [ "$1" = --output ]; then output=$2; else revision=$2; fi
            shift
            ;;
        --offline) offline=--offline ;;
        -h | --help)
            usage
            exit
            ;;
        plain | libpercid | vendored) kinds="$kinds $1" ;;
        *) wrong "unknown: $1" ;;
    esac
    shift
done
kinds=${kinds:-plain libpercid vendored}

commit=$(git -C "$root" rev-parse --verify --quiet "$revision^{commit}") ||
    wrong "$revision is no commit of a clone in $root"
SOURCE_DATE_EPOCH=$(git -C "$root" log -1 --format=%ct "$commit")
version=$(git -C "$root" show "$commit:Cargo.toml" |
    sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p')
mkdir -p "$output"
output=$(cd "$output" && pwd)
# Not below the clone, whose configuration Cargo would read too.
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT

name_of() {
    case $1 in
        plain) echo "percid-$version" ;;
        libpercid) echo "libpercid-$version" ;;
        vendored) echo "percid-$version-vendored" ;;
    esac
}

# Packages of the workspace that the archive is for, as options of Cargo.
built_of() {
    case $1 in
        libpercid) echo "--package percid-capi" ;;
        vendored) echo "--all-features --package percid-capi --package percid-cli --package percid-trace-cli" ;;
    esac
}

# The crates that these are built of, one NAME-VERSION a line.
needed() {
    for target in $targets; do
        # shellcheck disable=SC2046 # options
        cargo tree --quiet --locked --offline --manifest-path "$1/Cargo.toml" $(built_of "$2") \
            --edges normal,build --prefix none --target "$target"
    done | sed -n 's/^\([^ ]*\) v\([^ ]*\).*/\1-\2/p' | sort -u
}

# Leaves the manifest of a crate that is not needed, with which Cargo finds Cargo.lock to be whole.
hollow() {
    library=$(sed -n '/^\[lib\]/,/^\[/s/^path = "\(.*\)"/\1/p' "$1/Cargo.toml")
    script=$(sed -n 's/^build = "\(.*\)"/\1/p' "$1/Cargo.toml")
    find "$1" -mindepth 1 -maxdepth 1 ! -name Cargo.toml ! -name .cargo-checksum.json \
        -exec rm -rf {} +
    for file in "${library:-src/lib.rs}" $script; do
        mkdir -p "$1/$(dirname "$file")"
        echo 'compile_error!("not in this source archive: see packaging/source-archive.sh --help");' \
            >"$1/$file"
    done
    sed 's/"files":{[^}]*}/"files":{}/' "$1/.cargo-checksum.json" >"$stage/checksum"
    cat "$stage/checksum" >"$1/.cargo-checksum.json"
}

vendor() {
    folder=$1
    cargo vendor --quiet --locked $offline --versioned-dirs --manifest-path "$folder/Cargo.toml" \
        "$folder/vendor" >/dev/null
    needed "$folder" "$2" >"$stage/needed"
    # Names that no crate is called by: nothing would be left.
    grep -q '^libc-' "$stage/needed" || wrong "Cargo does not say what is needed"
    for crate in "$folder"/vendor/*; do
        grep -qxF -e "$(basename "$crate")" "$stage/needed" || hollow "$crate"
    done
    mkdir -p "$folder/.cargo"
    cat >>"$folder/.cargo/config.toml" <<'END_OF_CONFIGURATION'
[source.crates-io]
replace-with = "vendored-sources"

[source.vendored-sources]
directory = "vendor"
END_OF_CONFIGURATION
}

for kind in $kinds; do
    name=$(name_of "$kind")
    git -C "$root" archive --prefix="$name/" "$commit" | tar -x -C "$stage"
    [ "$kind" = plain ] || vendor "$stage/$name" "$kind"
    # One thread: with more, what xz writes depends on their number.
    tar -c -C "$stage" --format=gnu --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 \
        --numeric-owner --mode=u+rw,go-w,a+rX "$name" | xz -6 --threads=1 >"$stage/$name.tar.xz"
    mv "$stage/$name.tar.xz" "$output/"
    (cd "$output" && sha256sum "$name.tar.xz") | sed "s|  |  $output/|"
done
