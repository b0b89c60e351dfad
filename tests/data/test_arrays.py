"""NumPy's files by a parser of our own: what it reads is what NumPy reads, and nothing else is read."""

import io
import struct
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra import numpy as hnp

from degem import read_graph
from degem.data.arrays import read_npy, read_npz
from degem.errors import GraphError

HEADER = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), }"
BAD_HEADERS = {
    "objects": HEADER.replace("<f8", "|O"),
    "void": HEADER.replace("<f8", "|V8"),
    "records": HEADER.replace("'<f8'", "[('a', '<f8')]"),
    "no type": HEADER.replace("<f8", "<f5"),
    "a negative shape": HEADER.replace("(2, 2)", "(2, -2)"),
    "a shape that is no tuple": HEADER.replace("(2, 2)", "4"),
    "a huge shape": HEADER.replace("(2, 2)", "(3000000000, 3000000000)"),
    "an endless number": HEADER.replace("(2, 2)", f"({'9' * 5000},)"),
    "nested too deeply": "(" * 9000,
    "not closed": HEADER[:-1],
    "code": "__import__('os').getcwd()",
    "zero-width text": HEADER.replace("<f8", "<U0").replace("(2, 2)", "(1000000000,)"),
    "too many axes": HEADER.replace("(2, 2)", "(2, 2" + ", 1" * 40 + ")"),
    "odd spaces": HEADER + " \x0b",
    "fewer values": HEADER.replace("(2, 2)", "(2, 3)"),
    "more values": HEADER.replace("(2, 2)", "(2,)"),
}


def npy(header: str, values: bytes = bytes(32)) -> bytes:
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + values


arrays = hnp.arrays(
    hnp.scalar_dtypes().filter(lambda kind: kind.kind in "biufUSc" and kind.itemsize > 0),
    hnp.array_shapes(min_dims=0, max_dims=4, min_side=0),
)


@given(array=arrays)
def test_what_numpy_writes_is_read_as_numpy_reads_it(
    tmp_path_factory: pytest.TempPathFactory, array: np.ndarray
) -> None:
    folder = tmp_path_factory.mktemp("arrays")
    for each in (array, np.asfortranarray(array)):
        np.save(folder / "a.npy", each)
        np.savez_compressed(folder / "a.npz", a=each)
        for found in (read_npy(folder / "a.npy"), read_npz(folder / "a.npz")["a"]):
            assert (found.dtype, found.shape) == (each.dtype, each.shape)
            assert found.tobytes() == each.tobytes()


@pytest.mark.parametrize("case", BAD_HEADERS)
def test_bad_headers(tmp_path: Path, case: str) -> None:
    (tmp_path / "a.npy").write_bytes(npy(BAD_HEADERS[case]))
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("a.npy", npy(BAD_HEADERS[case]))
    for read, name in ((read_npy, "a.npy"), (read_npz, "a.npz")):
        with pytest.raises(GraphError, match=r"a\.np. is not a"):
            read(tmp_path / name)


def test_a_plain_array_named_npz_is_no_archive(tmp_path: Path) -> None:
    (tmp_path / "a.npz").write_bytes(npy(HEADER))
    with pytest.raises(GraphError, match="npz archive of plain"):
        read_graph(tmp_path / "a.npz")


def archive_of(path: Path, *members: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return path


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_odd_members(tmp_path: Path) -> None:
    good = npy(HEADER)
    for members, reason in [
        ([("a.npy", good), ("a.npy", good)], "two members 'a.npy'"),
        ([("a.npy", good), ("b", good)], "'b' is no .npy array"),
        ([("a.npy", good + b"x")], "bytes are not an array"),
    ]:
        with pytest.raises(GraphError, match=reason):
            read_npz(archive_of(tmp_path / "a.npz", *members))
    for method in (zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2):
        with pytest.raises(GraphError, match="packed in an unusual way"):
            read_npz(archive_of(tmp_path / "a.npz", ("a.npy", good), method=method))


def test_a_bomb_is_refused_by_its_declared_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEGEM_MAX_READ_MIB", "16")
    content = io.BytesIO()
    np.save(content, np.zeros((3000, 1000), dtype=np.float64))
    path = archive_of(tmp_path / "a.npz", ("features.npy", content.getvalue()))
    assert path.stat().st_size < 1 << 16
    tracemalloc.start()
    with pytest.raises(GraphError, match="more than the 16 MiB"):
        read_npz(path)
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


def test_a_member_that_lies_about_its_size_is_damaged(tmp_path: Path) -> None:
    path = archive_of(tmp_path / "a.npz", ("a.npy", npy(HEADER)))
    content = path.read_bytes()
    size = struct.pack("<I", len(npy(HEADER)))
    assert content.count(size) == 2
    path.write_bytes(content.replace(size, struct.pack("<I", 40)))
    with pytest.raises(GraphError, match="npz archive of plain"):
        read_npz(path)


def test_misspelt_arrays_of_a_folder_are_named(tmp_path: Path) -> None:
    np.save(tmp_path / "indptr.npy", np.zeros(3, dtype=np.int32))
    np.save(tmp_path / "label.npy", np.zeros(2))
    with pytest.raises(GraphError, match="'label'"):
        read_graph(tmp_path)


def test_a_version_that_is_none_is_refused(tmp_path: Path) -> None:
    content = bytearray(npy(HEADER))
    content[7] = 34
    (tmp_path / "a.npy").write_bytes(content)
    with pytest.raises(GraphError, match="does not begin like"):
        read_npy(tmp_path / "a.npy")
