from __future__ import annotations

import dataclasses
from typing import Annotated, Literal

import pytest
from pydantic import Field

from degem import parameters
from degem.errors import ParameterError


@dataclasses.dataclass(frozen=True)
class Walk:
    num_steps: parameters.Count = 20
    noise: parameters.NonNegative = 0.1


@dataclasses.dataclass
class Method:
    rate: parameters.Positive = 0.01
    share: parameters.Fraction = 0.5
    dropout: parameters.Dropout = 0.5
    depth: Annotated[int, Field(ge=0, le=9)] = 2
    head: Literal["MLP", "bilinear"] = "MLP"
    width: int | None = None
    fast: bool = True
    walk: Walk = dataclasses.field(default_factory=Walk)


def test_names_and_values():
    names = list(parameters.names(Method))
    assert names == [
        "rate",
        "share",
        "dropout",
        "depth",
        "head",
        "width",
        "fast",
        "walk",
        "walk__num_steps",
        "walk__noise",
    ]
    assert list(parameters.names(Method())) == names
    assert parameters.values(Method())["walk__noise"] == 0.1
    assert set(parameters.values(Method(), deep=False)) == {name for name in names if "__" not in name}


def test_the_defaults_pass():
    parameters.check(Method())
    parameters.check(Method(rate=1, share=0, width=3))  # whole numbers are fine where fractions are asked for


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"rate": 0}, "Method: rate = 0 is not allowed: input should be greater than 0"),
        ({"rate": float("nan")}, "rate = nan"),
        ({"rate": float("inf")}, "rate = inf"),
        ({"rate": "0.1"}, "rate = '0.1'"),
        ({"share": 1.5}, "share = 1.5"),
        ({"share": float("nan")}, "share = nan"),
        ({"dropout": 1.0}, "Method: dropout = 1.0 is not allowed: input should be less than 1"),
        ({"depth": 2.0}, "depth = 2.0"),
        ({"depth": True}, "depth = True"),
        ({"depth": 10}, "less than or equal to 9"),
        ({"head": "mlp"}, "'MLP' or 'bilinear'"),
        ({"width": "wide"}, "width = 'wide'"),
        ({"fast": 1}, "fast = 1"),
        ({"walk": Walk(num_steps=0)}, "walk__num_steps = 0"),
    ],
)
def test_wrong_types_and_ranges(changes, reason):
    with pytest.raises(ParameterError) as caught:
        parameters.check(Method(**changes))
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("rate", "1e-3", 0.001),
        ("depth", "3", 3),
        ("head", "bilinear", "bilinear"),
        ("width", "none", None),
        ("width", "64", 64),
        ("fast", "false", False),
        ("walk__num_steps", "5", 5),
        ("walk.noise", "0", 0.0),
    ],
)
def test_text_becomes_a_value_of_the_right_type(name, text, value):
    parsed = parameters.parse(Method, name, text)
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("rate", "fast", "rate = 'fast'"),
        ("rate", "-1", "greater than 0"),
        ("depth", "2.5", "depth = '2.5'"),
        ("fast", "maybe", "fast = 'maybe'"),
        ("walk", "5", "walk = '5'"),
        ("rat", "1", "no parameter 'rat': did you mean 'rate'"),
        ("zzz", "1", "it has depth, dropout, fast"),
    ],
)
def test_text_that_stands_for_nothing(name, text, reason):
    with pytest.raises(ParameterError) as caught:
        parameters.parse(Method, name, text)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_values_come_back_from_json():
    walk = {"num_steps": 3, "noise": 0.5}
    stored = dataclasses.asdict(Method()) | {"rate": 1, "walk": walk, "width": None}
    assert Method(**parameters.from_json(Method, stored)) == Method(rate=1.0, walk=Walk(3, 0.5))
    for changes, reason in [
        ({"speed": 1}, "no parameter 'speed'"),
        ({"walk": walk | {"num_steps": 0}}, "num_steps = 0"),
        ({"walk": walk | {"num_steps": 10**30}}, "num_steps = 1000"),
        ({"walk": walk | {"pace": 1}}, "no parameter 'pace'"),
        ({"walk": {"noise": 1}}, "'num_steps' is missing"),
        ({"walk": [1]}, "walk = "),
    ]:
        with pytest.raises(ParameterError, match=reason):
            parameters.from_json(Method, stored | changes, whole=True)
    del stored["rate"]
    with pytest.raises(ParameterError, match="'rate' is missing"):
        parameters.from_json(Method, stored, whole=True)
    assert parameters.from_json(Method, {"walk": {"noise": 1}}) == {"walk": Walk(noise=1)}
