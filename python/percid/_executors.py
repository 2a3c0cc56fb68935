"""Executors: something with ``submit`` whose futures are those of :mod:`concurrent.futures`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from . import _native
from ._table import _optional
from ._work import compute
from .errors import SpaceError

Submit = Callable[[str], "Future[bytes]"]


def cpus() -> int:
    """How many CPUs this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


@contextmanager
def opened(executor: Any) -> Iterator[tuple[Submit, int]]:
    """How to submit a job, and how many of them to have under way at a time."""
    if executor is None:
        yield from _threads()
    elif executor == "ray":
        yield from _ray()
    elif _is_dask(executor):
        yield from _dask(executor)
    elif isinstance(executor, Executor) or callable(getattr(executor, "submit", None)):
        workers = getattr(executor, "_max_workers", None) or cpus()
        yield (lambda job: executor.submit(compute, job)), 4 * workers
    else:
        raise SpaceError(
            "executor: expected None, an executor of concurrent.futures, a dask Client or 'ray', "
            f"found {executor!r}"
        )


def _threads() -> Iterator[tuple[Submit, int]]:
    """Threads of this process: simulations hold no lock of the interpreter."""
    control = _native.Control()
    workers = cpus()
    pool = ThreadPoolExecutor(workers, thread_name_prefix="percid-sweep")
    try:
        yield (lambda job: pool.submit(_native.compute, job, control)), 4 * workers
    except BaseException:
        control.stop()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _is_dask(executor: Any) -> bool:
    return type(executor).__module__.startswith("distributed.") and hasattr(executor, "scheduler")


def _dask(client: Any) -> Iterator[tuple[Submit, int]]:
    threads = sum(client.nthreads().values())
    if threads == 0:
        raise SpaceError("executor: expected a dask cluster with workers, found one without")
    # Not pure: the names of tasks are not made of long texts, and equal ones are not joined.
    pool = client.get_executor(pure=False)
    yield (lambda job: pool.submit(compute, job)), 4 * threads


def _ray() -> Iterator[tuple[Submit, int]]:
    ray = _optional("ray", "ray")
    if not ray.is_initialized():
        ray.init()
    remote = ray.remote(compute)
    workers = int(ray.cluster_resources().get("CPU", 1))
    yield (lambda job: remote.remote(job).future()), 4 * workers
