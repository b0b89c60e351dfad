"""Interrupted, out of memory, or neither: the default ends with the same model."""

from pathlib import Path

import numpy as np
import pytest

from degem import DeGEM, Graph
from degem.errors import DegemError
from degem.training import Progress

SETTINGS = {"num_epochs": 12, "num_head_steps": 8, "seed": 3}


def interrupt_at(phase: str, step: int):
    def listen(progress: Progress) -> None:
        if progress.phase == phase and progress.done == step:
            raise KeyboardInterrupt

    return listen


@pytest.fixture(autouse=True)
def checkpoint_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("degem.checkpoint.Checkpoints.due", lambda self: True)


@pytest.mark.parametrize(("phase", "step"), [("train encoder", 5), ("train encoder", 12), ("train head", 3)])
def test_a_resumed_fit_ends_with_the_same_model(small_graph: Graph, tmp_path: Path, phase: str, step: int) -> None:
    whole = DeGEM(**SETTINGS).fit(small_graph)
    folder = tmp_path / "checkpoint"
    with pytest.raises(KeyboardInterrupt):
        DeGEM(**SETTINGS).fit(small_graph, checkpoint=folder, on_progress=interrupt_at(phase, step))
    assert folder.is_dir()
    resumed = DeGEM(**SETTINGS).fit(small_graph, checkpoint=folder, resume=True)
    for name, tensor in whole._state().items():
        np.testing.assert_array_equal(resumed._state()[name].numpy(), tensor.numpy(), err_msg=name)
    np.testing.assert_array_equal(resumed.calibration_scores_, whole.calibration_scores_)
    assert not folder.exists()


def test_a_checkpoint_of_other_settings_is_refused(small_graph: Graph, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        DeGEM(**SETTINGS).fit(small_graph, checkpoint=tmp_path / "c", on_progress=interrupt_at("train encoder", 2))
    with pytest.raises(DegemError, match="another fit"):
        DeGEM(**SETTINGS | {"seed": 4}).fit(small_graph, checkpoint=tmp_path / "c", resume=True)


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
