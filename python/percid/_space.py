"""What callers say is to be simulated, as the text that percid's crates read."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from . import _native
from ._values import MAX_SEED, found, index_of, number, numbers, path_of, plain, several, whole
from .errors import SpaceError

Described = str | os.PathLike[str] | Mapping[str, Any]
Numbers = float | Iterable[float]


@dataclass(frozen=True)
class Until:
    """Seeds that go on until a mean is known; see :func:`percid.sim.until`."""

    interval: float
    least: int
    most: int

    def __post_init__(self) -> None:
        interval = number(self.interval, "interval")
        if interval <= 0:
            raise SpaceError(
                f"interval: expected a number above 0, such as 0.02 for 2 %, found {interval}"
            )
        least = whole(self.least, "least", 1)
        most = whole(self.most, "most", least)
        for name, value in {"interval": interval, "least": least, "most": most}.items():
            object.__setattr__(self, name, value)


Seeds = int | Iterable[int] | Until


def plan(
    grids: Any, keeps_invalid: bool, own_policy: tuple[str, Any] | None = None
) -> _native.Plan:
    """The plan for a grid or several, which must have the same seeds.

    :param own_policy: the name and the object of a caller's policy, which grids may name
    :raises SpaceError: for what makes no sense
    """
    own = [grids] if isinstance(grids, Mapping) else _grids(grids)
    document = space(own)
    try:
        return _native.Plan(document, keeps_invalid, own_policy)
    except SpaceError as error:
        if any(_is_of_file(grid.get(key)) for grid in own for key in ("machine", "workload")):
            raise
        # Nobody sees the text that a dictionary or a name stands for.
        raise SpaceError(without_line(error)) from None


def space(grids: Iterable[Mapping[str, Any]]) -> str:
    """The document for several grids, which must have the same seeds."""
    own = [dict(grid) for grid in grids]
    seeds = [_seeds(grid.pop("seeds", 5)) for grid in own]
    if any(other != seeds[0] for other in seeds[1:]):
        raise SpaceError("seeds: expected the same seeds in all grids")
    for grid in own:
        for name in grid:
            if not isinstance(name, str):
                raise SpaceError(f"space: expected names as keys, found {found(name)}")
    return json.dumps({"grids": [_grid(**grid) for grid in own], "seeds": seeds[0]})


def without_line(error: Exception) -> str:
    """An error's message without the line of a file that it is about."""
    return re.sub(r"\bline \d+: ", "", str(error))


def _grids(grids: Any) -> list[Mapping[str, Any]]:
    own = list(grids) if isinstance(grids, Iterable) and not isinstance(grids, str) else [grids]
    if not own:
        raise SpaceError("space: expected at least one grid, found none")
    for grid in own:
        if not isinstance(grid, Mapping):
            expected = "a dictionary with the arguments of percid.sim.run, or several"
            raise SpaceError(f"space: expected {expected}, found {found(grid)}")
    return own


def _grid(
    machine: Any = "epyc-9654",
    workload: Any = "container",
    policies: Any = "all",
    memory: Any = None,
    **parameters: Any,
) -> dict[str, Any]:
    grid = {
        "machines": [machine_of(each) for each in _described(machine, "machine")],
        "workloads": [workload_of(each) for each in _described(workload, "workload")],
        "policies": policies_of(policies),
        "parameters": {
            name: numbers(values, f"parameter {name}") for name, values in parameters.items()
        },
    }
    if memory is not None:
        if not isinstance(memory, str) or memory not in _MEMORY:
            raise SpaceError(f"memory: expected one of {', '.join(_MEMORY)}, found {found(memory)}")
        grid["memory"] = memory
    return grid


_MEMORY = ("copy-on-write", "zero-page", "pre-faulted")


def _described(described: Any, what: str) -> list[Any]:
    """A dictionary or a path is one machine or workload, not several."""
    if isinstance(described, (Mapping, os.PathLike)):
        return [described]
    return several(described, what, "a name, a file, a dictionary, or several of these")


def machine_of(described: Any, *, kernel_numbers: bool = False) -> dict[str, str]:
    """The name and the text of a machine."""
    return _named(described, "machine", lambda name: _native.machine_text(name, kernel_numbers))


def workload_of(described: Any) -> dict[str, str]:
    """The name and the text of a workload."""
    return _named(described, "workload", _native.workload_text)


def _named(described: Any, what: str, text_of: Any) -> dict[str, str]:
    if isinstance(described, Mapping):
        name = described.get("name")
        if not isinstance(name, str) or not name:
            expected = "expected a name in the dictionary, such as {'name': 'mine', ...}"
            raise SpaceError(f"{what}: {expected}, found {found(name)}")
        document = json.dumps(plain(described, f"{what} {name}"))
        return {"name": str(name), "text": _native.text_of(what, name, document)}
    if not isinstance(described, (str, os.PathLike)):
        expected = "expected a name, a file or a dictionary"
        raise SpaceError(f"{what}: {expected}, found {found(described)}")
    name, text = text_of(path_of(described, what))
    return {"name": name, "text": text}


def _is_of_file(described: Any) -> bool:
    each = described if isinstance(described, (list, tuple)) else [described]
    is_path = (isinstance(one, os.PathLike) for one in each)
    return any(is_path) or any(
        isinstance(one, str) and ("/" in one or one.endswith(".toml")) for one in each
    )


def policies_of(policies: Any) -> list[str]:
    """The names of policies, with all of them for "all"."""
    names = several(policies, "policies", "names of policies")
    everything = _native.catalogue("policies").column("name")
    for name in names:
        if not isinstance(name, str):
            raise SpaceError(
                f"policies: expected 'all' or names such as {everything[0]!r}, found {found(name)}"
            )
    return [str(name) for asked in names for name in (everything if asked == "all" else [asked])]


def _seeds(seeds: Any) -> dict[str, Any]:
    if isinstance(seeds, Until):
        until = {"interval": seeds.interval, "most": seeds.most}
        return {"first": 1, "count": seeds.least, "until": until}
    if isinstance(seeds, range) and seeds and seeds.step == 1:
        whole(seeds[0], "seeds", 0)
        whole(seeds[-1], "seeds", 0)
        return {"first": seeds.start, "count": seeds.stop - seeds.start}
    expected = "how many (from 1), the seeds as a range, list or array, or percid.sim.until(...)"
    count = None if isinstance(seeds, bool) else index_of(seeds)
    if count is not None and count > 0:
        return {"first": 1, "count": min(count, MAX_SEED)}
    is_several = isinstance(seeds, Iterable) and not isinstance(seeds, (str, bytes, Mapping))
    if count is not None or not is_several or getattr(seeds, "ndim", 1) == 0:
        raise SpaceError(f"seeds: expected {expected}, found {found(seeds)}")
    listed = [whole(seed, "seeds", 0) for seed in several(seeds, "seeds", expected)]
    seen: set[int] = set()
    for seed in listed:
        if seed in seen:
            raise SpaceError(f"seeds: expected each one once, found {seed} twice")
        seen.add(seed)
    if listed == list(range(listed[0], listed[0] + len(listed))):
        return {"first": listed[0], "count": len(listed)}
    return {"first": listed[0], "count": len(listed), "list": listed}
