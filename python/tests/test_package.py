"""The package itself."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

import percid


def test_it_is_the_installed_one_and_has_types():
    package = Path(percid.__file__).parent
    assert "site-packages" in package.parts, "expected the installed wheel, not the sources"
    assert (package / "py.typed").exists() and (package / "_native.pyi").exists()


def test_importing_it_imports_none_of_the_large_libraries():
    code = (
        "import sys, percid, percid.sim; "
        "large = {'numpy', 'pandas', 'polars', 'pyarrow', 'matplotlib', 'tqdm', 'distributed'}; "
        "print(sorted(large & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_modules_are_there_and_others_are_not():
    for name in ("sim", "paper", "trace", "machine", "plots"):
        assert getattr(percid, name).__doc__
        assert name in dir(percid)
    with pytest.raises(AttributeError, match="nonsense"):
        getattr(percid, "nonsense")  # noqa: B009


def test_everything_public_is_documented():
    for name in ("sim", "paper", "trace", "machine", "plots"):
        module = getattr(percid, name)
        for public in module.__all__:
            assert getattr(module, public).__doc__, f"{name}.{public}"


def test_the_first_result_is_there_soon():
    began = time.monotonic()
    table = percid.sim.run("epyc-9654", "intermittent", "percid-table", seeds=1)
    print(f"first result after {time.monotonic() - began:.2f} s")
    assert len(table) == 1
