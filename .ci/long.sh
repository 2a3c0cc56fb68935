# shellcheck shell=bash
# The long steps of `.ci/run`: name, job of the hosted checks, minutes on two CPUs, and question. units_NAME
# prints a step's units of work, one a line; unit_NAME does one of them.
# shellcheck disable=SC2034 # used by .ci/run and .ci/workflow
long_steps='
book       night     1.5  can a book be made of the documents?
loom       night     0.5  how many interleavings were tried?
ignored    night     15   do the tests pass that take too long for every commit?
features   night     4    do the tests pass of what the command does not have by default?
models     night     10   is every configuration of the protocols as it must be, the largest too?
release    night     8    is the version raised enough, and can all crates be built and documented alone?
packages   night     15   does every other way to install it work?
platforms  night     15   do all crates compile on every platform, and the tests pass that take longer there?
documents  night     10   does every command in the documents of the proofs work as printed?
python     night     8    does the wheel work with other Pythons, and on Ray?
samples    night     1    is every machine imported that hwloc and util-linux are tested with?
miri       night     10   is there undefined behaviour, where Miri can see it?
sanitizers night     10   is memory used that is not there, or without order, by threads of this kernel?
c-matrix   night     20   are C and C++ programs right by every compiler, in every dialect and way?
race       night     30   can real kernels give one mm_cid to two threads?
stress     night     75   is anything lost, doubled or shared under load?
machines   night     90   does it hold on every kernel, with more CPUs and nodes?
fuzz       night     115  does any input end, hang or bloat a parser, within ten minutes for each?
steady     night     300  does any test fail because the machine is busy, has one CPU, or stands still?
mutants    night     1200 do the tests of each crate notice small faults that nobody chose?
catalogue  night     900  do the suites notice every small fault of the catalogue?
'

units_book() { echo all; }
unit_book() {
    .ci/install-tools book
    target/mdbook/bin/mdbook build
}

units_loom() { echo all; }
unit_loom() {
    cargo test --quiet -p percid-loom -- --include-ignored --nocapture --test-threads=1 2>/dev/null | grep -o 'loom: .*'
}

units_ignored() {
    cargo metadata --no-deps --format-version 1 | python3 -c '
import json, os, sys
for package in json.load(sys.stdin)["packages"]:
    print(package["name"], os.path.relpath(os.path.dirname(package["manifest_path"])))' |
        while read -r package folder; do
            [ -z "$(tests_ignored long "$folder")" ] || echo "$package:$folder"
        done
}
unit_ignored() {
    require_tools
    local tests
    mapfile -t tests < <(tests_ignored long "${1#*:}")
    cargo test --package "${1%%:*}" -- --ignored "${tests[@]}"
}

# The documents of every commit run these features, but not their tests.
units_features() { echo percid-cli; }
unit_features() {
    rustup target add wasm32-unknown-unknown
    cargo test -p "$1" --features trace,wasm,sweep --test suite -- sim_check:: sim_sweep::
}

units_models() { echo all; }
unit_models() { cargo run --release -p percid-models -- --full --brief; }

units_release() { printf '%s\n' versions docs-rs installed archives; }
unit_release() {
    case $1 in
        versions)
            .ci/install-tools release semver
            .ci/release/rust_interfaces.sh
            ;;
        docs-rs) .ci/install-tools nightly && documented_as_on_docs_rs ;;
        installed) installed_by_cargo ;;
        # shellcheck disable=SC2046 # options and names
        archives) packaged $(published_crates) ;;
    esac
}

# Every crate for every target that it names for docs.rs.
documented_as_on_docs_rs() {
    local crate target
    documented_targets >target/documented-targets
    # shellcheck disable=SC2046 # names
    rustup target add --toolchain "$nightly" $(cut -d ' ' -f 2 target/documented-targets | sort -u)
    while read -r crate target; do
        RUSTDOCFLAGS="--cfg docsrs -D warnings" cargo "+$nightly" doc --quiet --no-deps -p "$crate" \
            --target "$target" --target-dir target/docs-rs </dev/null
    done <target/documented-targets
}

