"""A schema applied: what each treatment makes of values, and that it survives JSON."""

import numpy as np
import pytest
from pydantic import ValidationError

from degem.schema import ColumnSchema, TableSchema


def features(column, values):
    return {name: found.tolist() for name, found in column.features(np.array(values))}


def test_numbers_are_on_one_scale_and_missing_ones_marked():
    column = ColumnSchema(name="x", treatment="number", center=10, scale=2, missing=0.2)
    assert features(column, [14.0, np.nan]) == {"x": [2, 0], "x (missing)": [0, 2.5]}


def test_skewed_numbers_lose_their_tail():
    column = ColumnSchema(name="x", treatment="skewed", scale=1)
    np.testing.assert_allclose(features(column, [np.e - 1, 1 - np.e, 0.0])["x"], [1, -1, 0])


def test_what_lies_far_away_is_finite_in_float32():
    schema = TableSchema(columns=(ColumnSchema(name="x", treatment="number", scale=1e-300),), unseen=0.1)
    encoded, _ = schema.encoded([np.array([1e300, -1e300])])
    assert encoded[:, 0].tolist() == [1e6, -1e6]


def test_categories_are_indicators_of_unit_variance():
    column = ColumnSchema(name="c", treatment="category", categories={"a": 0.5, "b": 0.2}, other=0.2)
    found = features(column, np.array(["a", "b", "zed", None], dtype=object))
    assert found == {"c=a": [2, 0, 0, 0], "c=b": [0, 2.5, 0, 0], "c (other)": [0, 0, 2.5, 0]}


def test_dates_are_places_in_the_week_and_the_year_not_in_history():
    column, week = ColumnSchema(name="d", treatment="date"), 7 * 86_400.0
    found = features(column, [0.0, 1000 * week, np.nan])
    assert list(found) == [f"d ({part}, {wave})" for part in ("weekday", "season") for wave in ("sine", "cosine")]
    assert np.allclose(found["d (weekday, sine)"][0], found["d (weekday, sine)"][1])
    assert found["d (weekday, cosine)"][2] == 0
    assert "d (time of day, sine)" in features(ColumnSchema(name="d", treatment="time"), [0.0])


def test_what_was_never_there_is_counted():
    columns = (
        ColumnSchema(name="x", treatment="number"),
        ColumnSchema(name="y", treatment="number", missing=0.5),
        ColumnSchema(name="c", treatment="category", categories={"a": 0.5}),
        ColumnSchema(name="z", treatment="as is"),
    )
    values = [np.array([0.0, np.nan]), np.array([0.0, np.nan]), np.array(["a", "new"], dtype=object), np.zeros(2)]
    encoded, names = TableSchema(columns=columns, unseen=0.5).encoded(values)
    assert names == ("x", "y", "y (missing)", "c=a", "z", "(unseen)")
    assert encoded[:, -1].tolist() == [0, 4]  # a missing x and a new c; a missing y is known


def test_a_schema_survives_json():
    column = ColumnSchema(name="c", treatment="category", categories={"é": 1 / 3}, missing=0.1)
    schema = TableSchema(columns=(column, ColumnSchema(name="x", treatment="number", center=0.1)), unseen=0.01)
    assert TableSchema.model_validate_json(schema.model_dump_json()) == schema


@pytest.mark.parametrize("wrong", [{"treatment": "magic"}, {"scale": 0}, {"center": float("nan")}, {"missing": 1.0}])
def test_a_damaged_schema_is_refused(wrong):
    with pytest.raises(ValidationError):
        ColumnSchema.model_validate({"name": "x", "treatment": "number"} | wrong)
