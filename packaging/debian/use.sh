#!/usr/bin/env bash
# Installs the packages in /packages, uses and removes them. Runs in a scratch copy of a system only:
# packaging/debian/check.sh says how.
set -euo pipefail
[ -d /packages ] || exit 2

# It asks what is installed, and takes away what it has put there: not for a system that somebody uses.
libraries=(libpercid1 libpercid-dev)
installed=("${libraries[@]}")
if [ -e "$(echo /packages/percid_*.deb)" ]; then
    installed+=(percid)
fi

wrong() {
    echo "packaging/debian/use.sh: $1" >&2
    exit 1
}

quietly() {
    "$@" >/tmp/log 2>&1 || {
        cat /tmp/log
        wrong "failed: $*"
    }
}

# Whether dpkg knows of a package, installed or not purged: its name.
is_known() { { dpkg-query --show --showformat='${Package}\n' 'libpercid*' percid 2>/dev/null || true; } | grep .; }

# The packages' own tests, as autopkgtest runs them.
tested() {
    echo "test: $1"
    quietly "/tmp/tests/$1"
}

builds_and_runs_an_example() {
    local source=/usr/share/doc/libpercid-dev/examples/debian
    mkdir /tmp/example
    cp -r "$source" /tmp/example/percid-hits-1
    # dpkg makes examples plain files.
    chmod +x /tmp/example/percid-hits-1/debian/rules
    cd /tmp/example/percid-hits-1
    quietly dpkg-buildpackage --no-sign
    local depends
    depends=$(dpkg-deb -f ../percid-hits_1_*.deb Depends)
    echo "percid-hits depends on $depends"
    [[ ", $depends," == *", libpercid1 (>= 0.1.0),"* ]] || wrong "expected libpercid1 (>= 0.1.0)"
    quietly dpkg -i ../percid-hits_1_*.deb
    [ "$(percid-hits)" = "400000 hits" ] || wrong "percid-hits does not count"
    # What it needs stays as long as it does.
    if dpkg --remove libpercid-dev libpercid1 >/tmp/log 2>&1; then wrong "libpercid1 can be removed"; fi
    quietly dpkg --purge percid-hits
    cd /
}

mkdir /tmp/tests
cp /packages/tests/* /tmp/tests/
if is_known; then wrong "percid is installed on this system"; fi
packages=()
for package in "${installed[@]}"; do
    packages+=(/packages/"$package"_*.deb)
done
quietly dpkg -i "${packages[@]}"
[ -z "$(dpkg --audit)" ] || wrong "dpkg finds the packages broken"
# The trigger has run.
ldconfig -p | grep 'libpercid\.so\.1 ' >/dev/null || wrong "the dynamic linker does not know libpercid.so.1"
tested library
builds_and_runs_an_example
if [[ " ${installed[*]} " == *" percid "* ]]; then tested commands; fi

quietly dpkg --purge "${installed[@]}"
if is_known; then wrong "dpkg still knows the packages"; fi
if ldconfig -p | grep libpercid >/dev/null; then wrong "the dynamic linker still knows libpercid"; fi
cp -r /packages/example /tmp/without
cd /tmp/without
if dpkg-checkbuilddeps 2>/tmp/log; then wrong "percid-hits needs no libpercid-dev"; fi
grep -q libpercid-dev /tmp/log || wrong "dpkg does not say what is missing"
