"""Where the runs of a sweep are: a folder, or anything that fsspec knows."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from . import _native
from ._table import _optional
from ._values import found, path_of
from .errors import SpaceError, StoreError

DESCRIPTION = "sweep.json"
RUNS = "runs"
FAILURES = "failures"
TABLE = "table.parquet"


class Files(Protocol):
    """Files with names; a name may have slashes."""

    def read(self, name: str) -> bytes | None: ...

    def write(self, name: str, contents: bytes) -> None: ...

    def remove(self, name: str) -> None: ...

    def list(self, folder: str) -> Iterator[str]: ...

    def is_empty(self) -> bool: ...


class LocalFiles:
    """A folder of this machine. A file appears whole or not at all."""

    _written = itertools.count()

    def __init__(self, path: str) -> None:
        self.path = Path(path)

    def __str__(self) -> str:
        return str(self.path)

    def read(self, name: str) -> bytes | None:
        try:
            return (self.path / name).read_bytes()
        except FileNotFoundError:
            return None

    def write(self, name: str, contents: bytes) -> None:
        path = self.path / name
        beside = path.with_suffix(f".{os.getpid()}-{next(self._written)}.part")
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with open(beside, "wb") as file:
                file.write(contents)
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, path)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise

    def remove(self, name: str) -> None:
        (self.path / name).unlink(missing_ok=True)

    def list(self, folder: str) -> Iterator[str]:
        root = self.path / folder
        for below, _, names in os.walk(root):
            for name in names:
                yield Path(below, name).relative_to(root).as_posix()

    def is_empty(self) -> bool:
        return not self.path.exists() or not any(self.path.iterdir())


class RemoteFiles:
    """What fsspec opens. Object stores show a file when it is whole."""

    def __init__(self, url: str, options: dict[str, Any]) -> None:
        fsspec = _optional("fsspec", "remote")
        self.url = url
        self.system, self.root = fsspec.core.url_to_fs(url, **options)
        self.root = self.root.rstrip("/")

    def __str__(self) -> str:
        return self.url

    def _path(self, name: str) -> str:
        return f"{self.root}/{name}"

    def read(self, name: str) -> bytes | None:
        try:
            return self.system.cat_file(self._path(name))
        except FileNotFoundError:
            return None

    def write(self, name: str, contents: bytes) -> None:
        path = self._path(name)
        self.system.makedirs(path.rpartition("/")[0], exist_ok=True)
        self.system.pipe_file(path, contents)

    def remove(self, name: str) -> None:
        if self.system.exists(self._path(name)):
            self.system.rm_file(self._path(name))

    def list(self, folder: str) -> Iterator[str]:
        self.system.invalidate_cache()
        root = self._path(folder)
        for path in self.system.find(root):
            yield path[len(root) :].lstrip("/")

    def is_empty(self) -> bool:
        return not self.system.exists(self.root) or not self.system.find(self.root)


def open_store(
    store: str | os.PathLike[str], options: dict[str, Any] | None, plan: _native.Plan
) -> Files:
    """The store of a plan, which is made if there is none.

    :raises StoreError: if it has the runs of another sweep, or anything else
    """
    path = path_of(store, "store")
    if options is not None and not isinstance(options, Mapping):
        raise SpaceError(f"storage_options: expected a dictionary, found {found(options)}")
    files: Files = RemoteFiles(path, dict(options or {})) if "://" in path else LocalFiles(path)
    description = files.read(DESCRIPTION)
    if description is not None:
        try:
            plan.expect_same(description.decode(errors="replace"))
        except StoreError as error:
            raise StoreError(f"{files}: {error}") from None
    elif files.is_empty():
        files.write(DESCRIPTION, plan.description.encode())
    else:
        raise StoreError(f"{files}: expected a new or empty folder, or one with a {DESCRIPTION}")
    return files
