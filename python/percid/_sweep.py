"""Fills a store."""

from __future__ import annotations

import warnings
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from dataclasses import dataclass, field
from typing import Any

from . import _native
from ._executors import opened
from ._store import FAILURES, RUNS, TABLE, Files
from ._table import Table
from ._values import found, whole
from .errors import ExecutorLost, RunError, SpaceError, StoreError, VersionError


@dataclass(frozen=True)
class Failure:
    """Some seeds of one combination that could not be simulated."""

    #: The unit: its combination and its seeds, as its file in the store would be named.
    unit: str
    #: The error.
    why: str


@dataclass(frozen=True)
class Sweep:
    """What a sweep found."""

    #: All runs that are there: a row for each, in the order of machines, workloads, parameters,
    #: policies and seeds, whoever computed them in which order.
    table: Table
    #: What could not be simulated; tried again by the next sweep into the same store.
    failures: list[Failure] = field(default_factory=list)
    #: Runs that were in the store already.
    found: int = 0
    #: Runs that were computed.
    computed: int = 0
    #: Files that are missing: those of other shards, and those that failed.
    missing: int = 0

    def __repr__(self) -> str:
        return (
            f"<percid.sim.Sweep: {len(self.table)} runs, {self.found} of them found, "
            f"{len(self.failures)} failures, {self.missing} files missing>"
        )


def shard_of(shard: Any) -> tuple[int, int] | None:
    """The number of a share and how many there are.

    :raises SpaceError: for anything else
    """
    if shard is None:
        return None
    expected = "shard: expected a number and how many there are, such as (2, 8)"
    try:
        number, of = shard
    except (TypeError, ValueError):
        raise SpaceError(f"{expected}; found {found(shard)}") from None
    of = whole(of, f"{expected}; how many", 1)
    return whole(number, f"{expected}; number", 1, of), of


def sweep(
    plan: _native.Plan,
    files: Files,
    executor: Any,
    shard: tuple[int, int] | None,
    progress: bool,
) -> Sweep:
    """Computes what is missing."""
    whole = files.read(TABLE)
    if whole is not None:
        try:
            table = _native.Table.from_parquet(whole)
        except ValueError as error:
            raise StoreError(f"{files}/{TABLE}: {error}; delete it, and it is made again") from None
        return Sweep(Table(table), found=table.num_rows)
    campaign = _native.Campaign(plan, shard)
    for name in sorted(name for name in files.list(RUNS) if name.endswith(".parquet")):
        campaign.found(name, files.read(f"{RUNS}/{name}") if campaign.needs_results else None)
    with _Bar(campaign, progress) as bar:
        _drive(campaign, files, executor, bar)
    return _result(plan, campaign, files, shard)


def _result(
    plan: _native.Plan, campaign: _native.Campaign, files: Files, shard: tuple[int, int] | None
) -> Sweep:
    counts = campaign.counts()
    table, _, missing = _native.merge(plan, lambda name: files.read(f"{RUNS}/{name}"))
    if not missing:
        files.write(TABLE, table.to_parquet())
    failures = [
        Failure(name, (files.read(f"{FAILURES}/{name}") or b"").decode(errors="replace"))
        for name in sorted(files.list(FAILURES))
    ]
    if failures:
        first = failures[0]
        text = f"{len(failures)} units could not be simulated; {first.unit}: {first.why}"
        warnings.warn(text, RuntimeWarning, stacklevel=4)
    return Sweep(Table(table), failures, counts["found"], counts["done"], len(missing))


def _drive(campaign: _native.Campaign, files: Files, executor: Any, bar: _Bar) -> None:
    with opened(executor) as (submit, at_a_time):
        pending: dict[Future[bytes], str] = {}
        try:
            while True:
                while len(pending) < at_a_time:
                    unit = campaign.next_unit()
                    if unit is None:
                        break
                    name, job = unit
                    pending[_submitted(submit, job)] = name
                if not pending:
                    return
                done, _ = wait(pending, return_when=FIRST_COMPLETED)
                for future in done:
                    _take(future, pending.pop(future), campaign, files)
                counts = campaign.counts()
                bar.told(counts["done"] + counts["failed"], counts["left"])
        finally:
            for future in pending:
                future.cancel()


_LOST = (
    "the executor was lost ({}); what was done is in the store, the same call goes on from there"
)


def _submitted(submit: Any, job: str) -> Future[bytes]:
    try:
        return submit(job)
    except (SpaceError, KeyboardInterrupt):
        raise
    except Exception as error:
        raise ExecutorLost(_LOST.format(error)) from error


def _take(future: Future[bytes], name: str, campaign: _native.Campaign, files: Files) -> None:
    """Keeps the result of a unit, or why it has none."""
    try:
        contents = future.result()
    except RunError as error:
        _keep_failure(name, str(error), campaign, files)
        return
    except (VersionError, SpaceError, ImportError):
        raise
    except (BrokenExecutor, CancelledError, ConnectionError, TimeoutError) as error:
        raise ExecutorLost(_LOST.format(error or type(error).__name__)) from error
    except Exception as error:
        if _is_loss(error):
            raise ExecutorLost(_LOST.format(error)) from error
        _keep_failure(name, f"{type(error).__name__}: {error}", campaign, files)
        return
    files.write(f"{RUNS}/{name}", contents)
    files.remove(f"{FAILURES}/{name}")
    campaign.done(name, contents if campaign.needs_results else None)


def _is_loss(error: Exception) -> bool:
    """Whether a library's own exception says that workers or schedulers went away."""
    module, name = type(error).__module__, type(error).__name__
    if module.startswith("distributed"):
        return name in {
            "KilledWorker",
            "CommClosedError",
            "FutureCancelledError",
            "NoValidWorkerError",
        }
    # A worker of Ray that raised wraps the cause; these are the others.
    return module.startswith("ray") and name in {
        "NodeDiedError",
        "ObjectLostError",
        "OwnerDiedError",
        "RaySystemError",
        "WorkerCrashedError",
    }


def _keep_failure(name: str, why: str, campaign: _native.Campaign, files: Files) -> None:
    files.write(f"{FAILURES}/{name}", why.encode())
    campaign.failed(name)


class _Bar:
    """Progress in runs, in a terminal or a notebook."""

    def __init__(self, campaign: _native.Campaign, shown: bool) -> None:
        from tqdm.auto import tqdm

        counts = campaign.counts()
        self._found = self._told = counts["found"]
        total = self._found + counts["left"]
        self._bar = tqdm(
            total=total, initial=self._found, unit="run", desc="sweep", disable=not shown
        )

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()

    def told(self, done: int, left: int) -> None:
        # Where seeds go on until a mean is known, what is left shrinks.
        self._bar.total = self._found + done + left
        self._bar.update(self._found + done - self._told)
        self._told = self._found + done
