"""In memory or out of it: the default ends with the same model."""

import numpy as np

from degem import DeGEM, Graph

SETTINGS = {"num_epochs": 12, "seed": 3}


def test_hop_features_on_disk_give_the_same_scores(small_graph: Graph) -> None:
    in_memory = DeGEM(**SETTINGS).fit(small_graph)
    on_disk = DeGEM(**SETTINGS, memory_budget=0.01).fit(small_graph)
    expected = in_memory.decision_function(small_graph)
    np.testing.assert_array_equal(on_disk.decision_function(small_graph), expected)


def test_calibration_takes_the_energies_of_the_fit_and_scoring_does_not_depend_on_them(small_graph: Graph) -> None:
    detector = DeGEM(**SETTINGS).fit(small_graph)
    first, second = detector.decision_function(small_graph), detector.decision_function(small_graph)
    np.testing.assert_array_equal(first, second)
    mask = np.isin(first, detector.calibration_scores_)
    assert mask.sum() >= len(detector.calibration_scores_)
