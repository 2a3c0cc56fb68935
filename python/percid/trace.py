"""Recorded schedules.

Whatever ``percid trace`` reads: its own Parquet, perf.data, trace.dat, the text of ftrace, perf
script, trace-cmd, systrace and bpftrace, also compressed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from . import _native
from ._space import Described, machine_of, policies_of
from ._table import Table
from ._values import path_of, whole

if TYPE_CHECKING:
    import pandas
    import polars

__all__ = ["example", "read", "read_pandas", "read_polars", "replay"]


def example() -> Path:
    """A small recording that comes with the package: ``make`` of 24 files with four jobs, on two
    CPUs."""
    return Path(__file__).with_name("example.parquet")


def read(path: str | os.PathLike[str]) -> Table:
    """The events of a recording, by time.

    Its shape is (events, 15), or has more columns where there are events of NUMA balancing. time_ns
    is in nanoseconds since the first event; what an event does not have is empty. Percid's
    book, page "Traces as tables", explains the columns.

    :raises TraceError: if it is no recording, with the line or byte
    :raises OSError: if it cannot be read
    """
    return Table(_native.read_trace(path_of(path, "path")))


def read_pandas(path: str | os.PathLike[str]) -> pandas.DataFrame:
    """The events of a recording as a ``pandas.DataFrame``; otherwise as :func:`read`. Needs
    ``percid[pandas]``.
    """
    return read(path).to_pandas()


def read_polars(path: str | os.PathLike[str]) -> polars.DataFrame:
    """The events of a recording as a ``polars.DataFrame``; otherwise as :func:`read`. Needs
    ``percid[polars]``.
    """
    return read(path).to_polars()


def replay(
    path: str | os.PathLike[str],
    policies: str | Iterable[str] = "all",
    *,
    machine: Described = "this",
    area_bytes: int = 16384,
) -> Table:
    """The schedule under other policies: which IDs its threads would have had.

    :param policies: names (see :func:`percid.sim.policies`), or ``"all"``
    :param machine: a name, ``"this"``, a file, or a dictionary with what a file has: it must have
        all CPUs of the recording
    :param area_bytes: the memory that an ID selects
    :returns: a row for each address space and policy: process, name, threads, most_running, turns,
        ids_used, same_cpu, same_core, same_l3, same_node (shares, from 0 to 1, of the acquisitions
        that found the ID where it was used before, at least so near), steals, memory_bytes,
        ns_per_turn and others. ``stuck`` says where a policy could not go on
    :raises TraceError: as :func:`read`
    :raises SpaceError: if an argument makes no sense, or the machine has too few CPUs
    """
    names = policies_of(policies)
    name, text = path_of(path, "path"), machine_of(machine, kernel_numbers=True)["text"]
    area_bytes = whole(area_bytes, "area_bytes", 1, 2**40)
    return Table(_native.replay_trace(name, names, text, area_bytes))
