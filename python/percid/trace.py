"""Recorded schedules.

Whatever ``percid trace`` reads: its own Parquet, perf.data, trace.dat, the text of ftrace, perf
script, trace-cmd, systrace and bpftrace, also compressed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from . import _native
from ._space import _policies
from ._table import Table

__all__ = ["read", "replay"]


def read(path: str | os.PathLike[str]) -> Table:
    """The events of a recording, by time.

    Its shape is (events, 15), or has more columns where there are events of NUMA balancing. time_ns
    is in nanoseconds since the first event; what an event does not have is empty. Percid's
    book, page "Traces as tables", explains the columns.

    :raises TraceError: if it is no recording, with the line or byte
    :raises OSError: if it cannot be read
    """
    return Table(_native.read_trace(os.fspath(path)))


def replay(
    path: str | os.PathLike[str],
    policies: str | Iterable[str] = "all",
    *,
    machine: str = "this",
    area_bytes: int = 16384,
) -> Table:
    """The schedule under other policies: which IDs its threads would have had.

    :param policies: names (see :func:`percid.sim.policies`), or ``"all"``
    :param machine: a name, ``"this"``, or a file: it must have all CPUs of the recording
    :param area_bytes: the memory that an ID selects
    :returns: a row for each address space and policy: process, name, threads, most_running, turns,
        ids_used, same_cpu, same_core, same_l3, same_node (shares, from 0 to 1, of the acquisitions
        that found the ID where it was used before, at least so near), steals, memory_bytes,
        ns_per_turn and others. ``stuck`` says where a policy could not go on
    :raises TraceError: as :func:`read`
    :raises SpaceError: if a policy is unknown, or the machine has too few CPUs
    """
    names = _policies(policies)
    return Table(_native.replay_trace(os.fspath(path), names, machine, area_bytes))
