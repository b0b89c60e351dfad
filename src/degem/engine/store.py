"""Arrays by name in a place that every worker reaches: a shared folder, or an object store by its URI."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import tempfile
import weakref
from collections import Counter
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock
from numpy.lib import format as npy
from numpy.typing import NDArray
from pyarrow import ArrowException, fs

from degem.data.arrays import read_npy
from degem.errors import DegemError, quoted
from degem.files import replaced

ENDING, CHUNK = ".npy", 1 << 24
moved: Counter[str] = Counter()  # bytes that this process wrote, and read or mapped


@dataclass(frozen=True)
class Store:
    """A folder of ``.npy`` files, each there as a whole or not at all.

    In a folder a file is written beside its place and renamed; an object store shows an object when all of it is there.

    Arguments:
        uri: A folder, or a URI of ``pyarrow.fs``: ``s3://``, ``gs://``, ``abfs://``, ``hdfs://``, or ``fsspec+…://``.

    Example:
        >>> store = Store(tempfile.mkdtemp())
        >>> store.write("a/b", np.eye(2))
        >>> store.names("a/"), store.rows("a/b", slice(1, 2)).tolist()
        ({'a/b'}, [[0.0, 1.0]])
    """

    uri: str

    @cached_property
    def _place(self) -> tuple[fs.FileSystem, str]:
        try:
            if "://" not in self.uri:
                return fs.LocalFileSystem(), str(Path(self.uri).absolute())
            system, root = fs.FileSystem.from_uri(self.uri)
        except (ArrowException, OSError, ValueError, ImportError) as error:
            raise DegemError(f"--store {self.shown} cannot be opened: {error}") from None
        return system, root.rstrip("/")

    @property
    def shown(self) -> str:
        """The URI without a key and a secret."""
        return re.sub("//[^/@]*@", "//", self.uri)

    @property
    def folder(self) -> Path | None:
        """The folder, if it is one."""
        system, root = self._place
        return Path(root) if isinstance(system, fs.LocalFileSystem) else None

    def names(self, prefix: str) -> set[str]:
        """The names of the arrays in a folder of the store, which ends in a slash."""
        system, root = self._place
        selector = fs.FileSelector(f"{root}/{prefix.rstrip('/')}", allow_not_found=True)
        with self._told(prefix):
            found = [Path(info.path).name for info in system.get_file_info(selector)]
        return {prefix + name.removesuffix(ENDING) for name in found if name.endswith(ENDING)}

    def has(self, name: str) -> bool:
        """Whether there is an array of that name."""
        system, root = self._place
        with self._told(name):
            return bool(system.get_file_info(f"{root}/{name}{ENDING}").type == fs.FileType.File)

    def write(self, name: str, array: NDArray[Any]) -> None:
        """Put an array there, in the place of one that has the name."""
        moved["written"] += array.nbytes
        if self.folder is not None:
            with replaced(self.folder / (name + ENDING)) as file:
                np.save(file, array, allow_pickle=False)
            return
        system, root = self._place
        path = f"{root}/{name}{ENDING}"
        with self._told(name):
            try:
                with system.open_output_stream(path) as stream:
                    npy.write_array(stream, np.asarray(array), allow_pickle=False)
            except BaseException:
                with contextlib.suppress(OSError):
                    system.delete_file(path)
                raise

    def array(self, name: str) -> NDArray[Any]:
        """An array as a memory map; from an object store it is fetched once a machine."""
        array = read_npy(self._fetched(name) if self.folder is None else self.folder / (name + ENDING))
        moved["read"] += array.nbytes
        return array

    def rows(self, name: str, rows: slice) -> NDArray[Any]:
        """Some rows of an array; of an object store only these are read."""
        if self.folder is not None:
            some = read_npy(self.folder / (name + ENDING))[rows]
            moved["read"] += some.nbytes
            return some
        with self._told(name), self._opened(name) as file:
            shape, kind, start = _header(file)
            first, last, _ = rows.indices(shape[0])
            width = kind.itemsize * int(np.prod(shape[1:], dtype=np.int64))
            content = file.read_at(max(last - first, 0) * width, start + first * width)
        moved["read"] += len(content)
        return np.frombuffer(content, kind).reshape(-1, *shape[1:])

    def _opened(self, name: str) -> Any:
        system, root = self._place
        return system.open_input_file(f"{root}/{name}{ENDING}")

    def _fetched(self, name: str) -> Path:
        target = cache_folder(self.uri) / (name + ENDING)
        target.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(target.with_suffix(".lock")):
            if not target.exists():
                with self._told(name), self._opened(name) as source, replaced(target) as file:
                    while chunk := source.read(CHUNK):
                        file.write(chunk)
        return target

    @contextlib.contextmanager
    def _told(self, name: str) -> Any:
        try:
            yield
        except (OSError, ArrowException) as error:
            raise DegemError(f"{self.shown}: {name} cannot be read or written: {error}") from None

    def __reduce__(self) -> tuple[Any, ...]:
        """Connections stay behind."""
        return store_at, (self.uri,)


@dataclass(frozen=True)
class Stored:
    """An array in the store, which is read where it is needed: by rows, or whole by ``np.asarray``."""

    store: Store
    name: str

    def __getitem__(self, rows: slice) -> NDArray[Any]:
        """Some rows."""
        return self.store.rows(self.name, rows)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """All of it."""
        return np.asarray(self[:], dtype=dtype)


class Publisher:
    """Puts arrays into a store under names that say what is in them, each once.

    Arguments:
        store: The store.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self._known: dict[int, tuple[weakref.ref[NDArray[Any]], tuple[str, int]]] = {}

    def place_of(self, array: NDArray[Any]) -> tuple[str, int]:
        """The name under which the array is in the store, now if not before, and a number that tells versions."""
        alive, place = self._known.get(id(array), (None, ("", 0)))
        if alive is None or alive() is not array:  # an id is used again
            place = self._published(array)
            self._known[id(array)] = weakref.ref(array), place
        return place

    def _published(self, array: NDArray[Any]) -> tuple[str, int]:
        inside = _file_of(array)
        if inside is not None and self.store.folder is not None and inside.is_relative_to(self.store.folder):
            name = str(inside.relative_to(self.store.folder).with_suffix(""))  # every worker sees it already
            return name, inside.stat().st_mtime_ns
        name = f"arrays/{checksum(array)}"
        if not self.store.has(name):
            self.store.write(name, array)
        return name, 0


