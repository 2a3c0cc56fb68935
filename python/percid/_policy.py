"""Policies for concurrency IDs that are written in Python."""

from __future__ import annotations

from typing import Any

from ._native import Process
from ._values import found
from .errors import SpaceError


class Policy:
    """A policy for concurrency IDs, for the argument ``policy`` of :func:`percid.sim.run`.

    Each simulated process has a deep copy of the object. Threads are numbered from 0 over the life
    of a process, CPUs as on the machine; ``None`` is none. ``process`` describes the process after
    the change that a method reports. Methods that are not overridden are not called.

    The contract: an ID is below the number of the machine's CPUs, or of the threads that the
    process had at a time if that is more; no two running threads of a process have one ID; a
    running thread keeps its ID until it is switched away from, replaces the program, or its CPU is
    fenced (``process.charge(fence=cpu)``). A policy that breaks it ends the run with
    :class:`percid.RunError`, an exception of a method with that exception.
    """

    #: The name in tables; that of the class, if it is empty.
    name: str = ""

    def id(self, process: Process, cpu: int, thread: int) -> int:
        """Gives the ID of the thread, which runs on the CPU and uses it. Required."""
        raise NotImplementedError("a policy needs the method id")

    def start(self, process: Process) -> None:
        """Called first, with the machine only."""

    def switch(self, process: Process, cpu: int, prev: int | None, next: int | None) -> None:
        """A CPU switches; ``None`` is idle or a thread of another process."""

    def migrate(self, process: Process, thread: int, origin: int, target: int) -> None:
        """A thread that ran is queued on another CPU."""

    def tick(self, process: Process, cpu: int, thread: int) -> None:
        """The timer's tick finds the thread running."""

    def spawn(self, process: Process, thread: int, allowed_cpus: int) -> None:
        """A new thread, before it runs."""

    def exit(self, process: Process, thread: int, cpu: int) -> None:
        """A thread ends, before the switch away from it."""

    def affinity(self, process: Process, thread: int, allowed_cpus: int) -> None:
        """The number of a thread's CPUs has changed."""

    def exec(self, process: Process, cpu: int, thread: int) -> None:
        """A thread replaces the program, and all others have ended. If it is not overridden, a new
        copy of the object begins."""


def own_policy(policy: Any) -> tuple[str, Any] | None:
    """The name and the object of a caller's policy.

    :raises SpaceError: if it is none
    """
    if policy is None:
        return None
    if isinstance(policy, type) or not callable(getattr(policy, "id", None)):
        expected = "an object with the methods of percid.sim.Policy"
        raise SpaceError(f"policy: expected {expected}, found {found(policy)}")
    name = getattr(policy, "name", "") or type(policy).__name__
    if not isinstance(name, str):
        raise SpaceError(f"policy: expected a name that is a str, found {found(name)}")
    return name, policy