documented_targets() {
    cargo metadata --no-deps --format-version 1 | python3 -c '
import json, sys
for package in json.load(sys.stdin)["packages"]:
    settings = ((package["metadata"] or {}).get("docs") or {}).get("rs") or {}
    for target in settings.get("targets", []):
        print(package["name"], target)'
}

# The whole command, as a user gets it.
installed_by_cargo() {
    local root
    root=$(mktemp -d)
    cargo install --quiet --locked --path crates/percid-cli --features trace --root "$root"
    PATH=/usr/bin:/bin "$root/bin/percid" trace info crates/percid-trace/tests/fixtures/sched.data >/dev/null
    "$root/bin/percid" --version
    rm -rf "$root"
}

units_packages() { printf '%s\n' commands cmake-meson-vcpkg conan debian rpm; }
unit_packages() {
    case $1 in
        debian) packaging/debian/check.sh --long ;;
        rpm) packaging/rpm/check.sh ;;
        cmake-meson-vcpkg) packaging/check.sh --long archive cmake meson vcpkg ;;
        conan) .ci/install-tools conan && packaging/check.sh conan ;;
        commands) packaging/check.sh commands ;;
    esac
}

units_platforms() { echo checked && .ci/platforms tested --long; }
unit_platforms() {
    case $1 in
        checked) .ci/platforms check --long ;;
        *) .ci/platforms test --long "$1" ;;
    esac
}

units_documents() {
    git ls-files fuzz/README.md verify/README.md ':(glob)verify/*/README.md'
    git grep -l "^<!-- long -->$" -- '*.md' ':!verify/documents'
}
unit_documents() { cargo run -p percid-documents -- --long "$1"; }

units_python() { echo all; }
unit_python() { python/check.sh --long; }

units_samples() { printf '%s\n' hwloc util-linux; }
unit_samples() { .ci/samples "$1"; }

# Everything in Rust, in the configuration without critical sections: Miri knows no assembly. Stale
# values are left to loom, since Miri gives up where bytes are an atomic's and then a value's.
units_miri() { printf '%s\n' portable elsewhere; }
unit_miri() {
    .ci/install-tools nightly
    local packages=(-p percid)
    [ "$1" = elsewhere ] || packages+=(-p percid-rules)
    MIRIFLAGS="-Zmiri-permissive-provenance -Zmiri-disable-weak-memory-emulation" \
        RUSTFLAGS="--cfg percid_$1" \
        cargo "+$nightly" miri test "${packages[@]}" --lib --target-dir target/miri
}

# With the critical sections, whose memory accesses the sanitizers do not see; and with the atomic source
# alone, as it is built where there is no 64-bit Linux, of which they see everything.
units_sanitizers() { printf '%s\n' address address-elsewhere thread thread-elsewhere; }
unit_sanitizers() {
    .ci/install-tools nightly
    case $1 in
        address) sanitized address "" ;;
        address-elsewhere) sanitized address "--cfg percid_elsewhere" ;;
        # Its own state does not bear processes that share memory (the probe's companion) or are forked.
        # Locked memory: it maps more than may be locked.
        thread)
            sanitized thread "" --skip companion --skip probe --skip machine:: --skip child --skip fork \
                --skip holder --skip table --skip locked --skip the_kernel_keeps
            ;;
        thread-elsewhere) sanitized thread "--cfg percid_elsewhere" --skip child ;;
    esac
}

sanitized() {
    local sanitizer=$1 configuration=$2
    shift 2
    RUSTFLAGS="-Zsanitizer=$sanitizer $configuration" cargo "+$nightly" test -Zbuild-std --target "$host" \
        --target-dir "target/$sanitizer" -p percid --lib -- "$@"
}

