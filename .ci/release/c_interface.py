#!/usr/bin/env python3
"""Compares the binary interface of the C headers with that of another commit, by abidiff.

usage: c_interface.py [COMMIT]

Without a COMMIT: with the last release, a tag v*; there may be none. Exit status: 0 if programs built by
the other headers work with this library, 1 if not, 2 if that could not be found out.

The library shows one symbol, a table of functions, and programs contain the offsets in it. For abidiff
the table is one variable whose size never changes, and it cannot be told that growing is allowed at the
end only. So it gets a variable for each place of the table, at_OFFSET_NAME, with the type of the function
there: what is moved or removed is missing, what is appended is new, and types are compared to their ends.
So does each name that the shared library shows to dlsym(), with its version, exported_VERSION_NAME.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEADERS = "crates/percid-capi/include"
MAP = "crates/percid-capi/percid.map"
GROWS = Path(__file__).with_name("may_grow.abignore")
TABLE = "struct percid_interface"


class Unknown(Exception):
    """Why there is no result."""


def run(*command, **options):
    return subprocess.run(command, text=True, capture_output=True, **options)


def last_release():
    tags = run("git", "-C", ROOT, "describe", "--tags", "--abbrev=0", "--match", "v*")
    return tags.stdout.strip() if tags.returncode == 0 else None


def interface_of(commit, folder):
    """The headers and the map of exported names at that commit, in the folder."""
    listed = run("git", "-C", ROOT, "ls-tree", "-r", "--name-only", commit, HEADERS, MAP)
    if listed.returncode != 0:
        raise Unknown(listed.stderr.strip())
    folder.mkdir()
    for path in listed.stdout.split():
        shown = run("git", "-C", ROOT, "show", f"{commit}:{path}", check=True)
        (folder / Path(path).name).write_text(shown.stdout)
    return folder


def interface_now(folder):
    """Those of the working tree."""
    folder.mkdir()
    for path in [*(ROOT / HEADERS).iterdir(), ROOT / MAP]:
        (folder / path.name).write_text(path.read_text())
    return folder


def exported(headers):
    """What the shared library shows, with the version of each name."""
    path = headers / "percid.map"
    text = re.sub(r"/\*.*?\*/", "", path.read_text() if path.exists() else "", flags=re.S)
    nodes = re.findall(r"(\w+)\s*\{(.*?)\}", text, re.S)
    return [(name, node) for node, body in nodes for name in re.findall(r"\b(percid_\w+);", body)]


def members(headers):
    """The names of the table's functions, in their order."""
    header = headers / "percid_interface.h"
    text = header.read_text() if header.exists() else ""
    body = re.search(TABLE + r" \{(.*?)\n\};", text, re.S)
    if not body:
        raise Unknown(f"{TABLE} is not in {header}")
    lines = [line for line in body[1].splitlines() if "(*" in line]
    names = [re.search(r"\(\*(\w+)(\[\d+\])?\)\(", line)[1] for line in lines]
    return [name for name in names if name != "later"]


def places(headers, folder, name):
    """A library with a variable for each place of the table, and how many there are."""
    names = members(headers)
    member = f"((({TABLE} *)0)->%s)"
    offsets = run_program(headers, folder, name, names)
    lines = ["#include <percid.h>"]
    for function, offset in zip(names, offsets, strict=True):
        lines.append(f"__typeof__({member % function}) at_{offset}_{function};")
    for function, version in exported(headers):
        # The table's own type is compared place by place.
        kind = "char" if function.startswith("percid_interface_") else f"__typeof__(&{function})"
        lines.append(f"{kind} exported_{version}_{function};")
    source = folder / f"{name}.c"
    source.write_text("\n".join(lines) + "\n")
    library = folder / f"{name}.so"
    compile_c(headers, source, library, "-shared", "-fPIC", "-g")
    return library, len(names)


def run_program(headers, folder, name, names):
    """The offsets, as the compiler has them."""
    source = folder / f"{name}_offsets.c"
    lines = [f'printf("%zu\\n", offsetof({TABLE}, {function}));' for function in names]
    includes = "#include <percid.h>\n#include <stddef.h>\n#include <stdio.h>\n"
    source.write_text(includes + "int main(void) {\n" + "\n".join(lines) + "\nreturn 0;\n}\n")
    program = folder / f"{name}_offsets"
    # The table is declared only, and not needed for its offsets.
    table = folder / f"{name}_table.c"
    table.write_text(f"#include <percid.h>\nconst {TABLE} percid_interface_1;\n")
    compile_c(headers, source, program, str(table))
    return run(str(program), check=True).stdout.split()


def compile_c(headers, source, output, *options):
    command = ["cc", "-std=gnu11", "-I", str(headers), str(source), *options, "-o", str(output)]
    compiled = run(*command)
    if compiled.returncode != 0:
        raise Unknown(compiled.stderr)


