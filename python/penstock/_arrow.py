"""What arrow_table() takes: tables with Arrow's C stream interface, and the data sets of Hugging Face."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy

from penstock._errors import Error


def take(table: Any, all_columns: bool, rows: Any) -> tuple[Any, list[str] | None, Any, Any, Any]:
    """The capsule of a stream, the names of the columns where the table says which, and the numbers of the rows; and what can be
    taken again later, whatever the caller does to `table` and `rows`: a table and the numbers of its rows."""
    kind = f"{type(table).__module__.split('.')[0]}.{type(table).__name__}"
    if isinstance(table, Mapping):
        names = ", ".join(repr(name) for name in list(table)[:5])
        raise TypeError(f"arrow_table takes one table, found a {kind} of {names}: pass one of them, as in table[{next(iter(table), '')!r}]")
    columns = None
    if rows is not None:
        rows = _row_numbers(rows)
    kept, kept_rows = table, rows
    if all(hasattr(table, name) for name in ("_indices", "features", "data", "format")):  # a Hugging Face data set
        columns, rows, table = _of_hugging_face(table, all_columns, rows)
        kept = kept.with_format(None)  # set_format() changes the caller's
    if not hasattr(table, "__arrow_c_stream__"):
        raise TypeError(
            f"arrow_table takes an object with __arrow_c_stream__, as the tables of pyarrow, polars, pandas and DuckDB are, or a "
            f"Hugging Face data set, found a {kind}" + (": it is read one after another, and has no rows by number" if hasattr(table, "__iter__") and not hasattr(table, "__getitem__") else "")
        )
    return table.__arrow_c_stream__(), columns, rows, kept, kept_rows


def require_table_of_files(table: Any) -> None:
    """Refuses what images_from() is given that is no table."""
    if hasattr(table, "__arrow_c_stream__") or hasattr(table, "features"):
        return
    raise TypeError(
        "images_from takes the path of a table, or an object with __arrow_c_stream__, as the tables of pyarrow, polars, pandas and "
        f"DuckDB are, or a Hugging Face data set, found a {type(table).__name__}: lists of paths and labels are for files(paths, labels)"
    )


def categories_of(table: Any, column: str) -> list[str]:
    """The categories of a column that lists them, in their order; none where it does not, or where they are no texts."""
    categories: Any = None
    if hasattr(getattr(table, "schema", None), "field"):  # pyarrow's
        categories = _entries(table, column)
    elif hasattr(table, "dtypes") and column in table.columns:
        # Of polars' Categorical these depend on what else the process has read; of its Enum they are a list.
        kind = getattr(table[column], "dtype", None)
        categories = getattr(kind, "categories", None) if type(kind).__name__ in ("CategoricalDtype", "Enum") else None
    names = [] if categories is None else list(categories)
    return names if all(isinstance(name, str) for name in names) else []


def _entries(table: Any, column: str) -> Any:
    chunks = table.column(column).chunks if hasattr(table, "column") and hasattr(table.schema.field(column).type, "index_type") else []
    if any(chunk.dictionary != chunks[0].dictionary for chunk in chunks):
        raise ValueError(f"images_from: the chunks of the column {column!r} have several dictionaries: pass classes, or table.unify_dictionaries()")
    return chunks[0].dictionary.to_pylist() if chunks else None


def _of_hugging_face(data: Any, all_columns: bool, rows: Any) -> tuple[list[str] | None, Any, Any]:
    chosen = data.format
    if chosen["type"] is not None:
        raise ValueError(
            f"arrow_table: the data set has the format {chosen['type']!r}, which its table does not have: pass data.with_format(None), "
            "or the items as they come out, Dataset(data)"
        )
    columns = None
    if all_columns and list(chosen["columns"]) != list(data.column_names):
        columns = list(chosen["columns"])
    if data._indices is not None:  # what select(), shuffle(), filter() left
        numbers = data._indices.column(0).to_numpy()
        rows = _row_numbers(numbers if rows is None else _of_rows(numbers, rows))
    return columns, rows, data.data.table


def _of_rows(numbers: Any, rows: Any) -> Any:
    if len(rows) > 0 and rows.max() >= len(numbers):
        raise Error(f"arrow_table: row {rows.max()} was chosen of {len(numbers)}")
    return numbers[rows]


def _row_numbers(rows: Any) -> Any:
    numbers = numpy.asarray(rows)
    if numbers.ndim != 1 or (numbers.dtype.kind not in "iu" and len(numbers) > 0):
        raise TypeError(f"arrow_table: rows are the numbers of rows, as a list or an array of one dimension, found {rows!r:.60}")
    if len(numbers) > 0 and numbers.min() < 0:
        raise ValueError(f"arrow_table: row {numbers.min()} is below 0")
    return numbers.astype(numpy.uint64)

