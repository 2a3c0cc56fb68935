#!/usr/bin/env python3
"""Prints the licences of everything that the published crates are built with, and checks them.

usage: licences.py

For each published crate, with all features and for all systems: the crates that come with it, what its
tests need left out. Exit status: 0 if each may be used under a licence of ALLOWED, 1 if one may not.
"""

import json
import re
import subprocess
import sys
from collections import defaultdict

# Each lets percid be used under MIT or Apache-2.0, in source and in programs, with a notice at most.
ALLOWED = {
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
}


def usable(expression):
    """Whether an SPDX expression allows use under licences of ALLOWED: OR needs one side, AND both."""
    # A slash is how older manifests wrote OR.
    words = re.findall(r"[()]|[^\s()]+", (expression or "").replace("/", " OR "))

    def either():
        result = both()
        while words and words[0] == "OR":
            words.pop(0)
            result = both() or result
        return result

    def both():
        result = one()
        while words and words[0] == "AND":
            words.pop(0)
            result = one() and result
        return result

    def one():
        word = words.pop(0)
        if word == "(":
            result = either()
            return words.pop(0) == ")" and result
        if words and words[0] == "WITH":
            word = " ".join([word, words.pop(0), words.pop(0)])
        return word in ALLOWED

    try:
        return either() and not words
    except IndexError:  # It ends where something is expected.
        return False


CONTROLS = [
    ("MIT OR GPL-3.0", True),
    ("MIT/Apache-2.0", True),
    ("(MIT OR GPL-3.0) AND Unicode-3.0", True),
    ("Apache-2.0 WITH LLVM-exception", True),
    ("MIT AND GPL-3.0-only", False),
    ("Unicode-3.0 AND (GPL-2.0 OR LGPL-3.0)", False),
    ("GPL-3.0-only", False),
    ("MIT OR", False),
    ("(MIT", False),
    ("", False),
    (None, False),
]


def built_with(package, nodes):
    """What comes with a package: its dependencies and theirs, but for tests."""
    found, todo = set(), [package]
    while todo:
        for dependency in nodes[todo.pop()]["deps"]:
            for_use = any(kind["kind"] != "dev" for kind in dependency["dep_kinds"])
            if for_use and dependency["pkg"] not in found:
                found.add(dependency["pkg"])
                todo.append(dependency["pkg"])
    return found


def main():
    for expression, expected in CONTROLS:
        assert usable(expression) == expected, f"control: {expression!r}"
    command = ["cargo", "metadata", "--format-version", "1", "--all-features", "--locked"]
    metadata = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    members = set(metadata["workspace_members"])
    published = [packages[member] for member in members if packages[member]["publish"] is None]

    everything = set()
    for package in sorted(published, key=lambda package: package["name"]):
        others = built_with(package["id"], nodes) - members
        everything |= others
        names = sorted(packages[other]["name"] for other in others)
        shown = ", ".join(names) if len(names) <= 6 else f"{len(names)} crates"
        print(f"{package['name']:<18} {shown or 'nothing'}")

    by_licence = defaultdict(list)
    versions = defaultdict(list)
    for other in everything:
        package = packages[other]
        by_licence[package["license"]].append(f"{package['name']} {package['version']}")
        versions[package["name"]].append(package["version"])
    print()
    for licence, names in sorted(by_licence.items(), key=lambda item: -len(item[1])):
        print(f"{licence}: {', '.join(sorted(names))}")
    print()
    for name, several in sorted(versions.items()):
        if len(several) > 1:
            print(f"several versions: {name} {', '.join(sorted(several))}")

    refused = [licence for licence in by_licence if not usable(licence)]
    for licence in refused:
        print(f"not allowed: {licence}: {', '.join(by_licence[licence])}", file=sys.stderr)
    print(f"{len(everything)} crates of others, {len(by_licence)} licences, {len(refused)} not allowed")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
