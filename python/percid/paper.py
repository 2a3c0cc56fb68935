"""Published results beside simulated ones, cell by cell.

Each function gives a table with the simulated figure, the published one and the error, a share of
the published figure. What was published where is in percid's book, page "The simulator". A seed
that is not a whole number from 0 on raises :class:`percid.SpaceError`.
"""

from __future__ import annotations

from . import _native
from ._table import Table
from ._values import seed_of

__all__ = ["cross_validation", "intermittent", "mask", "numa", "predictions"]


def intermittent(seed: int = 1) -> Table:
    """The intermittent benchmark on 2 x AMD EPYC 9654, with the published IDs before and after:
    config, delay_ms, policy, model_ns, published_ns, error, pre_faulted_ns, shares (JSON),
    ids_distinct, scans. Takes about ten seconds on two CPUs."""
    return Table(_native.published("intermittent", seed_of(seed)))


def cross_validation(seed: int = 1) -> Table:
    """Each row of that table, and all rows of each pause, predicted by a model that was fitted to
    the others: config, delay_ms, policy, model_ns, published_ns, error, left_out. Takes about a
    minute on two CPUs."""
    return Table(_native.published("cross_validation", seed_of(seed)))


def predictions(seed: int = 1) -> Table:
    """What the model says where nothing was fitted to it: what, source, unit, model, published,
    earlier, kind, bound."""
    return Table(_native.published("predictions", seed_of(seed)))


def mask(seed: int = 1) -> Table:
    """The membership mask of an address space, set always or tested first."""
    return Table(_native.published("mask", seed_of(seed)))


def numa(seed: int = 1) -> Table:
    """The NUMA scan with and without the published series."""
    return Table(_native.published("numa", seed_of(seed)))
