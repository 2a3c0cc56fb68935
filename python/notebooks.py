"""Executes notebooks, and the Python in documents, each in an empty folder:
python python/notebooks.py FILE..."""

import os
import re
import sys
import tempfile
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError


def notebook_of(path: Path) -> nbformat.NotebookNode:
    """A document's blocks of Python, one after the other, are a notebook too."""
    if path.suffix == ".ipynb":
        return nbformat.read(path, as_version=4)
    blocks = re.findall(r"^```python\n(.*?)^```$", path.read_text(), re.MULTILINE | re.DOTALL)
    if not blocks:
        raise ValueError(f"{path}: expected blocks of Python")
    cells = [nbformat.v4.new_code_cell(block) for block in blocks]
    kernel = {"name": "python3", "display_name": "Python 3"}
    return nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})


def main() -> int:
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
    for path in map(Path, sys.argv[1:]):
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            notebook = notebook_of(path)
            resources = {"metadata": {"path": folder}}
            try:
                NotebookClient(notebook, timeout=600, resources=resources).execute()
            except CellExecutionError as error:
                print(f"{path}: {error}", file=sys.stderr)
                return 1
        print(f"{path.name}: {time.monotonic() - began:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
