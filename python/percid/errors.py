"""What the package raises. What the system refuses is an :class:`OSError`, as everywhere."""

from __future__ import annotations


class Error(Exception):
    """The base of all others."""


class SpaceError(Error, ValueError):
    """What is asked for makes no sense; the message says what was expected."""


class StoreError(Error):
    """A store has the runs of another sweep or of another version, or a damaged file."""


class VersionError(Error):
    """A worker has another version of percid than the program that sent it a job."""


class RunError(Error):
    """A simulation ended without a result."""


class TraceError(Error):
    """A file is no recording that can be read."""


class ExecutorLost(Error):
    """The executor of a sweep went away. What was done is in the store: the same call goes on."""
