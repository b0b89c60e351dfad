"""How the columns of a node table become features: learnt from one table, kept with the model, applied to the next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

Treatment = Literal["number", "skewed", "boolean", "date", "time", "category", "as is", "left out"]
UnknownIds = Literal["error", "drop", "add"]
TREATMENTS: tuple[str, ...] = get_args(Treatment)
FARTHEST = 1e6  # scales away from the centre: what lies beyond is not told apart
SECONDS = {"time of day": 86_400.0, "weekday": 7 * 86_400.0, "season": 365.2425 * 86_400}
Share = Annotated[float, Field(ge=0, lt=1)]
Number = Annotated[float, Field(allow_inf_nan=False)]


class ColumnSchema(BaseModel):
    r"""What one column becomes.

    A number becomes :math:`z = (x - c)/s`, a skewed one :math:`\mathrm{sign}(z)\log(1 + |z|)`; a missing one is 0. What
    is true or false of a node (of this category, missing) becomes an indicator of unit variance,
    :math:`1/\sqrt{p(1 - p)}` or 0. Weekday and season of a date, and the time of day, become sine and cosine: its
    place in history is left out, for what arrives is always newer than what was learnt from.

    Arguments:
        name: The column's name.
        treatment: How it is encoded.
        center: The centre :math:`c` of a number.
        scale: The scale :math:`s` of a number.
        categories: The share :math:`p` of each category.
        other: The share of further categories; 0 where there were none.
        missing: The share of missing values; 0 where there were none.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    treatment: Treatment
    center: Number = 0.0
    scale: Annotated[Number, Field(gt=0)] = 1.0
    categories: dict[str, Share] = {}
    other: Share = 0.0
    missing: Share = 0.0

    def features(self, values: NDArray[Any]) -> Iterator[tuple[str, NDArray[np.floating[Any]]]]:
        """Names and values of the features that this column becomes.

        Arguments:
            values: Text, None where missing, of a category; else numbers (dates in seconds), NaN where missing.

        Example:
            >>> column = ColumnSchema(name="x", treatment="number", center=2, scale=2, missing=0.5)
            >>> [(name, found.tolist()) for name, found in column.features(np.array([4.0, np.nan]))]
            [('x', [1.0, 0.0]), ('x (missing)', [0.0, 2.0])]
        """
        if self.treatment == "as is":
            yield self.name, values
            return
        missing = _missing(values)
        if self.treatment == "category":
            for category, share in self.categories.items():
                yield f"{self.name}={category}", indicator(values == category, share)
            if self.other:
                yield f"{self.name} (other)", indicator(self._uncommon(values, missing), self.other)
        elif self.treatment in ("date", "time"):
            for part in list(SECONDS)[self.treatment == "date" :]:
                angle = np.where(missing, 0, 2 * np.pi * (values / SECONDS[part] % 1))
                yield f"{self.name} ({part}, sine)", np.where(missing, 0, np.sin(angle))
                yield f"{self.name} ({part}, cosine)", np.where(missing, 0, np.cos(angle))
        else:
            with np.errstate(over="ignore"):
                z = np.nan_to_num((values - self.center) / self.scale, nan=0.0, posinf=FARTHEST, neginf=-FARTHEST)
            z = np.clip(z, -FARTHEST, FARTHEST)
            yield self.name, np.sign(z) * np.log1p(np.abs(z)) if self.treatment == "skewed" else z
        if self.missing:
            yield f"{self.name} (missing)", indicator(missing, self.missing)

    @property
    def is_encoded(self) -> bool:
        """Whether features are made of the column, other than it is."""
        return self.treatment not in ("as is", "left out")

    def unseen(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        """Where a value is of a sort that was not there: missing, or of another category."""
        missing = _missing(values)
        found = missing & (self.missing == 0)
        if self.treatment == "category" and not self.other:
            found |= self._uncommon(values, missing)
        return found

    def _uncommon(self, values: NDArray[Any], missing: NDArray[np.bool_]) -> NDArray[np.bool_]:
        return np.array([value not in self.categories for value in values.tolist()], dtype=np.bool_) & ~missing

    def description(self) -> str:
        """The treatment in words, for people.

        Example:
            >>> ColumnSchema(name="c", treatment="category", categories={"red": 0.5, "blue": 0.25}).description()
            'category: red, blue'
        """
        text: str = self.treatment
        if self.treatment in ("number", "skewed", "boolean"):
            text += f": centre {self.center:.4g}, scale {self.scale:.4g}"
        elif self.treatment == "category":
            listed = [name[:40] for name in list(self.categories)[:10]]
            more = len(self.categories) - len(listed)
            listed += [f"{more} more"] * (more > 0) + ["others together"] * (self.other > 0)
            text += ": " + ", ".join(listed)
        return text + (f"; {self.missing:.1%} missing" if self.missing else "")


class TableSchema(BaseModel):
    """How a node table becomes features.

    Where a node has what no node had when the schema was learnt, a missing value in a column that was complete or a
    category that was not there, one more feature, ``(unseen)``, counts it.

    Arguments:
        columns: The columns in their order; without any, all columns of a table are taken as they are.
        unseen: The share of nodes that has something unseen, as far as one can tell; 0 where nothing is encoded.
        unknown_ids: What happens to edges whose ends are no ids of the node table.

    Example:
        >>> schema = TableSchema(columns=[ColumnSchema(name="x", treatment="number")], unseen=0.2)
        >>> schema.encoded([np.array([3.0, np.nan])])
        (array([[3. , 0. ],
               [0. , 2.5]], dtype=float32), ('x', '(unseen)'))
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    columns: tuple[ColumnSchema, ...] = ()
    unseen: Share = 0.0
    unknown_ids: UnknownIds = "error"

    @property
    def used(self) -> tuple[ColumnSchema, ...]:
        """The columns that are not left out."""
        return tuple(column for column in self.columns if column.treatment != "left out")

    def descriptions(self) -> dict[str, str]:
        """The treatment of each column, in words."""
        return {column.name: column.description() for column in self.columns}

    @classmethod
    def of_raw(cls, names: Sequence[str]) -> Self:
        """A schema by which columns are taken as they are."""
        return cls(columns=tuple(ColumnSchema(name=name, treatment="as is") for name in names))

    def encoded(self, values: Sequence[NDArray[Any]]) -> tuple[NDArray[np.float32], tuple[str, ...]]:
        """The features, and their names, of the used columns, given as :meth:`ColumnSchema.features` takes them."""
        columns = list(zip(self.used, values, strict=True))
        pairs = [pair for column, given in columns for pair in column.features(given)]
        if self.unseen:
            counts = [indicator(column.unseen(given), self.unseen) for column, given in columns if column.is_encoded]
            pairs.append(("(unseen)", np.sum(counts, axis=0)))
        matrix = np.empty((len(values[0]), len(pairs)), dtype=np.float32)
        for position, (_, feature) in enumerate(pairs):
            matrix[:, position] = feature
        return matrix, tuple(name for name, _ in pairs)


def _missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    if values.dtype == object:
        return np.array([value is None for value in values.tolist()], dtype=np.bool_)
    return np.asarray(np.isnan(values), dtype=np.bool_)


def indicator(found: NDArray[np.bool_], share: float) -> NDArray[np.float64]:
    r"""Zeros and :math:`1/\sqrt{p(1 - p)}`: unit variance where a share :math:`p` is found.

    Example:
        >>> indicator(np.array([True, False]), 0.5)
        array([2., 0.])
    """
    return found * np.float64(1 / np.sqrt(share * (1 - share)))
