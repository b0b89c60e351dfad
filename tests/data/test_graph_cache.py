from pathlib import Path

import numpy as np
import pytest

from degem import Graph
from degem.data.graph_cache import cached, read_graphs, write_graphs


def test_graphs_come_back_equal_and_share_what_they_shared(tmp_path: Path, small_graph: Graph) -> None:
    masked = small_graph.replace(masks={"train": np.arange(120) < 5}, columns={"year": np.arange(120)})
    path = tmp_path / "a.npz"
    write_graphs(path, {"a": small_graph, "b": masked}, {"nodes": np.array([3, 1])})
    graphs, arrays = read_graphs(path)
    np.testing.assert_array_equal(graphs["b"].features, small_graph.features)
    np.testing.assert_array_equal(graphs["b"].masks["train"], masked.masks["train"])
    np.testing.assert_array_equal(graphs["b"].columns["year"], np.arange(120))
    np.testing.assert_array_equal(arrays["nodes"], [3, 1])
    assert np.shares_memory(graphs["a"].features, graphs["b"].features)


def test_temporary_arrays_are_not_taken_for_each_other(tmp_path: Path) -> None:
    write_graphs(tmp_path / "a.npz", {}, {str(number): np.array(f"text {number}") for number in range(50)})
    _, arrays = read_graphs(tmp_path / "a.npz")
    assert [str(arrays[str(number)]) for number in range(50)] == [f"text {number}" for number in range(50)]


def test_another_key_is_another_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_graph: Graph) -> None:
    monkeypatch.setenv("DEGEM_CACHE", str(tmp_path))
    made = []

    def make(seed: int) -> None:
        cached("kind", {"seed": seed}, lambda: (made.append(seed) or {"g": small_graph}, {}))

    for seed in (0, 1, 0):
        make(seed)
    assert made == [0, 1]


def test_a_changed_archive_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_graph: Graph) -> None:
    monkeypatch.setenv("DEGEM_CACHE", str(tmp_path))
    made = []

    def load() -> Graph:
        return cached("kind", {"a": 1}, lambda: (made.append(1) or {"g": small_graph}, {}))[0]["g"]

    load()
    (path,) = (tmp_path / "kind").iterdir()
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    for name in arrays:
        if arrays[name].dtype == np.float32:
            arrays[name][0, 0] += 1  # a whole archive, of another graph
    np.savez(path, **arrays)
    np.testing.assert_array_equal(load().features, small_graph.features)
    assert len(made) == 2
    assert len(list((tmp_path / "kind").iterdir())) == 1
    load()
    assert len(made) == 2
