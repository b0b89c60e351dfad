import json
import math

import pytest

from degem.bench.gaps import gaps_section, wide_gaps
from degem.bench.paper import Cell, published
from degem.bench.specs import changed, read_spec
from degem.bench.store import Row

MAIN, OTHER = read_spec("main"), read_spec("gnnsafe-settings")


def row(method: str, seed: int, auroc: float, protocol: str = "strict", name: str = "", dataset: str = "cora") -> Row:
    settings = {} if not name else changed(next(variant for variant in OTHER.variants if variant.name == name))
    about = json.dumps({"label_rate": 1.0, "set": settings})
    return Row(method, dataset, "structure", seed, protocol, auroc, 50.0, 50.0, 80.0, 1.0, 0.1, 300.0, "1", about)


def printed(method: str, dataset: str = "cora") -> float:
    return published()[Cell("main", dataset, "structure", method)]["auroc"]


def test_a_gap_falls_into_epoch_settings_and_rest() -> None:
    ours = printed("energy") - 20
    rows = [
        *(row("energy", seed, ours + seed - 1) for seed in range(3)),
        row("energy", 1, ours + 4, "oracle"),
        row("energy", 1, ours + 11, "oracle", "energy"),
        row("energy", 2, 0.0, "oracle", "energy"),  # no oracle row at the defaults to compare with
    ]
    (gap,) = wide_gaps(MAIN, OTHER, rows)
    assert gap.total == pytest.approx(20)
    assert (gap.epoch, gap.settings, gap.left) == (pytest.approx(4), pytest.approx(7), pytest.approx(9))
    assert "| energy | cora structure | 59.5 | 79.5 | +20.0 | +4.0 | +7.0 | +9.0 |  |" in gaps_section([gap])


def test_what_no_row_says_counts_nothing() -> None:
    (gap,) = wide_gaps(MAIN, OTHER, [row("energy", 0, printed("energy") - 20)])
    assert math.isnan(gap.epoch)
    assert math.isnan(gap.settings)
    assert gap.left == gap.total


def test_settings_are_compared_under_strict_where_the_oracle_has_none_and_the_best_score_counts() -> None:
    ours = printed("gpn") - 30
    rows = [
        row("gpn", 0, ours),
        row("gpn", 0, ours - 1, name="gpn"),
        row("gpn", 0, ours + 25, name="gpn: probability"),
    ]
    (gap,) = wide_gaps(MAIN, OTHER, rows)
    assert gap.settings == pytest.approx(25)


def test_near_cells_are_no_gaps_and_a_reversed_sign_is_turned_over_first() -> None:
    assert wide_gaps(MAIN, OTHER, [row("energy", 0, printed("energy") - 4)]) == []
    assert wide_gaps(MAIN, OTHER, [row("odin", 0, 100 - printed("odin") - 4)]) == []
    (gap,) = wide_gaps(MAIN, OTHER, [row("odin", 0, printed("odin"))])
    assert any("sign turned over" in cause for cause in gap.other_causes)
    (gap,) = wide_gaps(MAIN, OTHER, [row("msp", 0, 50.0, dataset="chameleon")])
    assert gap.other_causes == ("one-way edges",)
    assert gaps_section([]) == []