def differences(old, new, folder):
    """What programs built by the old headers would not find as it was; empty if nothing."""
    before, functions = places(old, folder, "before")
    after, _ = places(new, folder, "after")
    options = ["--no-added-syms", "--suppressions", str(GROWS)]
    compared = run("abidiff", *options, str(before), str(after))
    # Bits: 1 and 2 mean that it did not compare, 4 that something changed, 8 that it cannot work.
    if compared.returncode & 3:
        raise Unknown(compared.stderr + compared.stdout)
    return (compared.stdout if compared.returncode else ""), functions


def changed(text, pattern, replacement):
    result, count = re.subn(pattern, replacement, text, count=1, flags=re.S)
    if count != 1:
        raise Unknown(f"the control has nothing to change: {pattern}")
    return result


def swapped(text):
    """Two functions change places."""
    rows = re.findall(r"\n    [^\n]*\(\*(?:stack_push|mask_destroy)\)[^\n]*", text)
    first, second = rows
    return text.replace(first, "\0").replace(second, first).replace("\0", second)


# What is done to one of the files, and whether programs still work with it.
CONTROLS = [
    ("a function removed", "percid_interface.h", False, lambda text: without(text, "stack_capacity")),
    ("two functions swapped", "percid_interface.h", False, swapped),
    (
        "a parameter of another size",
        "percid_interface.h",
        False,
        lambda text: changed(text, r"(\(\*mask_mark\)\([^)]*)uint32_t id", r"\1uint64_t id"),
    ),
    (
        "a counter of another size",
        "percid.h",
        False,
        lambda text: changed(text, r"(struct percid_counter \{[^}]*)uint64_t word", r"\1uint32_t word"),
    ),
    (
        "a member in front of others",
        "percid.h",
        False,
        lambda text: changed(text, r"struct percid_table_stats \{", r"\g<0> uint64_t other;"),
    ),
    (
        "another value of an enumerator",
        "percid.h",
        False,
        lambda text: changed(text, "PERCID_SOURCE_TABLE = 2", "PERCID_SOURCE_TABLE = 5"),
    ),
    (
        "a name no longer exported",
        "percid.map",
        False,
        lambda text: changed(text, r"\n\s*percid_ring_lost;", ""),
    ),
    (
        "a name of another version",
        "percid.map",
        False,
        lambda text: changed(text, "PERCID_1 ", "PERCID_2 "),
    ),
    (
        "a name more",
        "percid.map",
        True,
        lambda text: text + "PERCID_2 { percid_version; } PERCID_1;",
    ),
    (
        "a function appended",
        "percid_interface.h",
        True,
        lambda text: changed(text, r"    void \(\*later\[", r"    int (*added)(int);\n\g<0>"),
    ),
    (
        "a member appended to what is passed with its size",
        "percid.h",
        True,
        lambda text: changed(text, r"\} percid_table_stats;", r"uint64_t added;\n\g<0>"),
    ),
]


def without(text, function):
    text = changed(text, rf"\n    [^\n]*\(\*{function}\)[^\n]*", "")
    wrapper = rf"\nPERCID_INLINE[^;{{}}]*percid_{function}\([^;{{}}]*\{{[^}}]*\}}"
    return changed(text, wrapper, "")


def controls(headers, folder):
    """Headers with a planted change: each is told from those that it was made of, or is allowed."""
    for number, (what, file, works, change) in enumerate(CONTROLS):
        copy = folder / f"control{number}"
        copy.mkdir()
        for header in headers.iterdir():
            (copy / header.name).write_text(header.read_text())
        if "removed" in what:
            declared, shown = copy / "percid.h", copy / "percid.map"
            pattern = r"\nPERCID_INLINE[^;{}]*percid_stack_capacity\([^;{}]*;"
            declared.write_text(changed(declared.read_text(), pattern, ""))
            shown.write_text(changed(shown.read_text(), r"\n\s*percid_stack_capacity;", ""))
        (copy / file).write_text(change((copy / file).read_text()))
        found, _ = differences(headers, copy, folder)
        if bool(found) == works:
            raise Unknown(f"control: {what} {'is refused' if works else 'is not noticed'}\n{found}")
    allowed = sum(works for _, _, works, _ in CONTROLS)
    print(f"controls: {len(CONTROLS) - allowed} changes noticed, {allowed} allowed")


def main():
    commit = sys.argv[1] if len(sys.argv) > 1 else last_release()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        now = interface_now(folder / "now")
        controls(now, folder)
        if commit is None:
            print(f"C interface: no release yet; {len(members(now))} functions in the table")
            return 0
        found, functions = differences(interface_of(commit, folder / "then"), now, folder)
    kept = f"all {functions} functions of {commit} and their types are as they were"
    print(f"{found}C interface: {commit} is broken" if found else f"C interface: {kept}")
    return 1 if found else 0


if __name__ == "__main__":
    if len(sys.argv) > 2 or sys.argv[1:] in (["-h"], ["--help"]):
        print(__doc__)
        sys.exit(0 if len(sys.argv) == 2 else 2)
    try:
        sys.exit(main())
    except Unknown as why:
        print(f"c_interface.py: {why}", file=sys.stderr)
        sys.exit(2)
