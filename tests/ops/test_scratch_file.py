"""A scratch file gives back what was written, wherever its pieces start, and leaves nothing behind."""

import fcntl
import tempfile
from pathlib import Path

import numpy as np
import pytest

from degem.ops import scratch_file
from degem.ops.scratch_file import PAGE, ScratchFile

VALUES = np.random.default_rng(0).random((5000, 7), dtype=np.float32)


@pytest.fixture(params=["past the cache", "through the cache"])
def file(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ScratchFile:
    monkeypatch.setattr(scratch_file, "BUFFER", 4 * PAGE)
    if request.param == "through the cache":

        def refuse(*_: object) -> int:
            raise OSError("this file system cannot")

        monkeypatch.setattr(fcntl, "fcntl", refuse)
    file = ScratchFile()
    for start in range(0, len(VALUES), 999):  # pieces that end anywhere
        file.append(VALUES[start : start + 999])
    file.finish()
    return file


@pytest.mark.parametrize(("first", "rows"), [(0, 5000), (1, 1), (1024, 3), (4999, 1), (33, 4000), (7, 0)])
def test_every_piece_is_as_it_was_written(file: ScratchFile, first: int, rows: int) -> None:
    found = np.full((rows, 10), -1, dtype=np.float32)
    file.read(7 * first, found[:, 2:9])
    np.testing.assert_array_equal(found[:, 2:9], VALUES[first : first + rows])
    assert (found[:, [0, 1, 9]] == -1).all()


def test_beyond_the_end_is_an_error(file: ScratchFile) -> None:
    with pytest.raises(EOFError, match="ends before its number"):
        file.read(7 * 5000 - 7, np.empty((PAGE, 7), dtype=np.float32))


def test_the_file_has_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    file = ScratchFile()
    file.append(VALUES)
    assert list(tmp_path.iterdir()) == []
    file.close()
