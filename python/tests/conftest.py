"""What the tests share."""

import os
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def command() -> str:
    """The command, built with the feature sweep: PERCID_COMMAND says where it is."""
    found = os.environ.get("PERCID_COMMAND") or shutil.which("percid")
    if found is None:
        pytest.skip("PERCID_COMMAND names no percid")
    return found


@pytest.fixture
def space() -> dict:
    """Runs of some milliseconds."""
    return {
        "machine": "cascade-lake",
        "workload": "container",
        "policies": ["per-cpu", "percid-table"],
        "duration_ms": 20,
        "allowed": [4, 8],
        "seeds": 20,
    }
