import json
import math
from pathlib import Path

import pytest
from benchmarks.gaps import Gap, as_published, gaps_page, wide_gaps

from degem.bench.paper import Cell, published
from degem.bench.specs import changed, read_spec
from degem.bench.store import Row, Store
from degem.bench.summary import tables_in

OTHER = read_spec("gnnsafe-settings")


def row(method: str, seed: int, auroc: float, protocol: str = "strict", name: str = "") -> Row:
    settings = {} if not name else changed(next(variant for variant in OTHER.variants if variant.name == name))
    about = json.dumps({"label_rate": 1.0, "set": settings})
    return Row(method, "cora", "structure", seed, protocol, auroc, 50.0, 50.0, 80.0, 1.0, 0.1, 300.0, "1", about)


def gaps(folder: Path, *rows: Row, study: str = "") -> list[Gap]:
    Store(folder).append(list(rows))
    if study:
        (folder / "directed-edges.csv").write_text(f"dataset,shift,method,edges,seed,auroc,acc\n{study}")
    return wide_gaps(tables_in(folder), as_published(folder / "directed-edges.csv"))


def printed(method: str) -> float:
    return published()[Cell("main", "cora", "structure", method)]["auroc"]


def test_a_gap_falls_into_epoch_settings_program_and_rest(tmp_path: Path) -> None:
    ours = printed("energy") - 20
    (gap,) = gaps(
        tmp_path,
        *(row("energy", seed, ours + seed - 1) for seed in range(3)),
        row("energy", 1, ours + 4, "oracle"),
        row("energy", 1, ours + 11, "oracle", "energy"),
        row("energy", 2, 0.0, "oracle", "energy"),  # no oracle row at the defaults to compare with
        study=f"cora,structure,energy,stored,0,{ours + 16},80\ncora,structure,energy,symmetric,0,1,80\n",
    )
    assert (gap.total, gap.epoch, gap.settings) == (pytest.approx(20), pytest.approx(4), pytest.approx(7))
    assert (gap.program, gap.left) == (pytest.approx(5), pytest.approx(4))
    text = gaps_page([gap])
    assert "| energy | cora structure | 59.5 | 79.5 | +20.0 | +4.0 | +7.0 | +5.0 | +4.0 |" in text
    assert "the mean gap is 20.0 points, and 4.0 are left; 1 come within 5 points" in text


def test_what_no_row_says_counts_nothing(tmp_path: Path) -> None:
    (gap,) = gaps(tmp_path, row("energy", 0, printed("energy") - 20))
    assert all(math.isnan(part) for part in (gap.epoch, gap.settings, gap.program))
    assert gap.left == gap.total


def test_settings_are_compared_under_strict_where_the_oracle_has_none_and_the_best_score_counts(tmp_path: Path) -> None:
    ours = printed("gpn") - 30
    (gap,) = gaps(
        tmp_path,
        row("gpn", 0, ours),
        row("gpn", 0, ours - 1, name="gpn"),
        row("gpn", 0, ours + 25, name="gpn: probability"),
        study="cora,structure,gpn,stored,0,50,80\ncora,structure,gpn: probability,stored,0,70,80\n"
        "cora,structure,gpn-diffusion,stored,0,99,\n",
    )
    assert gap.settings == pytest.approx(25)
    assert gap.as_published == 70


def test_near_cells_are_no_gaps(tmp_path: Path) -> None:
    assert gaps(tmp_path, row("energy", 0, printed("energy") - 4)) == []