# Every compiler, dialect, level and way; the tests of percid-capi have a selection.
units_c-matrix() {
    PERCID_MATRIX=list cargo test --quiet -p percid-capi --test c_interface the_whole_matrix -- --nocapture |
        sed -n 's/^row://p'
}
unit_c-matrix() {
    require_tools
    PERCID_MATRIX=row:$1 cargo test -p percid-capi --test c_interface the_whole_matrix -- --nocapture
}

units_race() { echo held; }
unit_race() { cargo run --release -p percid-kernel-race -- --way held --runs 3 --controls 1; }

# An hour: each structure with each source, and IDs that are taken back all the time.
units_stress() {
    echo tests
    local source structure
    for source in table kernel atomic; do
        echo "$source"
        for structure in stack pool local ring histogram buckets mask; do echo "$source:$structure"; done
    done
    echo evict
}
unit_stress() {
    if [ "$1" = tests ]; then
        require_tools
        PERCID_STRESS=long cargo test -p percid-programs
        return
    fi
    cargo build --release -p percid-programs
    local stress="target/release/percid-programs stress"
    case $1 in
        evict) $stress --seconds 600 --source table --evict ;;
        *:*) $stress --structure "${1#*:}" --seconds 100 --source "${1%:*}" ;;
        *) $stress --seconds 400 --source "$1" ;;
    esac
}

units_machines() {
    cargo run --quiet --release -p percid-vm -- --long --list |
        awk '/^machines/ { on = 1; next } /^[a-z]/ { on = 0 } on && !seen[$1]++ { print $1 }'
    printf '%s\n' quick spare traces numa-cost numa-race
}
unit_machines() {
    case $1 in
        quick) machines --again ;;
        spare) machines --kernel 6.12 --shape 8+56/2 --program "choice,count,density --threads 3,bounds,memory" ;;
        # Again, since regions are looked at every tenth of a second, if the host's other work permits.
        traces) machines --kernel 6.1,6.12 --traces --shape 16/4 --again ;;
        # The command itself goes into the machines, as a program that needs no library.
        numa-cost)
            CARGO_ENCODED_RUSTFLAGS=-Ctarget-feature=+crt-static \
                cargo build --release -p percid-cli --target x86_64-unknown-linux-gnu
            machines --kernel 6.12,7.3 --shape 8/2 --threads multi --again \
                --with target/x86_64-unknown-linux-gnu/release/percid \
                --program "numa-cost --percid /percid/percid --seconds 5 --runs 10"
            ;;
        # CPUs that really run at the same time: where they take turns, an interrupt waits for a whole turn.
        numa-race)
            machines --kernel 6.12,7.3 --shape 8/2,16/4 --threads multi --again --program "numa-race --seconds 10 \
--runs 3,numa-race --seconds 10 --runs 3 --access trapped,numa-race --seconds 10 --runs 3 --access written"
            ;;
        *) machines --long --kernel "$1" --again ;;
    esac
}

units_fuzz() { sed -n 's/^name = "\(.*\)"/\1/p' fuzz/Cargo.toml | grep -vx percid-fuzz; }
unit_fuzz() {
    .ci/install-tools fuzz
    FUZZ_OPTIONS=-timeout=60 fuzz/run.sh 600 "$1"
}

# Twenty times each, and a dozen faults that must be noticed there too.
units_steady() {
    local kind number
    for number in $(seq 20); do
        for kind in busy one-cpu stopped; do echo "$kind-$number"; done
    done
    for kind in busy one-cpu stopped; do echo "$kind-mutants"; done
}
unit_steady() { .ci/steady "${1%-*}" "${1##*-}"; }

# A part of a crate's mutants each; `.ci/mutants table` makes a table of the reports.
units_mutants() { .ci/mutants units; }
unit_mutants() {
    .ci/install-tools gamma
    .ci/mutants unit "$1" "$results/mutants"
}

