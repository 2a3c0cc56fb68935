"""Pictures, with the colours of percid's HTML reports. Needs ``percid[plots]``.

Each function draws on ``ax``, or on a new figure, and returns the axes.
"""

from __future__ import annotations

from typing import Any

from ._table import Table, _optional
from ._values import found
from .errors import SpaceError

__all__ = ["ids", "published", "sensitivity", "shares"]

#: Names, such as policies.
NAMES = ["#2474d0", "#e0701a", "#0f7048", "#6b35a0", "#4d3a0a", "#8e8e8e"]
#: Parts of a whole, in their order.
PARTS = ["#f6ec9f", "#d0db72", "#8fcb7e", "#4bb08b", "#2b8f95", "#2f6c93", "#3f4787", "#3d1a5b"]
#: Marks, by which names are told apart without colour.
MARKS = ["o", "s", "^", "D", "P"]
#: What bursts found, from near to far.
CLASSES = {
    "hot": "hot",
    "own": "own",
    "same_l3": "same L3",
    "same_socket": "same socket",
    "other_socket": "other socket",
    "first_touch": "first touch",
}


def _axes(ax: Any) -> Any:
    if ax is None:
        _, ax = _optional("matplotlib.pyplot", "plots").subplots(layout="constrained")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _in_order(values: list[Any]) -> list[Any]:
    return list(dict.fromkeys(values))


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _expect(table: Table, *names: str) -> None:
    if not isinstance(table, Table):
        raise SpaceError(f"table: expected a percid.Table, found {found(table)}")
    lacking = [name for name in names if name not in table.column_names]
    if lacking:
        raise SpaceError(f"expected a table with {', '.join(names)}; this one lacks {lacking[0]}")


def shares(table: Table, *, cost: bool = False, ax: Any = None) -> Any:
    """What bursts found under each policy, in percent of bursts, or of their cost: the mean of all
    runs of a table of :func:`percid.sim.run` or a sweep.
    """
    part = "cost" if cost else "bursts"
    _expect(table, "policy", *(f"shares.{name}.{part}" for name in CLASSES))
    ax = _axes(ax)
    ax.grid(axis="x", color="#e4e7eb")
    ax.set_axisbelow(True)
    of_rows = table["policy"]
    policies = _in_order(of_rows)[::-1]
    begin = [0.0] * len(policies)
    for (name, label), colour in zip(CLASSES.items(), PARTS):
        column = table[f"shares.{name}.{part}"]
        widths = [
            100 * (_mean([share for share, of in zip(column, of_rows) if of == policy]) or 0)
            for policy in policies
        ]
        ax.barh(policies, widths, left=begin, color=colour, label=label)
        begin = [left + width for left, width in zip(begin, widths)]
    ax.set_xlim(0, 100)
    ax.set_xlabel(f"% of {'their cost' if cost else 'bursts'}")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, 1.15), ncols=6, frameon=False, fontsize=8)
    return ax


def published(table: Table, *, ax: Any = None) -> Any:
    """Simulated figures beside published ones, in multiples of these: a table of
    :func:`percid.paper.intermittent` or :func:`percid.paper.cross_validation`.
    """
    _expect(table, "config", "delay_ms", "policy", "error")
    ax = _axes(ax)
    ax.grid(axis="x", color="#e4e7eb")
    labels = [f"{config}, {ms} ms" for config, ms in zip(table["config"], table["delay_ms"])]
    rows = _in_order(labels)[::-1]
    for nth, policy in enumerate(_in_order(table["policy"])):
        points = [
            (1 + error, rows.index(label))
            for error, label, of in zip(table["error"], labels, table["policy"])
            if of == policy
        ]
        ax.plot(
            *zip(*points),
            MARKS[nth % len(MARKS)],
            color=NAMES[nth % len(NAMES)],
            label=policy,
            linestyle="none",
        )
    ax.axvline(1, color="#57606a", linewidth=1)
    ax.set_yticks(range(len(rows)), rows)
    ax.set_xlabel("simulated / published")
    ax.legend(frameon=False)
    return ax


def ids(table: Table, *, ax: Any = None) -> Any:
    """Which CPU used which ID when: a table of :func:`percid.sim.spans`."""
    _expect(table, "cpu", "id", "from_ns", "to_ns")
    ax = _axes(ax)
    for cpu, number, begin, end in zip(
        *(table[name] for name in ("cpu", "id", "from_ns", "to_ns"))
    ):
        colour = PARTS[number % len(PARTS)]
        ax.barh(cpu, (end - begin) / 1e6, left=begin / 1e6, height=0.9, color=colour)
    ax.set_xlabel("ms")
    ax.set_ylabel("CPU (colour: ID modulo 8)")
    return ax


def sensitivity(table: Table, parameter: str, *, ax: Any = None) -> Any:
    """How ``ns_per_burst`` depends on a parameter, policy by policy: the mean of all other
    parameters and seeds, with the runs that took least and most.
    """
    column = f"parameters.{parameter}" if isinstance(parameter, str) else found(parameter)
    _expect(table, "policy", "ns_per_burst", column)
    ax = _axes(ax)
    ax.grid(axis="y", color="#e4e7eb")
    rows = list(zip(table["policy"], table[column], table["ns_per_burst"]))
    for nth, policy in enumerate(_in_order(table["policy"])):
        values: dict[float, list[float]] = {}
        for of, value, ns in rows:
            if of == policy and ns is not None and value is not None:
                values.setdefault(value, []).append(ns)
        at = sorted(values)
        means = [sum(values[value]) / len(values[value]) for value in at]
        below = [mean - min(values[value]) for value, mean in zip(at, means)]
        above = [max(values[value]) - mean for value, mean in zip(at, means)]
        ax.errorbar(
            at,
            means,
            [below, above],
            fmt=f"{MARKS[nth % len(MARKS)]}-",
            color=NAMES[nth % len(NAMES)],
            capsize=2,
            label=policy,
        )
    ax.set_ylim(bottom=0)
    ax.set_xlabel(parameter)
    ax.set_ylabel("ns per burst")
    ax.legend(frameon=False)
    return ax
