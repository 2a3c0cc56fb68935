"""What workers do."""

from __future__ import annotations

from . import _native


def compute(job: str) -> bytes:
    """Simulates some seeds of one combination: the bytes of a Parquet file.

    :raises percid.VersionError: if another version of percid sent the job
    """
    return _native.compute(job)
