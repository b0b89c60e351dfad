"""Released pages leave resident memory and keep their content."""

from pathlib import Path

import numpy as np

from degem.ops.mapped import is_mapped, release, rows_of


def resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


def test_pages_go_and_content_stays(tmp_path: Path) -> None:
    mapped = np.memmap(tmp_path / "map", dtype=np.float32, mode="w+", shape=(64, 1 << 18))
    mapped[:] = 3
    before = resident_mib()
    release(mapped[1:, :5])
    assert resident_mib() < before - 50
    assert (mapped == 3).all()


def test_private_changes_are_kept(tmp_path: Path) -> None:
    np.zeros(4096, dtype=np.float32).tofile(tmp_path / "map")
    private = np.memmap(tmp_path / "map", dtype=np.float32, mode="c", shape=(4096,))
    private[:] = 1
    release(private)
    assert (private == 1).all()


def test_rows_of_a_map_are_a_map(tmp_path: Path) -> None:
    whole = np.arange(300_000, dtype=np.float32).reshape(-1, 2)
    np.save(tmp_path / "x.npy", whole)
    rows = np.random.default_rng(0).permutation(150_000)[:100_000]
    taken = rows_of(np.load(tmp_path / "x.npy", mmap_mode="r"), rows)
    assert is_mapped(taken)
    np.testing.assert_array_equal(taken, whole[rows])
