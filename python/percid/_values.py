"""Checks of single arguments. Numbers of NumPy, pandas and others are numbers as well."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from .errors import SpaceError

#: The largest seed.
MAX_SEED = 2**64 - 1
#: As many values as there may be runs.
MAX_VALUES = 10_000_000


def found(value: Any) -> str:
    """A value in a message, with its type if that is not obvious."""
    text = repr(value)
    text = text if len(text) <= 60 else f"{text[:57]}..."
    plain = value is None or isinstance(value, (bool, int, float, str))
    return text if plain else f"{text} ({type(value).__name__})"


def index_of(value: Any) -> int | None:
    """A whole number of any type; None if it is none."""
    try:
        return operator.index(value)
    except TypeError:
        return None


def whole(value: Any, what: str, least: int, most: int = MAX_SEED) -> int:
    """A whole number within bounds.

    :raises SpaceError: for anything else
    """
    number = None if _is_truth(value) else index_of(value)
    if number is None or not least <= number <= most:
        expected = f"expected a whole number from {least} to {most}"
        raise SpaceError(f"{what}: {expected}, found {found(value)}")
    return number


def number(value: Any, what: str) -> float:
    """A finite number.

    :raises SpaceError: for anything else
    """
    is_number = hasattr(value, "__float__") or hasattr(value, "__index__")
    if _is_truth(value) or not is_number or not _is_single(value):
        raise SpaceError(f"{what}: expected a number, found {found(value)}")
    try:
        converted = float(value)
    except (TypeError, ValueError, OverflowError):
        raise SpaceError(f"{what}: expected a finite number, found {found(value)}") from None
    if not math.isfinite(converted):
        raise SpaceError(f"{what}: expected a finite number, found {found(value)}")
    return converted


def numbers(values: Any, what: str) -> list[float]:
    """A number, or several: a list, a range, an array, a column.

    :raises SpaceError: for anything else
    """
    return [number(value, what) for value in several(values, what, "numbers")]


def several(values: Any, what: str, kind: str) -> list[Any]:
    """What is in a list, a range, an array or a column; a single value as a list.

    :raises SpaceError: if there is none, or there is no order among them
    """
    if _is_single(values):
        return [values]
    if isinstance(values, Mapping):
        raise SpaceError(f"{what}: expected {kind}, found {found(values)}")
    if isinstance(values, (set, frozenset)):
        raise SpaceError(f"{what}: expected {kind} in an order, such as a list, found a set")
    listed = list(islice(values, MAX_VALUES + 1))
    if len(listed) > MAX_VALUES:
        raise SpaceError(f"{what}: expected at most {MAX_VALUES} values, found more")
    if not listed:
        raise SpaceError(f"{what}: expected at least one value, found none")
    return listed


def seed_of(value: Any, what: str = "seed") -> int:
    """A seed.

    :raises SpaceError: for anything else
    """
    return whole(value, what, 0)


def path_of(path: Any, what: str) -> str:
    """The name of a file or folder.

    :raises SpaceError: for anything else
    """
    if isinstance(path, (str, os.PathLike)):
        name = os.fspath(path)
        if isinstance(name, str) and name and "\0" not in name:
            return name
    raise SpaceError(f"{what}: expected the name of a file or folder, found {found(path)}")


def plain(value: Any, what: str) -> Any:
    """A dictionary's contents as JSON has them.

    :raises SpaceError: for what a file could not have, with the keys that lead to it
    """
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise SpaceError(f"{what}: expected names as keys, found {found(key)}")
        return {key: plain(inner, f"{what}.{key}") for key, inner in value.items()}
    if isinstance(value, str):
        return str(value)
    if isinstance(value, os.PathLike):
        return path_of(value, what)
    if _is_truth(value):
        return bool(value)
    if not _is_single(value):
        return [plain(inner, f"{what}[{at}]") for at, inner in enumerate(value)]
    at = index_of(value)
    if at is not None:
        return whole(at, what, -(2**63), 2**63 - 1)
    return number(value, what)


def _is_truth(value: Any) -> bool:
    """Also NumPy's, whose class is imported by nobody here."""
    return isinstance(value, bool) or type(value).__name__ in ("bool_", "bool")


def _is_single(value: Any) -> bool:
    """Arrays without dimensions are iterable by their type, but hold one value."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        return True
    return getattr(value, "ndim", None) == 0
