"""The laboratory of percid, a library for per-CPU data.

- :mod:`percid.sim`: policies for concurrency IDs on simulated machines; sweeps over many of them
- :mod:`percid.paper`: published results beside simulated ones
- :mod:`percid.trace`: recorded schedules, as tables and replayed under policies
- :mod:`percid.machine`: this machine, as the simulator sees it
- :mod:`percid.plots`: pictures of all that (needs ``percid[plots]``)

Results are :class:`percid.Table`: Arrow tables that pandas, Polars and others take over without
copying. Simulations are deterministic: the same arguments and seeds give the same result, bit for
bit, on every machine.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ._native import __version__
from ._table import Table
from .errors import (
    Error,
    ExecutorLost,
    RunError,
    SpaceError,
    StoreError,
    TraceError,
    VersionError,
)

if TYPE_CHECKING:
    from . import machine, paper, plots, sim, trace

__all__ = [
    "Error",
    "ExecutorLost",
    "RunError",
    "SpaceError",
    "StoreError",
    "Table",
    "TraceError",
    "VersionError",
    "__version__",
    "machine",
    "paper",
    "plots",
    "sim",
    "trace",
]

_MODULES = frozenset({"machine", "paper", "plots", "sim", "trace"})


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
