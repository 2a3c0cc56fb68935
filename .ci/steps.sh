# shellcheck shell=bash
# The steps of `.ci/run`: name, job of the hosted checks, minutes in the order below on two CPUs of an AMD EPYC
# (Zen 5), and question. They run in this order, some beside the others (.ci/run).
# shellcheck disable=SC2034 # used by .ci/run and .ci/workflow
steps='
format     code      0    is the code formatted, and is the workflow made of this list?
tools      code      2    is everything installed that the checks need?
release    code      0.1  do programs built before still work, may all that is used be used, and is an archive whole?
lint       code      1.4  does clippy complain?
rustdoc    code      0.5  is the documentation of the crates whole?
package    code      0.4  can the packages be published?
test       tests     10   do the tests of all crates pass, as the README runs them?
slow       tests     2.1  do the tests pass that take too long for every `cargo test`?
aborts     tests     1.4  may every instruction be interrupted?
mutants    tests     0    do the tests notice small faults in the lines that have changed? (where cargo-gamma is)
musl       tests     0.7  do static programs work?
msrv       systems   0.8  does the oldest supported compiler build it?
targets    systems   2    does it compile on every platform, and is it right as it is built elsewhere?
emulated   systems   3.2  do the tests pass on other platforms, as far as they can be run here?
install    packages  1.9  does it install for C and C++ from a source archive, without a network?
debian     packages  1.4  are the packages for Debian right, can they be installed, used and removed?
machines   machines  6.3  does it hold on another kernel, with more CPUs and nodes?
documents  tests     5.3  does every command in the documents for users work as printed?
python     packages  3.8  does the wheel work where nothing else is, and as the command does?
'

run_tools() {
    rustup component add rustfmt clippy
    rustup target add "$musl"
    rustup toolchain install "$msrv" --profile minimal --no-self-update
    .ci/install-tools machines platforms c install pages traces debian command python fuzz metrics release
}

run_format() {
    rustup component add rustfmt
    cargo fmt --all --check
    cargo fmt --manifest-path fuzz/Cargo.toml --check
    .ci/workflow | diff .github/workflows/checks.yml - || {
        echo "the workflow is not made of .ci/run's list: .ci/workflow > .github/workflows/checks.yml" >&2
        return 1
    }
}

run_lint() {
    whole_pipes
    cargo clippy --workspace --all-targets --all-features -- -D warnings
}

# A reader that stops early fails its pipeline by luck: only if the writer has not written everything.
whole_pipes() {
    if git grep -nE '\| *(grep -[[:alpha:]]*q|head) ' -- .ci packaging '*.sh' ':!fuzz' ':!.ci/steps.sh'; then
        echo "expected pipes whose readers read everything: grep without -q, sed -n 1p" >&2
        return 1
    fi
}

run_rustdoc() { RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps; }

run_msrv() { cargo "+$msrv" check --workspace --target-dir "target/$msrv"; }

# Natively as well: without critical sections, and as on a system that is not 64-bit Linux, or that only
# Rust's standard library knows.
run_targets() {
    .ci/platforms check
    built_as "--cfg percid_portable" target/portable -p percid --all-features
    built_as "--cfg percid_elsewhere" target/not-linux -p percid -p percid-numa --lib
    built_as "--cfg percid_elsewhere --cfg percid_plain" target/plain -p percid --lib
}

built_as() { RUSTFLAGS="$1" cargo test --target-dir "${@:2}"; }

run_emulated() {
    sections_of aarch64-unknown-linux-gnu aarch64
    sections_of riscv64gc-unknown-linux-gnu riscv64
    .ci/platforms test
}

# Every section of another architecture, by an emulator of its programs.
sections_of() {
    local target=$1 name=$2
    cargo test -p percid-sections --target-dir target/elsewhere --target "$target" \
        --config "target.$target.linker=\"$name-linux-gnu-gcc\"" \
        --config "target.$target.runner=[\"qemu-$name\",\"-L\",\"/usr/$name-linux-gnu\"]"
}

# The crates that are published. Cargo puts them into the order of their dependencies.
published_crates() {
    cargo metadata --no-deps --format-version 1 | python3 -c '
import json, sys
for package in json.load(sys.stdin)["packages"]:
    if package["publish"] is None:
        print("-p", package["name"])'
}

# What libpercid is made of is built from its archive; the other crates are, in the long mode.
run_package() {
    packaged -p percid-rules -p percid -p percid-numa -p percid-metrics -p percid-sync -p percid-capi
    # shellcheck disable=SC2046 # options and names
    packaged $(published_crates) --no-verify
}

# Cargo keeps what it unpacked from a target folder's registry, by version only: a folder never used
# before keeps an older percid of the same version out of the verification.
packaged() {
    mkdir -p target
    local folder
    folder=$(mktemp -d -p target)
    cargo package "$@" --allow-dirty --target-dir "$folder"
    rm -rf "$folder"
}

run_install() { packaging/check.sh; }

# Against the last release; against a commit by hand: .ci/release/c_interface.py COMMIT.
run_release() {
    .ci/release/licences.py
    whole_archives
    .ci/release/c_interface.py
}

# Each crate is unpacked alone: what explains and licenses it must be with it.
whole_archives() {
    local crate file listed
    for crate in $(published_crates | sed 's/^-p //'); do
        listed=$(cargo package --list --allow-dirty -p "$crate")
        for file in README.md LICENSE-MIT LICENSE-APACHE; do
            grep -qx "$file" <<<"$listed" || { echo "$crate: its archive lacks $file" >&2; return 1; }
        done
    done
}

