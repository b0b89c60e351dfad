"""Partitions cover every node once."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from degem.errors import GraphError
from degem.groups import MAX_GROUPS, by_class, by_degree, by_time


def test_degrees_fall_into_the_group_that_names_them() -> None:
    degrees = np.arange(2_000)
    groups = by_degree(degrees)
    for degree in (0, 1, 2, 3, 4, 7, 8, 1023, 1024, 1999):
        low, _, high = groups.labels[groups.codes[degree]].replace(",", "").partition("–")
        assert int(low) <= degree <= int(high or low)
    assert groups.sizes.sum() == 2_000


def test_many_classes_share_a_last_group() -> None:
    codes = np.repeat(np.arange(50), np.arange(1, 51))
    groups = by_class(codes, [f"class {index}" for index in range(50)])
    assert len(groups.labels) == MAX_GROUPS
    assert groups.labels[-1] == "other"
    assert groups.labels[0] == "class 27"
    assert groups.sizes.sum() == len(codes)


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        (np.array([2020, 2021, 2020]), ("2020", "2021")),
        (np.array(["2024-01-02", "2024-03-01", "2024-01-02"]), ("2024-01-02", "2024-03-01")),
        (np.array([1.5, np.nan, 1.5]), ("1.5", "unknown")),
    ],
)
def test_few_times_are_groups_of_their_own(values: np.ndarray, labels: tuple[str, ...]) -> None:
    groups = by_time("when", values)
    assert groups.labels == labels
    assert groups.codes.tolist() == [0, 1, 0]


@pytest.mark.parametrize("dates", [False, True])
def test_many_times_are_groups_of_about_equal_size(dates: bool) -> None:
    values = np.arange(1_200.0)
    groups = by_time("when", pd.to_datetime(values, unit="D").to_numpy() if dates else values)
    assert groups.sizes.tolist() == [100] * 12
    assert (np.diff(groups.codes) >= 0).all()


def test_text_that_is_no_time_is_an_error() -> None:
    with pytest.raises(GraphError, match="'when'"):
        by_time("when", np.array(["soon", "later"]))
