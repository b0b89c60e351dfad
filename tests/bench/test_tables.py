import csv
import dataclasses
import io
import json
import math
from collections.abc import Sequence
from pathlib import Path

import pytest

from degem.bench import formats
from degem.bench.comparison import compare
from degem.bench.formats import Grid
from degem.bench.page import results_page
from degem.bench.specs import Variant, changed, narrowed, read_spec
from degem.bench.store import Row, Store
from degem.bench.summary import entries, estimate, notes, overall, tables_in
from degem.bench.tables import CSV_HEADER, comparison_csv, comparison_grid, csv_text, grids
from degem.errors import DegemError


def row(method: str, shift: str, seed: int, auroc: float, **changes: object) -> Row:
    about = {"label_rate": changes.pop("label_rate", 1.0), "set": changes.pop("set", {})}
    values = {
        "dataset": "cora",
        "protocol": "strict",
        "aupr": 50.0,
        "fpr95": 100 - auroc,
        "acc": 80.0,
        "fit_seconds": 2.0,
        "score_seconds": 0.1,
        "peak_mib": 300.0,
        "version": "1",
        "parameters": json.dumps(about),
        **changes,
    }
    return Row(method=method, shift=shift, seed=seed, auroc=auroc, **values)  # type: ignore[arg-type]


ROWS = [
    *(row("degem", "structure", seed, 98.0 + seed) for seed in range(3)),
    *(row("msp", "structure", seed, 70.0 + seed) for seed in range(3)),
    *(row("energy", "structure", seed, 60.0 + seed) for seed in range(3)),
    *(row("degree", "structure", seed, 99.5) for seed in range(3)),
    *(row("degem", "feature", seed, 97.0) for seed in range(3)),
    *(row("msp", "feature", seed, 98.0) for seed in range(3)),
    row("degem", "structure", 0, 55.0, protocol="oracle"),
    row("degem", "structure", 0, 11.0, set={"num_hops": 2}),
    row("degem", "structure", 0, 22.0, label_rate=0.5),
    row("gnnsafe", "structure", 0, math.nan, error="ran out of paper"),
    row("degem", "ES", 0, 70.0, dataset="twitch"),
]


def test_a_mean_has_its_spread_and_interval() -> None:
    found = estimate([98.0, 99.0, 100.0])
    assert (found.mean, found.std, found.count) == (99.0, 1.0, 3)
    assert found.high - found.mean == pytest.approx(4.302653 / math.sqrt(3), rel=1e-5)
    assert math.isnan(estimate([1.0]).std)


def test_cells_are_the_rows_of_their_protocol_settings_and_rate() -> None:
    found = {(entry.row, entry.dataset, entry.shift): entry for entry in entries(read_spec("main"), ROWS, "strict")}
    degem = found["degem", "cora", "structure"]
    assert degem.ours is not None
    assert (degem.ours.mean, degem.ours.count) == (99.0, 3)
    assert degem.published == 99.93
    assert degem.difference == pytest.approx(-0.93)
    assert found["gnnsafe", "cora", "structure"].ours is None
    oracle = entries(read_spec("main"), ROWS, "oracle")
    assert [entry.ours.mean for entry in oracle if entry.ours] == [55.0]


def test_best_and_second_best_are_marked_without_the_trivial() -> None:
    table = entries(read_spec("main"), ROWS, "strict")
    ranks = {entry.row: entry.rank for entry in table if (entry.dataset, entry.shift) == ("cora", "structure")}
    assert ranks == {"degem": 1, "msp": 2, "energy": 0, "degree": 0, "gnnsafe": 0}
    lower = entries(read_spec("main"), ROWS, "strict", "fpr95")
    assert {entry.row: entry.rank for entry in lower if entry.shift == "structure"}["degem"] == 1


def test_exposure_methods_stand_apart() -> None:
    rows = [*ROWS, row("oe", "structure", 0, 99.9)]
    (grid, *_) = grids(narrowed(read_spec("main"), datasets=["cora"]), rows, "strict")
    parts = {name: [line[0][0] for line in lines] for name, lines in grid.parts}
    assert parts["with OOD exposure"] == ["oe"]
    assert "oe" not in parts["without OOD exposure"]
    assert parts["trivial controls"] == ["degree"]
    assert {name: lines[0][1][1] for name, lines in grid.parts}["with OOD exposure"] == 1


def mean_of_degem(*later: Row) -> float:
    table = entries(read_spec("main"), [*ROWS, *later], "strict")
    (entry,) = [entry for entry in table if (entry.row, entry.dataset, entry.shift) == ("degem", "cora", "structure")]
    assert entry.ours is not None
    return entry.ours.mean


def test_a_later_good_row_replaces_an_earlier_one_and_a_failure_does_not() -> None:
    later = (row("degem", "structure", 0, 90.0), row("degem", "structure", 1, 0.0, error="x"))
    assert mean_of_degem(*later) == pytest.approx((90 + 99 + 100) / 3)


