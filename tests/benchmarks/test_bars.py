"""What speed and memory are held to: each verdict follows from the rows, and from nothing else."""

import sys
from pathlib import Path

import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import bars
import scale
import speed

NONE = pd.DataFrame()


def lines(text: str) -> dict[str, tuple[str, str]]:
    """The figure and the verdict of each bar of a table."""
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()[2:]]
    return {what: (figure, met) for what, _, figure, met in cells}


def test_without_rows_nothing_is_claimed() -> None:
    found = lines(bars.table(NONE, NONE, NONE, NONE))
    assert len(found) == 18
    assert set(found.values()) == {("", "not measured")}


@pytest.mark.parametrize(("value", "met"), [(1.9, "yes"), (2.0, "yes"), (2.1, "**no**, in 1 of 2")])
def test_the_worst_figure_counts_for_the_most(value: float, met: str) -> None:
    bar = bars.Bar("time", 2, {"cora": 1.0, "actor": value})
    assert (bar.held_to, bar.figure, bar.met) == ("≤ 2×", f"{value:.4g}× (actor)", met)


@pytest.mark.parametrize(("value", "met"), [(5.5, "yes"), (4.9, "**no**, in 1 of 2")])
def test_the_worst_figure_counts_for_the_least(value: float, met: str) -> None:
    bar = bars.Bar("speed", 5, {"cora": 9.0, "actor": value}, at_least=True)
    assert (bar.held_to, bar.figure, bar.met) == ("≥ 5×", f"{value:.4g}× (actor)", met)


def test_what_is_still_to_be_measured_is_said() -> None:
    bar = bars.Bar("time", 2, {"cora label": 1.0}, needed=("cora", "actor"))
    assert bar.met == "so far; actor not measured"
    assert bars.Bar("time", 2, {"cora": 3.0}, needed=("actor",)).met == "**no**; actor not measured"


@pytest.mark.parametrize(("baseline", "met"), [("transcription", "yes"), ("transcription, scaled up", "so far; the")])
def test_fits_of_the_papers_datasets_against_the_transcription(baseline: str, met: str) -> None:
    figures = {"peak_mib": 30.0, "baseline_peak_mib": 100.0, "auroc": 90.0, "baseline_auroc": 88.0}
    rows = [speed.row("fit", name, 1.0, 40.0, baseline, "label") | figures for name in bars.OF_THE_PAPER]
    rows.append(speed.row("fit", "cornell", 1.0, 10.0, baseline, "label") | figures)  # is held to nothing here
    rows[1]["baseline_auroc"] = 89.5
    found = lines(bars.table(pd.DataFrame(rows), NONE, NONE, NONE))
    figure, verdict = found["speed of a fit, against the transcription"]
    assert (figure[:3], verdict[: len(met)]) == ("40×", met)
    figure, verdict = found["strict AUROC minus the transcription's, in points"]
    assert (figure, verdict[: len(met)]) == ("0.5 (chameleon label)", met)
    assert found["peak memory of a fit, against the transcription"] == ("0.3× (cora label)", "**no**, in 3 of 3")


def test_parts_and_rivals() -> None:
    rows = [speed.row("propagate", "cora", 1.4, 1.0, "numba"), speed.row("score", "cora", 1.4, 1.0, "bare products")]
    rivals = [{"dataset": name, "kind": "label", "method": "msp", "ratio": 1.5} for name in speed.DATASETS]
    found = lines(bars.table(pd.DataFrame(rows), pd.DataFrame(rivals), NONE, NONE))
    assert found["time of propagation, against the fastest other kernel"] == ("1.4× (cora)", "**no**")
    assert found["time of scoring, against its bare products"] == ("1.4× (cora)", "yes")
    assert found["time of a fit, against MSP's and GNNSafe's"] == ("1.5× (cora label msp)", "yes")
    assert found["speed of Langevin sampling, against autograd"] == ("", "not measured")


def test_batches() -> None:
    def row(dataset: str, difference: float, error: float, seeds: int = 5) -> dict[str, object]:
        figures = {"difference": difference, "standard_error": error}
        return {"dataset": dataset, "shift": "label", "seeds": seeds, **figures}

    rows = [row(name, 0.0, 0.0) for name in speed.DATASETS]
    what = "AUROC of mini-batches and of the whole graph, apart in standard errors"
    assert lines(bars.table(NONE, NONE, pd.DataFrame(rows), NONE))[what][1] == "yes"
    rows[1] = row("chameleon", -3.0, 1.0)
    rows[2] = row("actor", 9.0, 1.0, seeds=2)
    verdict = lines(bars.table(NONE, NONE, pd.DataFrame(rows), NONE))[what]
    assert verdict == ("3 (chameleon label)", "**no**, in 1 of 5; actor not measured")


def test_sizes() -> None:
    def row(nodes: int, fit: float, score: float) -> dict[str, object]:
        peaks = {"fit_peak_mib": 5 * 1024.0, "score_peak_mib": 7 * 1024.0}
        return {"graph": "generated", "nodes": nodes, "fit_seconds": fit, "score_seconds": score, **peaks}

    rows = [row(nodes, nodes / 1e4, nodes**1.2 / 1e6) for nodes in scale.SIZES]
    found = lines(bars.table(NONE, NONE, NONE, pd.DataFrame(rows)))
    assert found["exponent of fit time, 10k to 10M nodes"] == ("1", "yes")
    assert found["exponent of score time, 10k to 10M nodes"] == ("1.2", "**no**")
    assert found["1M nodes, fit"] == ("100 s", "yes")
    assert found["1M nodes, peak memory"] == ("7 GiB (score)", "**no**, in 1 of 2")
    assert found["10M nodes, peak memory"] == ("7 GiB (score)", "yes")
    assert found["10M nodes, fit and score, against 1M"] == ("10.8×", "yes")
    assert found["arxiv-structural, fit"] == ("", "not measured")
    fewer = lines(bars.table(NONE, NONE, NONE, pd.DataFrame(rows[:3])))
    assert fewer["exponent of fit time, 10k to 10M nodes"] == ("", "not measured")
    assert fewer["10M nodes, fit and score, against 1M"] == ("", "not measured")
