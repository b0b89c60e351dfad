"""From the columns of a table to a schema: which treatment each gets, and what scikit-learn learns for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from degem.data.columns import Faults
from degem.errors import GraphError, quoted
from degem.ops.features import is_bag_of_words
from degem.schema import ColumnSchema, TableSchema, Treatment, UnknownIds

MISSING = pa.array(["", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "null", "NULL", "None"])
TRUTH = {"true": 1.0, "false": 0.0, "1": 1.0, "0": 0.0}
MAX_CATEGORIES, MAX_TEXT = 50, 200
MOSTLY = 0.5  # of a column: then the rest are mistakes, not categories
Values = dict[str, NDArray[Any]]


def learn_schema(
    table: pa.Table, chosen: Mapping[str, Treatment], rows: NDArray[np.bool_], unknown_ids: UnknownIds, faults: Faults
) -> tuple[TableSchema, Values]:
    """A schema of all columns of a table, and their values.

    Arguments:
        table: The columns.
        chosen: Treatments that a user has chosen.
        rows: The nodes to learn from.
        unknown_ids: Goes into the schema.
        faults: Where mistakes in the columns are told.
    """
    treatments: dict[str, Treatment] = {}
    values: Values = {}
    for name in table.column_names:
        with faults.gathered():
            treatments[name] = chosen[name] if name in chosen else _treatment(name, table[name])
            if treatments[name] != "left out":
                values[name] = column_values(name, table[name], treatments[name])
    for name, found in values.items():
        if name not in chosen and pd.isna(found[rows]).all():
            treatments[name] = "left out"
    numbers = [name for name, kind in treatments.items() if kind == "number" and name in values]
    free = [name for name in numbers if name not in chosen]
    if free and is_bag_of_words(np.stack([values[name] for name in free], axis=1).astype(np.float32)):
        treatments |= dict.fromkeys(free, "as is")
    columns = [_learnt(name, kind, values.get(name), rows) for name, kind in treatments.items()]
    unseen = 1 / (int(rows.sum()) + 2) if any(column.is_encoded for column in columns) else 0.0
    schema = TableSchema(columns=tuple(columns), unseen=unseen, unknown_ids=unknown_ids)
    return schema, values


def column_values(name: str, column: pa.ChunkedArray, treatment: Treatment) -> NDArray[Any]:
    """The values of a column as its treatment takes them: texts with None, or numbers with NaN, where missing."""
    column = _plain(name, column)
    if treatment == "category":
        return _texts(column)
    if treatment == "boolean":
        truth = [TRUTH.get(str(text).lower(), np.nan) for text in _texts(column).tolist()]
        return _all_parsed(name, column, np.array(truth), "neither true nor false")
    if treatment in ("date", "time"):
        if not (pa.types.is_temporal(column.type) or pa.types.is_string(column.type)):
            raise GraphError(f"column {quoted(name)} holds {column.type}, no dates: choose another treatment")
        return _all_parsed(name, column, _seconds(column), "no date: write 2024-12-31")
    numbers = _numbers(column)
    if treatment != "as is" and np.isnan(numbers).all() and not pa.types.is_floating(column.type):
        numbers = _seconds(column)  # a date chosen to be a number: its place in history
    infinite = np.isinf(numbers)
    if infinite.any():
        row = int(infinite.argmax())
        raise GraphError(
            f"column {quoted(name)}, row {row + 1}: {quoted(column[row].as_py())} where a finite number should be: "
            "correct it, or leave it empty where it is not known"
        )
    return _all_parsed(name, column, numbers, "not a number")


def _treatment(name: str, column: pa.ChunkedArray) -> Treatment:
    """What a column holds: numbers, truth, dates, or text."""
    column = _plain(name, column)
    if column.type == pa.bool_():
        return "boolean"
    present = len(column) - column.null_count
    if not present:
        return "left out"
    if not pa.types.is_string(column.type):
        return _date_or_time(_seconds(column)) if pa.types.is_temporal(column.type) else "number"
    for parse in (_numbers, _seconds):
        parsed = parse(column)
        if np.count_nonzero(~np.isnan(parsed)) > MOSTLY * present:  # fewer than all: column_values names the mistake
            if parse is _seconds:
                return _date_or_time(parsed)
            return "number"
    distinct = pc.unique(column.drop_null())
    if len(distinct) <= 2 and {text.lower() for text in distinct.to_pylist()} <= TRUTH.keys():
        return "boolean"
    long = pc.max(pc.utf8_length(distinct)).as_py() > MAX_TEXT
    return "left out" if long or len(distinct) == present else "category"


def _date_or_time(seconds: NDArray[np.float64]) -> Treatment:
    known = seconds[~np.isnan(seconds)]
    return "time" if (known % 86_400 != 0).any() else "date"


def _learnt(name: str, treatment: Treatment, values: NDArray[Any] | None, rows: NDArray[np.bool_]) -> ColumnSchema:
    """The schema of one column, from some rows of it."""
    if values is None or treatment in ("as is", "left out"):
        return ColumnSchema(name=name, treatment=treatment)
    known = values[rows]
    learnt: dict[str, Any] = {"missing": _share(int(pd.isna(known).sum()), len(known))}
    if treatment == "category":
        learnt |= _categories(known)
        if not learnt["categories"]:
            return ColumnSchema(name=name, treatment="left out")
    elif treatment in ("number", "skewed", "boolean"):
        center, scale = _center_and_scale(known)
        learnt |= {"center": center, "scale": scale}
    return ColumnSchema(name=name, treatment=treatment, **learnt)


def _center_and_scale(values: NDArray[np.float64]) -> tuple[float, float]:
    """The median, and how wide the central 80 % are: the deviation of a normal variable, whatever the outliers."""
    from sklearn.preprocessing import RobustScaler, StandardScaler  # slow to load

    column = values[:, None]
    if np.isnan(column).all():
        return 0.0, 1.0
    scaler = RobustScaler(quantile_range=(10, 90), unit_variance=True).fit(column)
    center, scale = float(scaler.center_[0]), float(scaler.scale_[0])
    low, high = np.nanquantile(column, [0.1, 0.9])
    if low == high:
        with np.errstate(over="ignore", invalid="ignore"):
            scale = float(StandardScaler().fit(column).scale_[0])
        farthest = float(np.nanmax(np.abs(column - center)))
        if not farthest:
            scale = abs(center) or 1.0  # constant: a share of it, so that the unit does not matter
        elif not np.isfinite(scale):
            scale = farthest
    return center, max(scale, np.finfo(np.float64).tiny)


def _categories(values: NDArray[Any]) -> dict[str, Any]:
    """The shares of the categories that many nodes have, the others together."""
    from sklearn.preprocessing import OneHotEncoder  # slow to load

    present = values[~pd.isna(values)].astype(object)[:, None]
    enough = min(10, max(2, len(values) // 100))
    encoder = OneHotEncoder(
        min_frequency=enough, max_categories=MAX_CATEGORIES + 1, handle_unknown="infrequent_if_exist", dtype=np.float32
    ).fit(present)
    rare = encoder.infrequent_categories_[0]
    rare = set() if rare is None else set(rare.tolist())
    counts = pd.Series(present[:, 0]).value_counts()
    common = {name: _share(int(counts[name]), len(values)) for name in encoder.categories_[0] if name not in rare}
    return {"categories": common, "other": _share(int(counts[list(rare)].sum()), len(values))}


def _share(count: int, total: int) -> float:
    """The share, shrunk a little so that it is neither 0 nor 1 (Laplace); 0 of nothing."""
    return (count + 1) / (total + 2) if count else 0.0


def _plain(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of texts, truth values, times or floats, missing ones null."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = pc.cast(column, kind.value_type)
        kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind):
        column = pc.cast(column, pa.string())
        stripped = pc.utf8_trim_whitespace(column)
        return pc.if_else(pc.is_in(stripped, value_set=MISSING), None, stripped)
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind) or kind == pa.bool_():
        return column
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return column if pa.types.is_integer(kind) else pc.cast(column, pa.float64())
    raise GraphError(
        f"column {quoted(name)} holds {kind}: a node has one text, number or date there: "
        "leave it out with --feature-columns or --keep-columns"
    )


def _texts(column: pa.ChunkedArray) -> NDArray[Any]:
    """Text, whole floats written like whole numbers, None where missing."""
    kind = column.type
    if pa.types.is_floating(kind):
        whole = pc.all(pc.equal(pc.floor(column), column)).as_py()
        column = pc.cast(column, pa.int64(), safe=False) if whole is not False else column
        column = pc.if_else(pc.is_nan(column), None, column) if whole is False else column
    return np.array(pc.cast(column, pa.string()).to_pylist(), dtype=object)


def _numbers(column: pa.ChunkedArray) -> NDArray[np.float64]:
    """Numbers, NaN where there is none."""
    if pa.types.is_temporal(column.type):
        return np.full(len(column), np.nan)
    try:
        numbers = pc.cast(column, pa.float64(), safe=False)
    except pa.ArrowInvalid:
        numbers = pd.to_numeric(pd.Series(column.to_pylist(), dtype=object), errors="coerce")
        return np.asarray(numbers, dtype=np.float64)
    return np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=np.float64)


def _seconds(column: pa.ChunkedArray) -> NDArray[np.float64]:
    """Dates as seconds since 1970, NaN where there is none."""
    if pa.types.is_temporal(column.type):
        times = pc.cast(column, pa.timestamp("us"), safe=False)
    else:
        try:
            times = pc.cast(column, pa.timestamp("us"))
        except pa.ArrowInvalid:
            parsed = pd.to_datetime(pd.Series(column.to_pylist(), dtype=object), "coerce", utc=True, format="ISO8601")
            times = pa.chunked_array([pa.array(parsed.dt.tz_localize(None), pa.timestamp("us"))])
    return np.asarray(pc.cast(times, pa.int64()).to_numpy(zero_copy_only=False), dtype=np.float64) / 1e6


def _all_parsed(name: str, column: pa.ChunkedArray, values: NDArray[np.float64], fault: str) -> NDArray[np.float64]:
    """The values, if each that is there could be read."""
    lost = np.isnan(values) & ~np.asarray(pc.is_null(column, nan_is_null=True).to_numpy(zero_copy_only=False))
    if lost.any():
        row, more = int(lost.argmax()), int(lost.sum()) - 1
        also = f" (nor are {more:,} more)" if more else ""
        raise GraphError(
            f"column {quoted(name)}, row {row + 1}: {quoted(column[row].as_py())} is {fault}{also}: correct it, leave "
            'it empty where it is not known, or choose another treatment with --columns (such as "category")'
        )
    return values