def test_a_cell_never_averages_over_versions_or_defaults() -> None:
    old = {"parameters": json.dumps({"label_rate": 1.0, "set": {}, "num_hops": 99})}
    assert mean_of_degem(row("degem", "structure", 0, 90.0, version="2")) == 90
    assert mean_of_degem(row("degem", "structure", 0, 90.0, **old)) == 90
    back = (row("degem", "structure", 0, 90.0, **old), row("degem", "structure", 1, 96.0))
    assert mean_of_degem(*back) == pytest.approx((98 + 96 + 100) / 3)


@pytest.mark.parametrize(("seeds_of_msp", "mean"), [(3, 99.0), (2, 99.5)])
def test_rows_share_their_seeds_once_these_are_as_many_as_the_table_asks_for(seeds_of_msp: int, mean: float) -> None:
    spec = dataclasses.replace(read_spec("main"), seeds=(0, 1, 2))
    rows = [row("degem", "structure", seed, 98.0 + seed) for seed in range(4)]
    rows += [row("msp", "structure", seed, 70.0) for seed in range(seeds_of_msp)]
    (degem, _) = entries(spec, rows, "strict")
    assert degem.ours is not None
    assert degem.ours.mean == mean


def oracle_notes(method: str, **settings: object) -> list[str]:
    variant = Variant("this one", method, settings)
    spec = dataclasses.replace(read_spec("main"), variants=(variant,))
    rows = [row(method, "structure", 0, 55.0, protocol="oracle", set=changed(variant))]
    return [note for note in notes(entries(spec, rows, "oracle"), "oracle") if note.startswith("this one")]


def test_an_oracle_row_without_looks_says_so() -> None:
    assert oracle_notes("degem") == ["this one: no looks, the finished model: it trains in stages."]
    assert oracle_notes("degem-published") == []
    assert oracle_notes("msp") == []
    assert not any("no looks" in note for note in notes(entries(read_spec("main"), ROWS, "strict"), "strict"))


def test_every_twitch_table_says_that_its_features_differ() -> None:
    for spec in ("main", "ablation", "gcl", "label-rate"):
        variants = [variant for variant in read_spec(spec).variants if variant.method.startswith("degem")]
        rows = [row(variant.method, "ES", 0, 70.0, dataset="twitch", set=changed(variant)) for variant in variants]
        found = grids(read_spec(spec), rows, "strict")
        assert found
        for grid in found:
            assert any("3,170" in note and "128" in note for note in grid.notes)
            assert "3,170" in formats.markdown(grid)
            assert "3,170" in formats.latex(grid)
        assert "3,170" in csv_text(read_spec(spec), rows, "strict")


def test_formats_hold_the_same_figures() -> None:
    (grid,) = grids(narrowed(read_spec("main"), datasets=["cora"]), ROWS[:-1], "strict")[:1]
    text = formats.markdown(grid)
    assert "**99.00 ± 1.00 [96.5, 100.0]**" in text
    assert "| 99.93 | -0.93 |" in text
    assert "*71.00 ± 1.00 [68.5, 73.5]*" in text
    assert "failed" in text
    assert "ran out of paper" in text
    latex = formats.latex(grid)
    assert "\\textbf{99.00 $\\pm$ 1.00" in latex
    assert "\\underline{71.00" in latex
    assert latex.count("\\begin{tabular}") == latex.count("\\end{tabular}") == 1
    lines = list(csv.DictReader(io.StringIO(CSV_HEADER + "\n" + csv_text(read_spec("main"), ROWS, "strict"))))
    cells = {c["row"]: c for c in lines if (c["shift"], c["metric"]) == ("structure", "auroc")}
    assert [cells["degem"][column] for column in ("mean", "published", "seeds")] == ["99.0000", "99.9300", "3"]
    assert [cells[name]["rank"] for name in ("degem", "msp", "energy", "degree")] == ["1", "2", "", ""]


def test_means_need_every_cell() -> None:
    table = entries(narrowed(read_spec("main"), datasets=["cora"]), ROWS, "strict")
    table = [entry for entry in table if entry.dataset == "cora"]
    assert {one.row: one.ours for one in overall(table)} == {"degem": 98.0, "msp": 84.5}


def test_two_methods_are_compared_on_the_same_seeds() -> None:
    structure, feature, everything = compare_sorted(ROWS)
    assert structure.difference.mean == 28.0
    assert structure.p_value == 0.0
    assert feature.difference.mean == -1.0
    assert everything.difference.mean == 13.5
    assert everything.p_value == 1.0
    noisy = [row("degem", "label", s, v) for s, v in enumerate((3.0, 5.0, 4.0, 6.0))]
    noisy += [row("msp", "label", s, v) for s, v in enumerate((2.0, 3.0, 3.0, 4.0))]
    (one,) = compare(noisy, "strict", "degem", "msp")
    assert one.p_value == pytest.approx(0.0138, abs=2e-4)  # t = 1.5 / (0.577 / 2) = 5.196 with 3 degrees of freedom
    assert "5.2" not in formats.markdown(comparison_grid([one], "degem", "msp", "strict", "auroc"))


