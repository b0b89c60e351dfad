"""What columns are taken for, and what is learnt of them."""

import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from degem.data.columns import Faults
from degem.data.treatments import learn_schema
from degem.errors import GraphError

DAYS = [f"2024-01-{day:02}" for day in range(1, 21)]
WORDS = ["red", "blue"] * 10


def learnt(columns, chosen=None, rows=None):
    table, faults = pa.table(columns), Faults()
    everyone = np.ones(table.num_rows, dtype=np.bool_)
    schema, values = learn_schema(table, chosen or {}, everyone if rows is None else rows, "error", faults)
    faults.tell("nodes.csv")
    return schema, values


def only(values, **how):
    schema, found = learnt({"c": values}, **how)
    return schema.columns[0], found.get("c")


@pytest.mark.parametrize(
    ("values", "treatment"),
    [
        (["1", " 2.5", "-3e2", ""], "number"),
        ([1, 2, None], "number"),
        ([Decimal("1.5"), Decimal("2")], "number"),
        (pa.array([2**64 - 1, 0], pa.uint64()), "number"),
        (["9" * 40, "1"], "number"),
        (["true", "False", "NA"], "boolean"),
        ([True, None, False], "boolean"),
        (DAYS, "date"),
        ([*DAYS, ""], "date"),
        ([f"{day} 10:30:00" for day in DAYS], "time"),
        ([f"{day}T10:30:00.250Z" for day in DAYS], "time"),
        ([datetime.date(2024, 1, 1), datetime.date(9999, 12, 31)], "date"),
        ([datetime.datetime(2024, 1, 1, 5)], "time"),
        (WORDS, "category"),
        (pa.array(WORDS).dictionary_encode(), "category"),
        ([f"user{row}@host" for row in range(20)], "left out"),
        (["x" * 10**6] * 20, "left out"),
        ([None, None], "left out"),
        (["", "NA"], "left out"),
        ([float("nan")] * 2, "left out"),
    ],
)
def test_what_a_column_is_taken_for(values, treatment):
    assert only(values)[0].treatment == treatment


def test_the_scale_is_that_of_most_values():
    values = np.random.default_rng(0).normal(50, 2, 1000)
    values[:20] = 1e9  # a median and quantiles do not move
    column, _ = only(values)
    assert column.center == pytest.approx(50, abs=0.3)
    assert column.scale == pytest.approx(2, rel=0.1)


@pytest.mark.parametrize("values", [np.arange(50.0), np.r_[np.zeros(48), 1.0, 7.0], np.full(50, 3.0)])
def test_the_unit_of_a_number_does_not_matter(values):
    (euros, _), (cents, _) = only(values), only(100 * values)
    for value in (values[0], 3.5):
        assert (value - euros.center) / euros.scale == pytest.approx((100 * value - cents.center) / cents.scale)


def test_rare_categories_stand_together():
    column, _ = only(["a"] * 600 + ["b"] * 390 + [f"rare{row // 2}" for row in range(10)])
    assert list(column.categories) == ["a", "b"]
    assert column.other == pytest.approx(0.01, abs=2e-3)
    many, _ = only([f"kind{row % 200}" for row in range(5000)])
    assert (len(many.categories), many.other > 0.7) == (50, True)


def test_nothing_is_learnt_from_other_rows():
    rows = np.arange(40) < 20
    schema, _ = learnt({"x": [1.0] * 20 + [9.0] * 20, "c": WORDS + ["green"] * 20}, rows=rows)
    assert schema.columns[0].center == 1
    assert sorted(schema.columns[1].categories) == ["blue", "red"]
    assert schema.columns[1].other == 0


def test_a_bag_of_words_stays_as_it_is():
    words = (np.random.default_rng(0).random((50, 100)) < 0.05).astype(int)
    table = {f"w{column}": words[:, column] for column in range(100)}
    schema, values = learnt(table)
    assert {column.treatment for column in schema.columns} == {"as is"}
    encoded, names = schema.encoded(list(values.values()))
    assert names == tuple(table)
    assert np.array_equal(encoded, words)
    with_category, _ = learnt({**table, "colour": ["a", "b"] * 25})
    assert with_category.columns[0].treatment == "as is"


def test_a_treatment_can_be_chosen():
    column, values = only([501, 10001, 501], chosen={"c": "category"})
    assert list(column.categories) == ["501"]
    assert values.tolist() == ["501", "10001", "501"]
    assert only([1.0, 2.0, 1.0], chosen={"c": "category"})[1].tolist() == ["1", "2", "1"]
    assert only(DAYS, chosen={"c": "number"})[0].center > 1.7e9
    assert only([1, 2], chosen={"c": "left out"})[0].treatment == "left out"


def test_all_mistakes_are_told_at_once():
    columns = {"x": ["1", "2", "3", "inf"], "y": ["1", "?", "3", "-"], "d": [*DAYS[:3], "2024-13-45"], "z": [[1]] * 4}
    with pytest.raises(GraphError) as caught:
        learnt(columns, chosen={"y": "number"})
    message = str(caught.value)
    assert "\n" not in message
    for part in (
        "nodes.csv: 4 faults",
        "column 'x', row 4: 'inf' where a finite number should be",
        "column 'y', row 2: '?' is not a number (nor are 1 more)",
        "column 'd', row 4: '2024-13-45' is no date",
        "column 'z' holds list",
    ):
        assert part in message
