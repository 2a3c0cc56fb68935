"""What callers say is to be simulated, as the text that percid's crates read."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from . import _native
from .errors import SpaceError

Described = str | os.PathLike[str] | Mapping[str, Any]
Numbers = float | Iterable[float]


@dataclass(frozen=True)
class Until:
    """Seeds that go on until a mean is known; see :func:`percid.sim.until`."""

    interval: float
    least: int
    most: int


Seeds = int | range | Until


def space(grids: Iterable[Mapping[str, Any]]) -> str:
    """The document for several grids, which must have the same seeds."""
    own = [dict(grid) for grid in grids]
    if not own:
        raise SpaceError("expected at least one grid")
    seeds = [grid.pop("seeds", 5) for grid in own]
    if any(other != seeds[0] for other in seeds[1:]):
        raise SpaceError("expected the same seeds in all grids")
    return json.dumps({"grids": [_grid(**grid) for grid in own], "seeds": _seeds(seeds[0])})


def _grid(
    machine: Any = "epyc-9654",
    workload: Any = "container",
    policies: Any = "all",
    memory: str | None = None,
    **parameters: Any,
) -> dict[str, Any]:
    grid = {
        "machines": [_machine(each) for each in _several(machine)],
        "workloads": [_workload(each) for each in _several(workload)],
        "policies": _policies(policies),
        "parameters": {name: _numbers(name, values) for name, values in parameters.items()},
    }
    if memory is not None:
        grid["memory"] = memory
    return grid


def _several(described: Any) -> list[Any]:
    is_one = isinstance(described, (str, os.PathLike, Mapping))
    return [described] if is_one or not isinstance(described, Iterable) else list(described)


def _machine(described: Described) -> dict[str, str]:
    return _named(described, "machine", _native.machine_text)


def _workload(described: Described) -> dict[str, str]:
    return _named(described, "workload", _native.workload_text)


def _named(described: Described, what: str, text_of: Any) -> dict[str, str]:
    if isinstance(described, Mapping):
        name = described.get("name")
        if not isinstance(name, str):
            raise SpaceError(f"{what}: expected a name in the dictionary")
        return {"name": name, "text": _native.toml_of(json.dumps(described))}
    if not isinstance(described, (str, os.PathLike)):
        found = type(described).__name__
        raise SpaceError(f"{what}: expected a name, a file or a dictionary, found {found}")
    name, text = text_of(os.fspath(described))
    return {"name": name, "text": text}


def _policies(policies: Any) -> list[str]:
    names = [policies] if isinstance(policies, str) else list(policies)
    everything = _native.catalogue("policies").column("name")
    return [name for asked in names for name in (everything if asked == "all" else [asked])]


def _numbers(name: str, values: Any) -> list[float]:
    if isinstance(values, str):
        raise SpaceError(f"parameter {name}: expected numbers, found {values!r}")
    try:
        return [float(values)]
    except (TypeError, ValueError):
        pass
    try:
        return [float(value) for value in values]
    except (TypeError, ValueError) as error:
        raise SpaceError(f"parameter {name}: expected numbers, found {values!r}") from error


def _seeds(seeds: Any) -> dict[str, Any]:
    if isinstance(seeds, bool):
        raise SpaceError("seeds: expected a number of them, found a truth value")
    if isinstance(seeds, Until):
        until = {"interval": seeds.interval, "most": seeds.most}
        return {"first": 1, "count": seeds.least, "until": until}
    if isinstance(seeds, range):
        if seeds.step != 1 or seeds.start < 0 or not seeds:
            raise SpaceError(f"seeds: expected a range that counts by ones, found {seeds}")
        return {"first": seeds.start, "count": len(seeds)}
    if isinstance(seeds, int) and seeds > 0:
        return {"first": 1, "count": seeds}
    raise SpaceError(
        f"seeds: expected how many, a range, or percid.sim.until(...), found {seeds!r}"
    )
