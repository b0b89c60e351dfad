from pathlib import Path

import numpy as np

from degem import Graph
from degem.ops.neighbours import structural_features
from degem.shifts import Settings, load_scenario
from degem.shifts.time import induced


def dated_graph() -> Graph:
    edges = [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)]
    year = np.array([2010, 2015, 2016, 2018, 2020])
    return Graph.from_arrays(features=np.eye(5), edges=edges, labels=[0, 1, 0, 1, 0], columns={"year": year})


def test_a_year_knows_only_papers_and_edges_up_to_it() -> None:
    graph = dated_graph()
    early = induced(graph, graph.columns["year"] <= 2016)
    assert early.node_ids.tolist() == [0, 1, 2]
    assert early.num_edges == 2


def test_structural_features_are_made_on_the_kept_edges_alone() -> None:
    graph = dated_graph()
    keep = graph.columns["year"] <= 2016
    early = induced(graph, keep, structural_features)
    np.testing.assert_allclose(early.features[:, 0], np.log1p(early.degrees), rtol=1e-6)
    later = induced(graph, np.ones(5, dtype=np.bool_), structural_features)
    np.testing.assert_allclose(early.features[1, 1:17], later.features[1, 1:17], rtol=1e-6)  # node 1: same neighbours


def test_time_scenario_at_full_size(data_dir: Path) -> None:
    scenario = load_scenario("arxiv-structural", "time", Settings(), data_dir)
    assert [len(scenario.ood[year].nodes) for year in ("2018", "2019", "2020")] == [29799, 39711, 8892]
    assert scenario.ood["2020"].graph.num_edges == 1157799
    train = scenario.train_graph
    np.testing.assert_allclose(train.features[:, 0], np.log1p(train.degrees), rtol=1e-6)
    exposure = scenario.exposure["2018"].graph
    np.testing.assert_allclose(exposure.features[:, 0], np.log1p(exposure.degrees), rtol=1e-6)