def test_a_comparison_in_csv_carries_its_protocol_and_plain_numbers() -> None:
    pairs = {protocol: compare(PAIRED, protocol, "degem", "msp") for protocol in ("strict", "oracle")}
    lines = list(csv.DictReader(io.StringIO(comparison_csv(pairs, "degem", "msp", "auroc"))))
    assert [(line["protocol"], line["metric"], line["place"]) for line in lines] == [
        ("strict", "auroc", "cora label"),
        ("oracle", "auroc", "cora label"),
    ]
    assert [float(lines[0][name]) for name in ("degem", "msp", "difference", "pairs")] == [4.5, 3.0, 1.5, 4]
    assert float(lines[0]["low95"]) < 1.5 < float(lines[0]["high95"])
    assert lines[1]["p"] == ""


PAIRED = [
    *(row("degem", "label", s, v) for s, v in enumerate((3.0, 5.0, 4.0, 6.0))),
    *(row("msp", "label", s, v) for s, v in enumerate((2.0, 3.0, 3.0, 4.0))),
    row("degem", "label", 0, 9.0, protocol="oracle"),
    row("msp", "label", 0, 8.0, protocol="oracle"),
]


def compare_sorted(rows: Sequence[Row]) -> list:  # type: ignore[type-arg]
    found = compare(rows, "strict", "degem", "msp")
    order = {"cora structure": 0, "cora feature": 1}
    return sorted(found, key=lambda one: order.get(one.place, 2))


def test_the_page_says_what_the_rows_say(tmp_path: Path) -> None:
    Store(tmp_path).append(ROWS)
    results = tables_in(tmp_path)
    assert results.protocols == ("strict", "oracle")
    text = results_page(results)
    assert text == results_page(tables_in(tmp_path))
    assert "energy, cora structure: 61.00 against 79.48 (-18.48)." in text
    assert "`degree` alone reaches 99.5" in text
    assert "ran out of paper" in text
    assert "| degem | oracle | 1 | 55.00 | 99.00 | -44.00 |" in text
    assert "3,170" in text
    assert "[method.md](method.md) tells how the default configuration itself was chosen" in text


def test_a_reversed_published_sign_is_told_of_the_two_methods_that_have_it(tmp_path: Path) -> None:
    Store(tmp_path).append([row("odin", "structure", 0, 70.0), row("energy", "structure", 0, 20.0)])
    text = results_page(tables_in(tmp_path))
    assert "its published sign is reversed, turned over it reads 69.43" in text  # published: 30.57
    assert text.count("its published sign") == 1


def test_pictures_are_shown(tmp_path: Path) -> None:
    Store(tmp_path).append(ROWS)
    assert "![figures/a.png](figures/a.png)" in results_page(tables_in(tmp_path), ["figures/a.png"])


def test_a_folder_without_results_says_how_to_make_some(tmp_path: Path) -> None:
    with pytest.raises(DegemError, match="degem bench run"):
        tables_in(tmp_path)


def test_a_table_of_ones_own_is_shown_from_beside_its_rows(tmp_path: Path) -> None:
    text = 'title = "Hops"\ndatasets = ["cora"]\n[[variants]]\nname = "two"\nmethod = "degem"\nset = { num_hops = 2 }\n'
    (tmp_path / "hops.toml").write_text(text)
    Store(tmp_path).append(ROWS)
    results = tables_in(tmp_path)
    spec = results.table("hops")
    assert spec is not None
    means = {entry.row: entry.ours.mean for entry in entries(spec, results.rows, "strict") if entry.ours}
    assert means == {"two": 11.0, "degree": 99.5}


def test_a_table_has_the_shifts_it_asks_for_and_no_others(tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text('methods = ["msp"]\ndatasets = ["cora"]\nshifts = ["feature"]\n')
    Store(tmp_path).append(ROWS)
    spec = tables_in(tmp_path).table("one")
    assert spec is not None
    assert {entry.shift for entry in entries(spec, ROWS, "strict")} == {"feature"}


def test_controls_alone_make_no_table_but_the_main_one(tmp_path: Path) -> None:
    Store(tmp_path).append([row("degree", "structure", 0, 50.0)])
    assert [spec.name for spec, _ in tables_in(tmp_path).tables] == ["main"]


def test_one_seed_has_no_spread_to_speak_of() -> None:
    table = entries(read_spec("main"), [row("degem", "structure", 0, 50.0)], "strict")
    assert notes(table, "strict")[-1] == "One seed: no standard deviation, no interval."


def test_a_table_shows_itself_in_a_notebook() -> None:
    grid = Grid("means", ("method", "AUROC"), (("", ((("degem", 0), ("99.1", 1)),)),))
    assert "| degem | **99.1** |" in grid._repr_markdown_()