# What a test would skip where a tool is missing fails here.
require_tools() {
    export PERCID_VALGRIND=require PERCID_BROWSER=require PERCID_TOOLS=require PERCID_PROMETHEUS=require
    # A C library that registers as many bytes as the kernel announces, from a newer release of Debian.
    verify/programs/newer_libc.sh target/newer-libc
    export PERCID_NEWER_LIBC=$PWD/target/newer-libc
    # Recordings of this kernel need rights that a container may not have. Everything else about traces is
    # checked anyway.
    [ -d /sys/kernel/tracing/instances ] || mount -t tracefs nodev /sys/kernel/tracing || true
    if [ -w /sys/kernel/tracing/instances ]; then
        export PERCID_TRACE=require
    else
        echo "recordings of this kernel: there is no tracefs" >>"${PERCID_NOT_CHECKED:-/dev/stderr}"
    fi
}

run_test() {
    require_tools
    # Policies in Rust are compiled for it.
    rustup target add wasm32-unknown-unknown
    cargo test --workspace
    # With its export, which is not among the default features.
    cargo test -p percid-opentelemetry --features otlp
    # In the workspace it has the marks of percid-malloc.
    cargo test -p percid-alloc
}

# Tests that say `#[ignore = "slow: ..."]`. Others that are ignored take longer, or are the children of tests.
run_slow() {
    require_tools
    local tests
    mapfile -t tests < <(tests_ignored slow .)
    cargo test --workspace --tests -- --ignored "${tests[@]}"
}

# The tests below a folder that are ignored for a reason that begins with a word.
tests_ignored() {
    git grep -hA 4 "#\[ignore = \"$1: " -- "$2/*.rs" |
        sed -n 's/^ *\(pub(crate) \)\{0,1\}fn \([a-z0-9_]*\).*/\2/p'
}

run_python() { python/check.sh; }

# The documents of users, but for what takes minutes; those of verify run whole suites. Both are in the long mode.
run_documents() {
    local documents
    mapfile -t documents < <(git ls-files ':(glob)*.md' ':(glob)docs/**/*.md' ':(glob)packaging/README.md' \
        ':(glob)crates/*/README.md' ':(glob)examples/README.md' ':(glob)examples/*/README.md')
    cargo run -p percid-documents -- "${documents[@]}"
    # The page of the simulator, with the module that the documents have built.
    PERCID_MODULE=$PWD/target/documents/target/wasm32-unknown-unknown/release/percid_sim_page.wasm \
        PERCID_BROWSER=require cargo test --workspace --tests -- --ignored a_browser_computes_what_the_command_computes
}

run_aborts() { cargo run -p percid-aborts; }

# Building the tool takes five minutes, which is left to who wants it: .ci/install-tools gamma.
run_mutants() {
    if [ ! -x target/gamma/bin/cargo-gamma ]; then
        echo "mutants of the change: cargo-gamma is not installed" >>"${PERCID_NOT_CHECKED:-/dev/stderr}"
        return
    fi
    .ci/mutants changed "$(since)"
}

run_musl() {
    cargo build -p percid-programs --target "$musl"
    local program
    for program in "count" "area" "choice" "probe --starts 5 --expect good" "detached" "forking" "stack" \
        "stress --seconds 5 --source table" "stress --seconds 3 --watch" \
        "stress --structure stack --seconds 3 --source table" "stress --structure local --seconds 3"; do
        # shellcheck disable=SC2086 # a program and its options
        "target/$musl/debug/percid-programs" $program
    done
}

run_debian() { packaging/debian/check.sh; }

machines() { cargo run --release -p percid-vm -- "$@"; }

# One machine, booted again for what failed, since emulated CPUs take turns; the other kernels are in the long
# mode.
run_machines() {
    PERCID_VM=require cargo test -p percid-vm
    machines --kernel 6.18 --shape 8/2 --again
    machines --kernel 7.0-arm64 --again \
        --program "choice,probe --starts 20 --expect bad,count,stress --seconds 3 --source table"
}

# The commit that changes are counted from.
since() { echo "${PERCID_SINCE:-$(git rev-parse --quiet --verify '@{upstream}' || git rev-parse HEAD~1)}"; }

# What two minutes can tell of the crates that have changed.
run_changed() {
    run_format
    local since packages
    since=$(since)
    mapfile -t packages < <(changed_packages "$since")
    [ ${#packages[@]} -gt 0 ] || { echo "no crate has changed since $since"; return; }
    echo "changed since $since: ${packages[*]}"
    cargo clippy "${packages[@]/#/--package=}" --all-targets -- -D warnings
    cargo test "${packages[@]/#/--package=}"
}

# The crates with files that differ from a commit, or that it does not have.
changed_packages() {
    { git diff --name-only "$1" && git ls-files --others --exclude-standard; } >target/changed
    cargo metadata --no-deps --format-version 1 | python3 -c '
import json, os, sys
changed = open("target/changed").read().split("\n")
for package in json.load(sys.stdin)["packages"]:
    folder = os.path.relpath(os.path.dirname(package["manifest_path"])) + "/"
    if any(name.startswith(folder) for name in changed):
        print(package["name"])'
}