units_catalogue() { basename --suffix=.toml verify/mutants/catalogue/*.toml; }
unit_catalogue() { cargo run -p percid-mutants -- --room "$1"; }

# The results of this commit: a line for each unit that was done, with its step, unit, result, seconds and
# last line of output.
results=${PERCID_CHECKS:-${XDG_STATE_HOME:-$HOME/.local/state}/percid/checks}/$(git rev-parse HEAD)

record() {
    mkdir -p "$results"
    [ ! -e "$results/table" ] || awk -F '\t' -v step="$1" -v unit="$2" '$1 != step || $2 != unit' \
        "$results/table" >"$results/new"
    (IFS=$'\t' && echo "$*") >>"$results/new"
    mv "$results/new" "$results/table"
}

has_passed() {
    awk -F '\t' -v step="$1" -v unit="$2" \
        '$1 == step && $2 == unit && $3 == "passed" { found = 1 } END { exit !found }' "$results/table" 2>/dev/null
}

minutes_of() { awk -v name="$1" '$1 == name { print $3 }' <<<"$long_steps"; }

# For each step: units, how many have passed, and the minutes that the others take by the list.
todo() {
    local name unit units passed left sum=0
    printf '%-10s %6s %7s %14s  %s\n' step units passed 'minutes to do' 'next'
    for name in "$@"; do
        mapfile -t units < <("units_$name")
        passed=0 left=
        for unit in "${units[@]}"; do
            if has_passed "$name" "$unit"; then passed=$((passed + 1)); else left=${left:-$unit}; fi
        done
        local minutes
        minutes=$(awk -v all="$(minutes_of "$name")" -v n=${#units[@]} -v done=$passed \
            'BEGIN { printf "%.0f", n ? all * (n - done) / n : 0 }')
        sum=$((sum + minutes))
        printf '%-10s %6d %7d %14d  %s\n' "$name" ${#units[@]} $passed "$minutes" "${left:--}"
    done
    printf 'total %d minutes to do\n' $sum
}

# The results, as Markdown.
long_table() {
    echo "Commit $(git rev-parse --short HEAD), $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | sed -n 1p)," \
        "$(nproc) CPUs, Linux $(uname -r)."
    echo
    echo '| step | passed | failed | to do | minutes | failed units |'
    echo '|---|---|---|---|---|---|'
    local name units
    for name in "$@"; do
        units=$("units_$name" | wc -l)
        awk -F '\t' -v step="$name" -v units="$units" '
            $1 == step { n[$3]++; seconds += $4; if ($3 == "failed") bad = bad " " $2 }
            END { printf "| %s | %d | %d | %d | %.1f |%s |\n", step, n["passed"], n["failed"],
                  units - n["passed"] - n["failed"], seconds / 60, bad ? bad : " -" }' \
            "$results/table" 2>/dev/null || echo "| $name | 0 | 0 | $units | 0 | - |"
    done
}

# Does what has not passed yet; goes on after failures, and says at the end whether there were any.
long_main() {
    local mode=$1 name unit started result log failed=0
    shift
    case $mode in
        list) todo "$@" && return ;;
        table) long_table "$@" && return ;;
    esac
    [ -z "$(git status --porcelain)" ] ||
        wrong "there are uncommitted changes: results of the long mode are kept for a commit"
    todo "$@"
    for name in "$@"; do
        while read -r unit <&3; do
            has_passed "$name" "$unit" && continue
            log=$results/log/$name/$unit
            mkdir -p "$(dirname "$log")"
            printf '== %s %s ... ' "$name" "$unit"
            started=$SECONDS
            # Not in a condition, where the shell would go on after a command that fails.
            set +e
            (set -euo pipefail; "unit_$name" "$unit") >"$log" 2>&1 </dev/null
            result=$?
            set -e
            if [ $result = 0 ]; then
                result=passed
            else
                result=failed failed=1
                tail -n 40 "$log" >&2
            fi
            record "$name" "$unit" "$result" $((SECONDS - started)) "$(last_line "$log")"
            echo "$result in $((SECONDS - started)) s: $(last_line "$log")"
        done 3< <("units_$name")
    done
    echo
    long_table "$@"
    return $failed
}

last_line() { grep -v '^[[:space:]]*$' "$1" | tail -n 1 | tr '\t' ' ' | cut -c 1-100; }
