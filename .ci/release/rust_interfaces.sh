#!/usr/bin/env bash
# Compares the public interfaces of the libraries with those of another commit, by cargo-semver-checks:
# is the version in Cargo.toml high enough for what has changed?
#
# usage: .ci/release/rust_interfaces.sh [COMMIT]
#
# Without a COMMIT: with the last release, a tag v*; there may be none. Exit status: 0 if the version may
# stay what it is, 1 if not.
set -euo pipefail
cd "$(dirname "$0")/../.."

# Those that others are to use. What the commands have in common promises nothing.
libraries=(percid percid-rules percid-numa percid-sim percid-trace percid-tracing percid-metrics
    percid-check percid-opentelemetry percid-report percid-sync percid-alloc)

checks() {
    target/cargo-semver-checks/bin/cargo-semver-checks semver-checks --color never "$@"
}

# A function that this commit does not have, in a copy of it that is taken for the release before.
control() {
    local folder status=0
    folder=$(mktemp -d)
    git archive HEAD | tar -x -C "$folder"
    printf '\n/// Removed since.\npub fn removed_since() {}\n' >>"$folder/crates/percid-rules/src/lib.rs"
    checks -p percid-rules --baseline-root "$folder" --release-type minor >"$folder/said" 2>&1 || status=$?
    if [ "$status" = 0 ] || ! grep -q 'removed_since' "$folder/said"; then
        echo "control: a function that was removed is not noticed" >&2
        cat "$folder/said" >&2
        exit 2
    fi
    echo "control: a function that was removed is noticed"
    rm -rf "$folder"
}

control
release=${1:-$(git describe --tags --abbrev=0 --match 'v*' 2>/dev/null || true)}
if [ -z "$release" ]; then
    echo "Rust interfaces: no release yet"
    exit
fi
checks "${libraries[@]/#/--package=}" --baseline-rev "$release"
