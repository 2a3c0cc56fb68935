"""Tables that other libraries take over without copying them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from . import _native
from ._values import found, index_of, path_of
from .errors import SpaceError

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow
    import xarray


class Table:
    """An Arrow table, which cannot be changed.

    Whatever knows the Arrow PyCapsule interface takes it as it is: ``pyarrow.table(table)``,
    ``polars.DataFrame(table)``, DuckDB. Numbers are not copied on the way.

    It is a sequence of rows with named columns:

    - ``len(table)`` is the number of rows, and ``for row in table`` gives each as a dictionary
    - ``table[3]``, ``table[-1]`` is a row; ``table[:10]`` a table of some rows
    - ``table["policy"]`` is a column, as a list; ``table[["policy", "seed"]]`` a table of some
      columns; ``"policy" in table`` is true if there is such a column
    - ``table == other`` is one truth value: the same columns with the same values, bit for bit

    Whatever computes is in the libraries: ``table.to_pandas()``, ``table.to_polars()``.

    Tables can be pickled, also to other processes and machines, by Arrow's own format. A copy is
    the table itself.
    """

    __slots__ = ("_native",)

    def __init__(self, native: _native.Table) -> None:
        if not isinstance(native, _native.Table):
            raise SpaceError(
                "Table: tables come from percid's functions, such as percid.sim.run; "
                f"found {found(native)}"
            )
        self._native = native

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._native.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> Any:
        return self._native.__arrow_c_schema__()

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (self._native.to_ipc(),)

    def __copy__(self) -> Table:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Table:
        return self

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, Table):
            return NotImplemented
        return self._native.equals(other._native)

    def __hash__(self) -> int:
        return hash((len(self), tuple(self.column_names)))

    def __len__(self) -> int:
        return self._native.num_rows

    def __contains__(self, name: object) -> bool:
        """``True`` if there is a column with this name."""
        if not isinstance(name, str):
            raise SpaceError(
                f"in: expected a column's name, found {found(name)}; values of a column: "
                "value in table['policy']"
            )
        return name in self.column_names

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The rows, each as a dictionary."""
        return (self._native.row(at) for at in range(len(self)))

    @overload
    def __getitem__(self, key: str) -> list[Any]: ...
    @overload
    def __getitem__(self, key: slice | list[str]) -> Table: ...
    @overload
    def __getitem__(self, key: int) -> dict[str, Any]: ...
    def __getitem__(self, key: Any) -> Any:
        """A column by its name, as a list with None where it is empty; a row by its number, as a
        dictionary; a table of some columns or rows, by a list of names or a slice.

        :raises KeyError: if there is no such column
        :raises IndexError: if there is no such row
        """
        if isinstance(key, str):
            return self._native.column(self._known(key))
        if isinstance(key, slice):
            return self._rows(key)
        if isinstance(key, (list, tuple)) and key and all(isinstance(name, str) for name in key):
            return Table(self._native.select([self._known(name) for name in key]))
        at = index_of(key)
        if at is None or isinstance(key, bool):
            raise SpaceError(
                "table[...]: expected a column's name, a list of names, a row's number or a slice, "
                f"found {found(key)}; rows by a condition: table.to_pandas() or table.to_polars()"
            )
        rows = len(self)
        if not -rows <= at < rows:
            raise IndexError(f"row {at}: expected {-rows} to {rows - 1}" if rows else "no rows")
        return self._native.row(at % rows)

    def _known(self, name: str) -> str:
        if name in self.column_names:
            return name
        near = get_close_matches(name, [*self.column_names, *_bare(self.column_names)], n=1)
        meant = _bare(self.column_names).get(near[0], near[0]) if near else None
        hint = f"did you mean {meant!r}?" if meant else "column_names lists all"
        raise KeyError(f"no column is named {name!r}; {hint}")

    def _rows(self, key: slice) -> Table:
        try:
            begin, end, step = key.indices(len(self))
        except (TypeError, ValueError) as error:
            raise SpaceError(f"table[...]: expected whole numbers in the slice: {error}") from None
        if step != 1:
            raise SpaceError(
                f"table[...]: expected a slice with step 1, found {step}; table.to_pandas() and "
                "table.to_polars() have others"
            )
        return Table(self._native.slice(begin, max(end - begin, 0)))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        text = f"a percid.Table has no {name!r}"
        if name in self.column_names:
            text += f"; the column is table[{name!r}]"
        elif name in _ELSEWHERE:
            text += f"; call table.{_ELSEWHERE[name]}"
        else:
            text += f"; data frames have more: table.to_pandas().{name}, table.to_polars().{name}"
        raise AttributeError(text)

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and of columns."""
        return len(self), len(self.column_names)

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
        :raises SpaceError: if there is no such column, or two rows are the same in all dimensions
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
        dims = [dims] if isinstance(dims, str) else list(dims)
        if not dims:
            return frame.to_xarray()
        unknown = [name for name in dims if name not in frame.columns]
        if unknown:
            allowed = ", ".join(frame.columns)
            raise SpaceError(f"dims: expected names of {allowed}; found {unknown[0]!r}")
        if frame.duplicated(dims).any():
            text = f"expected rows that differ in {', '.join(dims)}, found two alike"
            raise SpaceError(f"dims: {text}")
        return frame.set_index(dims).to_xarray()

    def to_pylist(self) -> list[dict[str, Any]]:
        """As a list with a dictionary for each row. Copies everything."""
        columns = [self[name] for name in self.column_names]
        return [dict(zip(self.column_names, row)) for row in zip(*columns)]

    def to_pydict(self) -> dict[str, list[Any]]:
        """As a dictionary with a list for each column. Copies everything."""
        return {name: self[name] for name in self.column_names}

    def to_parquet(self, path: str | PathLike[str] | None = None) -> bytes:
        """The bytes of a Parquet file, written to a file if there is a path. The same table gives
        the same bytes.

        :raises OSError: if the file cannot be written
        """
        contents = self._native.to_parquet()
        if path is not None:
            Path(path_of(path, "path")).write_bytes(contents)
        return contents

    def __repr__(self) -> str:
        rows, columns = self.shape
        return f"<percid.Table: {rows} rows, {columns} columns>"

    def _repr_html_(self) -> str:
        try:
            return self.to_pandas()._repr_html_()
        except ImportError:
            from html import escape

            return escape(repr(self))


#: What data frames and dictionaries have by other names.
_ELSEWHERE = {
    "columns": "column_names",
    "keys": "column_names",
    "dtypes": "to_pandas().dtypes",
    "head": "to_pandas().head(), or use table[:5]",
    "items": "to_pydict().items()",
    "values": "to_pydict().values()",
    "to_dict": "to_pydict()",
    "to_dicts": "to_pylist()",
    "to_list": "to_pylist()",
    "to_csv": "to_pandas().to_csv(...)",
    "write_csv": "to_polars().write_csv(...)",
    "write_parquet": "to_parquet(...)",
    "num_rows": "shape[0]",
    "num_columns": "shape[1]",
}


def _bare(names: list[str]) -> dict[str, str]:
    """Columns by what follows the last dot of their names, as in ``parameters.allowed``."""
    return {name.rpartition(".")[2]: name for name in names}


def _unpickled(stream: bytes) -> Table:
    return Table(_native.Table.from_ipc(stream))


def _optional(module: str, extra: str) -> Any:
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"this needs {module}: pip install 'percid[{extra}]'") from error