def _file_of(array: NDArray[Any]) -> Path | None:
    """The ``.npy`` file that an array is all of."""
    base: Any = array
    while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
        base = base.base
    while isinstance(base, np.memmap) and isinstance(base.base, np.memmap):
        base = base.base
    if not isinstance(base, np.memmap) or base.filename is None or base.nbytes != array.nbytes:
        return None
    path = Path(base.filename)
    whole = base.flags.c_contiguous and array.flags.c_contiguous and base.shape == array.shape
    return path if whole and path.suffix == ENDING and path.is_file() else None


def checksum(array: NDArray[Any]) -> str:
    """A checksum of the type, the shape and the values of an array.

    Example:
        >>> checksum(np.eye(2)) == checksum(np.eye(2).copy()), checksum(np.eye(2)) == checksum(np.eye(2).ravel())
        (True, False)
    """
    digest = hashlib.sha256(f"{array.dtype.str} {array.shape}".encode())
    step = max(1, CHUNK * len(array) // max(array.nbytes, 1)) if array.ndim else 1
    for start in range(0, len(array) if array.ndim else 1, step):
        digest.update(np.ascontiguousarray(array[start : start + step] if array.ndim else array).data)
    return digest.hexdigest()[:32]


def cache_folder(uri: str) -> Path:
    """Where a machine keeps what it fetched from an object store."""
    return Path(tempfile.gettempdir()) / f"degem-{os.getuid()}-{hashlib.sha256(uri.encode()).hexdigest()[:16]}"


def forget(uri: str) -> None:
    """Give back what this machine's cache takes."""
    shutil.rmtree(cache_folder(uri), ignore_errors=True)


def _header(file: Any) -> tuple[tuple[int, ...], np.dtype[Any], int]:
    """Shape and type of an ``.npy`` array, and where its values begin."""
    if npy.read_magic(file) != (1, 0):
        raise OSError("it is not an array of ours")
    shape, fortran, kind = npy.read_array_header_1_0(file)
    if fortran or kind.hasobject:
        raise OSError(f"its type {quoted(kind)} is not one of ours")
    return shape, kind, file.tell()


@lru_cache(maxsize=4)
def store_at(uri: str) -> Store:
    """The store of that URI, once a process: connections are kept."""
    return Store(uri)
