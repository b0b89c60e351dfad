"""The protocol arrival: figures from one grown graph, rows, tables and the ceiling."""

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest

from degem import Detector, Graph
from degem.bench.ceiling import ceiling_row
from degem.bench.formats import markdown
from degem.bench.page import arrival_page
from degem.bench.protocols import run_arrival
from degem.bench.specs import read_spec, tasks_of
from degem.bench.store import COLUMNS, Row, Store
from degem.bench.summary import Results
from degem.bench.tables import grids
from degem.data.splits import random_split
from degem.metrics import auroc_id_positive
from degem.shifts import Arrival, Settings
from degem.shifts.arrival import manipulated


@pytest.fixture
def arrival(small_graph: Graph) -> Arrival:
    return manipulated(small_graph, random_split(small_graph.labelled, 0, train=0.4), Settings(), "made")


def test_one_fit_serves_every_shift_and_new_nodes_are_judged(arrival: Arrival) -> None:
    detector = Detector.registry["learner"]()
    outcomes = run_arrival(detector, arrival, ["structure", "feature"])
    assert len(Detector.registry["learner"].fits) == 1  # type: ignore[attr-defined]
    for shift, outcome in outcomes.items():
        growth = arrival.grown[shift]
        scores, p = detector.decision_function(growth.graph), detector.p_values(growth.graph)
        assert outcome.metrics.auroc == pytest.approx(
            100 * auroc_id_positive(scores[growth.new_id], scores[growth.ood])
        )
        assert outcome.false_alarm == pytest.approx(100 * np.mean(p[growth.new_id] <= 0.05))
        assert outcome.found == pytest.approx(100 * np.mean(p[growth.ood] <= 0.05))
        assert math.isnan(outcome.acc)


def test_accuracy_is_that_of_new_id_nodes(arrival: Arrival) -> None:
    detector = Detector.registry["msp"](num_epochs=30)
    outcome = run_arrival(detector, arrival, ["feature"])["feature"]
    growth = arrival.grown["feature"]
    guess = detector.predict_class(growth.graph)[growth.new_id]
    assert outcome.acc == pytest.approx(100 * np.mean(guess == growth.labels))


def test_the_table_leaves_out_who_lacks_what_it_needs() -> None:
    tasks = tasks_of([read_spec("arrival")])
    assert {task.protocol for task in tasks} == {"arrival"}
    assert not any(Detector.registry[task.variant.method].needs_exposure for task in tasks)
    assert {"degem", "iforest", "ecod-1hop", "degree"} <= {t.variant.method for t in tasks if t.shift == "fraud"}
    assert "msp" not in {task.variant.method for task in tasks if task.dataset == "amazon-fraud"}
    assert len({(task.dataset, task.shift) for task in tasks}) == 15 + 1 + 6 + 3 + 3


ROW = Row("msp", "cora", "label", 0, "arrival", 91.0, 78.0, 43.0, 88.0, 1.0, 0.1, 300.0, "0", "{}", "", 4.0, 61.5)


def test_an_old_store_is_read_and_takes_new_rows(tmp_path: Path) -> None:
    (tmp_path / "results.csv").write_text(
        ",".join(COLUMNS[:-2]) + "\nmsp,cora,label,1,strict,91.0,78.0,43.0,88.0,1.0,0.1,300.0,0,{},\n"
    )
    store = Store(tmp_path)
    (old,) = store.rows()
    assert math.isnan(old.found)
    store.append([ROW])
    assert [row.found for row in store.rows()][1] == 61.5
    assert dataclasses.replace(store.rows()[0], false_alarm=0.0, found=0.0) == dataclasses.replace(
        old, false_alarm=0.0, found=0.0
    )


def test_tables_show_false_alarms_finds_and_the_ceiling() -> None:
    rows = [ROW, dataclasses.replace(ROW, method="ceiling", auroc=97.0, false_alarm=math.nan, found=math.nan)]
    first, means = grids(read_spec("arrival"), rows, "arrival")
    text = markdown(first)
    assert "| msp | **91.0** | 4.0 | 61.5 |" in text
    assert "| ceiling (no detector) | 97.0 |" in text
    assert "label (1 cells)" in means.header


def test_the_ceiling_sees_what_it_was_shown(arrival: Arrival) -> None:
    growth = arrival.grown["feature"]
    features = np.array(growth.graph.features)
    features[growth.ood, 0] = 50
    plain = dataclasses.replace(growth, graph=growth.graph.replace(features=features))
    row = ceiling_row(plain, "made", "feature", 0)
    assert row.auroc > 95
    assert row.method == "ceiling"


def test_the_page_of_arrival_names_the_best_of_the_others() -> None:
    rows = [
        dataclasses.replace(ROW, method=method, auroc=auroc, parameters=parameters)
        for method, auroc in (("degem", 90.0), ("msp", 91.0), ("energy", 80.0), ("iforest", 70.0))
        for (task,) in [[t for t in tasks_of([read_spec("arrival")]) if t.variant.method == method][:1]]
        for parameters in [task.parameters]
    ]
    results = Results(tuple(rows), ("arrival",), ((read_spec("arrival"), "arrival"),))
    assert "| cora label | 90.0 | 4.0 | 61.5 | 91.0 msp | 70.0 iforest |  |" in arrival_page(results)
