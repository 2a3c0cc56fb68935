#!/usr/bin/env python3
"""Writes debian/copyright of a source tree with vendored crates, to standard output.

usage: packaging/debian/copyright.py TREE

TREE is an unpacked archive of packaging/source-archive.sh, with vendor/. Cargo says which crates there are,
under which licences; their licence files say whose they are. Licences without a text in licenses/, and
licence files in places that this program has not been told of, are errors.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

LICENSES = Path(__file__).resolve().parent / "licenses"

# What the machine-readable format calls otherwise than SPDX does.
NAMES = {
    "MIT": "Expat",
    "BSD-2-Clause": "BSD-2-clause",
    "BSD-3-Clause": "BSD-3-clause",
    "GPL-2.0-only": "GPL-2",
    "LGPL-2.1-or-later": "LGPL-2.1+",
    "Apache-2.0 WITH LLVM-exception": "Apache-2.0 with LLVM-exception exception",
}

# Folders of crates that have a licence of their own, because others wrote them.
NESTED = {
    ("libmimalloc-sys", "c_src/mimalloc"): "MIT",
    ("zstd-sys", "zstd"): "BSD-3-Clause OR GPL-2.0-only",
}
# What a crate is measured with, under the licences that it has anyway.
SAME_LICENSE = {("askama_parser", "benches")}

LICENSE_FILE = re.compile(r"(licen[cs]e|copying|copyright|notice|unlicense)", re.IGNORECASE)
# A notice with a holder: not the sentences of licences about notices, their blanks, nor who holds the licence.
NOTICE = re.compile(r"^[\W_]*Copyright (?:\([cC]\)|©|(?=\d)|(?=[A-Z]))[,:]?\s*(?P<holder>.*[^\W\d_]{2}.*)$")
BLANKS = ("[yyyy]", "{yyyy}", "License", "Free Software Foundation")

HEAD = """\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: percid
Comment: vendor/ holds crates of others, as they publish them. Of those that no package
 here is built of there is the manifest alone.
"""


class Failure(Exception):
    pass


def metadata(tree):
    command = ["cargo", "metadata", "--frozen", "--all-features", "--format-version", "1"]
    output = subprocess.run(command, cwd=tree, check=True, stdout=subprocess.PIPE).stdout
    return json.loads(output)["packages"]


def expression(spdx):
    """An SPDX expression in the words of the machine-readable format."""
    tokens = re.findall(r"[()]|[^\s()]+", spdx.replace("/", " OR "))
    text, rest = alternatives(tokens)
    if rest:
        raise Failure(f"cannot read the licence {spdx!r}")
    return text


def alternatives(tokens):
    parts, rest = conjunction(tokens)
    while rest[:1] == ["OR"]:
        more, rest = conjunction(rest[1:])
        parts += " or " + more
    return parts, rest


def conjunction(tokens):
    first, rest = operand(tokens)
    while rest[:1] == ["AND"]:
        second, rest = operand(rest[1:])
        # Here "and" binds tighter than "or", and a comma reverses that.
        comma = "," if " or " in first + second else ""
        first += f"{comma} and {second}"
    return first, rest


def operand(tokens):
    if tokens[:1] == ["("]:
        text, rest = alternatives(tokens[1:])
        if rest[:1] != [")"]:
            raise Failure(f"cannot read the licence of {tokens}")
        return text, rest[1:]
    length = 3 if tokens[1:2] == ["WITH"] else 1
    name = " ".join(tokens[:length])
    return NAMES.get(name, name), tokens[length:]


def holders(files):
    """Who holds the copyright, by these licence files."""
    found = []
    for file in sorted(files):
        for line in file.read_text(errors="replace").splitlines():
            match = NOTICE.match(line.strip())
            if match and not any(blank in line for blank in BLANKS):
                found.append(match["holder"].strip())
    return list(dict.fromkeys(found))


def license_files(folder):
    return [file for file in folder.iterdir() if file.is_file() and LICENSE_FILE.match(file.name)]


def paragraph(files, copyright, license):
    return f"Files: {files}\nCopyright: " + "\n           ".join(copyright) + f"\nLicense: {license}\n"


def crate(package, tree):
    """The paragraphs of a vendored crate."""
    folder = Path(package["manifest_path"]).parent
    place = folder.relative_to(tree)
    name, spdx = package["name"], package["license"]
    if not spdx:
        raise Failure(f"{place}: its manifest names no licence")
    people = [re.sub(r"\s*<.*>", "", author) for author in package["authors"]]
    found = holders(license_files(folder)) or people or [f"the developers of {name}"]
    yield paragraph(f"{place}/*", found, expression(spdx))
    for inner in nested(name, folder):
        found = holders(file for file in (folder / inner).rglob("*") if LICENSE_FILE.match(file.name) and file.is_file())
        yield paragraph(f"{place}/{inner}/*", found, expression(NESTED[name, inner]))


def nested(name, folder):
    """The folders in a crate that have a licence of their own."""
    found = set()
    for file in folder.rglob("*"):
        inner = file.parent.relative_to(folder).as_posix()
        if not (file.is_file() and re.match(r"(licen[cs]e|copying)\b", file.name, re.IGNORECASE)) or inner == ".":
            continue
        if any(name == known and inner.startswith(start) for known, start in SAME_LICENSE):
            continue
        known = [start for crate, start in NESTED if crate == name and f"{inner}/".startswith(f"{start}/")]
        if not known:
            raise Failure(f"{folder.name}/{inner}/{file.name}: whose is that? say so in copyright.py")
        found.update(known)
    return sorted(found)


def texts(paragraphs):
    """A paragraph with the text of every licence that is named."""
    expressions = re.findall(r"^License: (.*)$", "".join(paragraphs), re.MULTILINE)
    for name in sorted({name for one in expressions for name in re.split(r",? (?:and|or) ", one)}):
        try:
            lines = (LICENSES / name).read_text().splitlines()
        except FileNotFoundError:
            raise Failure(f"there is no text of the licence {name!r} in {LICENSES}") from None
        yield f"License: {name}\n" + "".join(f" {line}".rstrip() + "\n" if line.strip() else " .\n" for line in lines)


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__.strip(), file=sys.stdout if sys.argv[1:] == ["--help"] else sys.stderr)
        return 0 if sys.argv[1:] == ["--help"] else 2
    tree = Path(sys.argv[1]).resolve()
    packages = metadata(tree)
    ours = next(package for package in packages if package["source"] is None)
    project = (holders(license_files(tree)), expression(ours["license"]))
    paragraphs = [paragraph("*", *project)]
    crates = [package for package in packages if package["source"] is not None]
    for package in sorted(crates, key=lambda package: package["manifest_path"]):
        paragraphs += crate(package, tree)
    listed = {Path(package["manifest_path"]).parent.name for package in crates}
    forgotten = [folder.name for folder in (tree / "vendor").iterdir() if folder.name not in listed]
    if forgotten:
        raise Failure(f"Cargo does not know of {', '.join(forgotten)} in vendor/")
    print("\n".join([HEAD, *paragraphs, *texts(paragraphs)]), end="")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Failure, subprocess.CalledProcessError) as failure:
        sys.exit(f"packaging/debian/copyright.py: {failure}")
