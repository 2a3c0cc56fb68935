"""Policies for concurrency IDs on simulated machines.

A *concurrency ID* is a small integer for each running thread of a process, by which it finds its
copy of per-CPU data. A *policy* decides which CPU gets which ID. See percid's book, page "The
simulator", for what is modelled and where the limits are.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from . import _native
from ._native import Process
from ._policy import Policy, own_policy
from ._space import (
    Described,
    Numbers,
    Seeds,
    Until,
    machine_of,
    policies_of,
    without_line,
    workload_of,
)
from ._space import plan as _plan
from ._store import open_store
from ._sweep import Failure, Sweep, shard_of
from ._sweep import sweep as _sweep
from ._table import Table
from ._values import found, number, seed_of, whole
from .errors import SpaceError

__all__ = [
    "Failure",
    "Policy",
    "Process",
    "Sweep",
    "Until",
    "machines",
    "policies",
    "run",
    "spans",
    "sweep",
    "until",
    "workloads",
]


def machines() -> Table:
    """The machines that come with the simulator: name, about, cpus, l3s, nodes."""
    return Table(_native.catalogue("machines"))


def workloads() -> Table:
    """The workloads that come with the simulator: name, about, and the parameters with the values
    that they have unless they are given, as JSON."""
    return Table(_native.catalogue("workloads"))


def policies() -> Table:
    """The policies: name, about. Releases of kernels stand for the policy that they have, as in
    ``linux-6.12.48``."""
    return Table(_native.catalogue("policies"))


def until(interval: float, *, least: int = 5, most: int = 1000) -> Until:
    """As many seeds for each combination as its mean needs.

    They go on from ``least`` until half of the 95 % interval of the mean of ``ns_per_burst``
    (Student's distribution) is at most ``interval``, as a share of that mean, or there are
    ``most``. How many one combination gets does not depend on the others, or on who computes them.

    :param interval: such as 0.02 for 2 %
    :raises SpaceError: if the interval is not above 0, or ``least`` is not from 1 to ``most``
    """
    return Until(interval, least, most)


def run(
    machine: Described | Iterable[Described] = "epyc-9654",
    workload: Described | Iterable[Described] = "container",
    policies: str | Iterable[str] | None = None,
    seeds: Seeds = 5,
    *,
    policy: Policy | None = None,
    memory: str | None = None,
    **parameters: Numbers,
) -> Table:
    """Simulates every combination on all CPUs of this machine, and gives a row for each run.

    :param machine: a name (see :func:`machines`), ``"this"``, a file, a dictionary with what a
        file has, or several of these
    :param workload: the same, of workloads (see :func:`workloads`)
    :param policies: names (see :func:`policies`), releases of kernels, or ``"all"``; all, if
        neither this nor ``policy`` is given
    :param policy: a policy of your own, beside those. The run then takes one CPU and holds the
        interpreter's lock in each call of a method
    :param seeds: how many, from 1 on; or the seeds, as a range, a list or an array; or
        :func:`until`
    :param memory: what bursts write to: ``copy-on-write``, ``zero-page`` or ``pre-faulted``; what
        the workload says, if it is not given
    :param parameters: parameters of the workload or numbers of the machine, each with a value or
        several. One whose name is an argument here is given in the dictionary of :func:`sweep`.
    :returns: shape (combinations x seeds, about 60). Columns are those of ``percid sim run --csv``:
        times in nanoseconds, memory in bytes, shares from 0 to 1
    :raises SpaceError: for what makes no sense, with what was expected
    :raises RunError: if ``policy`` breaks its contract; an exception of its methods comes out as it
        is
    :raises OSError: if a file cannot be read
    :raises KeyboardInterrupt: within some 20 ms of Ctrl-C

    Costs the simulation itself, and about 1 kB of memory for each run. The interpreter's lock is
    not held.
    """
    own = own_policy(policy)
    names = _beside(policies, own)
    grid: dict[str, Any] = {"machine": machine, "workload": workload, "policies": names}
    grid |= {"seeds": seeds, "memory": memory, **parameters}
    return Table(_native.run(_plan(grid, False, own)))


def _beside(
    policies: str | Iterable[str] | None, own: tuple[str, Any] | None
) -> str | Iterable[str]:
    """The names of the policies to simulate."""
    if own is None:
        return "all" if policies is None else policies
    return [*([] if policies is None else policies_of(policies)), own[0]]


def sweep(
    space: Mapping[str, Any] | Iterable[Mapping[str, Any]],
    executor: Any = None,
    store: str | os.PathLike[str] = "campaign/",
    *,
    shard: tuple[int, int] | None = None,
    invalid: str = "raise",
    progress: bool = True,
    storage_options: dict[str, Any] | None = None,
) -> Sweep:
    """Simulates a parameter space into a store of Parquet files.

    What is in the store is not simulated again: after an interruption, or when a worker or the
    whole cluster went away, the same call goes on. The table has the same bytes for any executor,
    any number of workers and any order, and for ``percid sim sweep``, which writes the same store.

    :param space: a grid, a dictionary with the arguments of :func:`run`, of which every combination
        is simulated; or several grids, with the same seeds
    :param executor: ``None`` for threads of this process; an executor of
        :mod:`concurrent.futures`; a ``distributed.Client``; ``"ray"``. Workers must have the same
        version of percid
    :param store: a folder, or a URL that fsspec opens (``s3://bucket/campaign``)
    :param shard: (i, n): only the i-th of n shares, from 1; the others are computed elsewhere, into
        the same store
    :param invalid: ``"raise"`` to refuse combinations that make no sense; ``"keep"`` to make
        failures of them
    :param progress: whether to show a bar
    :param storage_options: for fsspec
    :raises SpaceError: for what makes no sense, with what was expected
    :raises StoreError: if the store has another sweep's runs, or a damaged file
    :raises VersionError: if a worker has another version of percid
    :raises ExecutorLost: if the executor went away; the store has what was done
    :raises OSError: if the store cannot be written; it keeps what it has
    """
    if not isinstance(invalid, str) or invalid not in ("raise", "keep"):
        raise SpaceError(f"invalid: expected 'raise' or 'keep', found {found(invalid)}")
    own = shard_of(shard)
    plan = _plan(space, invalid == "keep")
    return _sweep(plan, open_store(store, storage_options, plan), executor, own, progress)


def spans(
    machine: Described = "epyc-9654",
    workload: Described = "container",
    policy: str = "percid-table",
    seed: int = 1,
    *,
    most: int = 20_000,
    **parameters: float,
) -> Table:
    """Which CPU used which ID when, in one run.

    :param most: no more rows than this, the first ones
    :returns: shape (at most ``most``, 4): cpu, id, from_ns, to_ns
    :raises SpaceError: as :func:`run`
    """
    (name, *more) = policies_of(policy)
    if more:
        raise SpaceError(f"policy: expected one, found {found(policy)}")
    values = [(key, number(value, f"parameter {key}")) for key, value in parameters.items()]
    texts = (machine_of(machine)["text"], workload_of(workload)["text"])
    seed, most = seed_of(seed), whole(most, "most", 0, 2**32)
    try:
        return Table(_native.spans(*texts, name, values, seed, most))
    except SpaceError as error:
        raise SpaceError(without_line(error)) from None
