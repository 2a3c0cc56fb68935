"""Tables that other libraries take over without copying them."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _native

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow
    import xarray


class Table:
    """An Arrow table.

    Whatever knows the Arrow PyCapsule interface takes it as it is: ``pyarrow.table(table)``,
    ``polars.DataFrame(table)``, DuckDB. Numbers are not copied on the way.
    """

    __slots__ = ("_native",)

    def __init__(self, native: _native.Table) -> None:
        self._native = native

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._native.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> Any:
        return self._native.__arrow_c_schema__()

    def __len__(self) -> int:
        return self._native.num_rows

    def __getitem__(self, name: str) -> list[Any]:
        """A column as a list, with None where it is empty. Copies it."""
        return self._native.column(name)

    @property
    def column_names(self) -> list[str]:
        """The names of the columns, in their order."""
        return self._native.column_names

    def to_pyarrow(self) -> pyarrow.Table:
        """As a ``pyarrow.Table``. Needs ``percid[arrow]``."""
        return _optional("pyarrow", "arrow").table(self)

    def to_pandas(self) -> pandas.DataFrame:
        """As a ``pandas.DataFrame``. Counts that may be empty become floating-point numbers only
        where one is. Needs ``percid[pandas]``."""
        _optional("pandas", "pandas")
        return self.to_pyarrow().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """As a ``polars.DataFrame``. Needs ``percid[polars]``."""
        return _optional("polars", "polars").DataFrame(self)

    def to_xarray(self, dims: Iterable[str] | None = None) -> xarray.Dataset:
        """As an ``xarray.Dataset``, whose dimensions are what the rows differ by: machine,
        workload, memory, policy, seed and the parameters (under their own names), as far as they
        have more than one value. Needs ``percid[xarray]``.

        :param dims: the columns that shall be dimensions instead
        :raises ValueError: if two rows are the same in all dimensions
        """
        _optional("xarray", "xarray")
        frame = self.to_pandas()
        frame = frame.rename(columns=lambda name: name.removeprefix("parameters."))
        if dims is None:
            known = {"machine", "workload", "memory", "policy", "seed"}
            known |= {
                name.removeprefix("parameters.")
                for name in self.column_names
                if name.startswith("parameters.")
            }
            dims = [name for name in frame.columns if name in known and frame[name].nunique() > 1]
        dims = list(dims)
        if not dims:
            return frame.to_xarray()
        if frame.duplicated(dims).any():
            raise ValueError(f"expected rows that differ in {', '.join(dims)}, found two alike")
        return frame.set_index(dims).to_xarray()

    def to_pylist(self) -> list[dict[str, Any]]:
        """As a list with a dictionary for each row. Copies everything."""
        columns = [self[name] for name in self.column_names]
        return [dict(zip(self.column_names, row)) for row in zip(*columns)]

    def to_parquet(self, path: str | PathLike[str] | None = None) -> bytes:
        """The bytes of a Parquet file, written to a file if there is a path. The same table gives
        the same bytes.

        :raises OSError: if the file cannot be written
        """
        contents = self._native.to_parquet()
        if path is not None:
            Path(path).write_bytes(contents)
        return contents

    def __repr__(self) -> str:
        rows, columns = len(self), len(self.column_names)
        return f"<percid.Table: {rows} rows, {columns} columns>"

    def _repr_html_(self) -> str:
        try:
            return self.to_pandas()._repr_html_()
        except ImportError:
            from html import escape

            return escape(repr(self))


def _optional(module: str, extra: str) -> Any:
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"this needs {module}: pip install 'percid[{extra}]'") from error
