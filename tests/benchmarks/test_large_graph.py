"""The generated graph is one that the library accepts, the same for the same seed, and as it says."""

import sys
from pathlib import Path

import numpy as np
import pytest

from degem.data.archives import read_memmap

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import large_graph


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_graph, "BLOCK", 700)


def test_degree_homophily_and_seed(tmp_path: Path) -> None:
    large_graph.write_graph(tmp_path / "a", 2000, seed=1)
    graph = read_memmap(tmp_path / "a")
    assert graph.num_nodes == 2000
    assert graph.num_features == 128
    assert graph.num_classes == 10
    assert graph.degrees.mean() == pytest.approx(20, rel=0.1)
    assert graph.degrees.std() > 1
    assert graph.homophily() == pytest.approx(0.75 + 0.25 / 10, abs=0.05)
    assert graph.masks["train"].mean() == pytest.approx(0.1, abs=0.03)
    large_graph.write_graph(tmp_path / "b", 2000, seed=1)
    for name in ("features.npy", "indices.npy", "indptr.npy", "mask_val.npy"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    large_graph.write_graph(tmp_path / "c", 2000, seed=2)
    assert not np.array_equal(np.load(tmp_path / "c" / "features.npy"), graph.features)


def test_sizes_that_do_not_divide_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="multiple of 10"):
        large_graph.write_graph(tmp_path, 2001)
