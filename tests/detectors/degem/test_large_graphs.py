"""In memory or out of it: the default ends with the same model."""

import numpy as np

from degem import DeGEM, Graph

SETTINGS = {"num_epochs": 12, "seed": 3}


def test_hop_features_on_disk_give_the_same_scores(small_graph: Graph) -> None:
    in_memory = DeGEM(**SETTINGS).fit(small_graph)
    on_disk = DeGEM(**SETTINGS, memory_budget=0.01).fit(small_graph)
    expected = in_memory.decision_function(small_graph)
    np.testing.assert_array_equal(on_disk.decision_function(small_graph), expected)


def test_scoring_again_gives_the_scores_of_the_calibration(small_graph: Graph) -> None:
    detector = DeGEM(**SETTINGS).fit(small_graph)
    first, second = detector.decision_function(small_graph), detector.decision_function(small_graph)
    np.testing.assert_array_equal(first, second)
    assert np.isin(detector.calibration_.scores, first).all()
