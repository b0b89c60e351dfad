"""NumPy's files, ``.npy`` and ``.npz``, read by a parser of our own: nothing is evaluated, unpickled or guessed.

What a header says is held against the bytes that are there, and against :func:`~degem.files.memory_limit`, before
anything is allocated.
"""

from __future__ import annotations

import math
import re
import struct
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from degem.errors import GraphError, quoted
from degem.files import memory_limit, opened, size_of

Arrays = dict[str, NDArray[Any]]
MAGIC = b"\x93NUMPY"
HEADER = re.compile(
    r"\{ ?'descr' ?: ?'([<>|=]?[biufcSUmM]\d{1,9}(?:\[\d{0,6}[a-zA-Z]{1,2}\])?)' ?,"
    r" ?'fortran_order' ?: ?(True|False) ?,"
    r" ?'shape' ?: ?\( ?((?:\d{1,18} ?(?:, ?|(?=\))))*)\) ?,? ?\} *\n?",
    re.ASCII,
)
MAX_HEADER = 1 << 16
MAX_MEMBERS = 10_000
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
ENCRYPTED = 0x1
# What zipfile and zlib raise on archives that are cut short, altered or none at all.
DAMAGE = (OSError, EOFError, ValueError, NotImplementedError, RuntimeError, zipfile.BadZipFile, zlib.error)


def read_npy(path: Path) -> NDArray[Any]:
    """The array of a ``.npy`` file as a read-only memory map."""
    try:
        with opened(path) as file:
            dtype, order, shape, start = _header(file, size_of(file))
            if 0 in shape:
                return np.empty(shape, dtype)
            return np.memmap(file, dtype, mode="r", offset=start, shape=shape, order=order)
    except (OSError, ValueError) as error:
        raise GraphError(f"{path} is not a plain .npy array ({_reason(error)}): write it with np.save") from None


def read_npz(path: Path) -> Arrays:
    """The arrays of an ``.npz`` archive by name."""
    try:
        with opened(path) as file, zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            _check_members(members)
            return {member.filename.removesuffix(".npy"): _member(archive, member) for member in members}
    except DAMAGE as error:
        raise GraphError(
            f"{path} is not an .npz archive of plain arrays ({_reason(error)}): write one with np.savez"
        ) from None


def _check_members(members: list[zipfile.ZipInfo]) -> None:
    if len(members) > MAX_MEMBERS:
        raise ValueError(f"it has {len(members):,} members")
    total, seen = 0, set()
    for member in members:
        if not member.filename.endswith(".npy"):
            raise ValueError(f"its member {quoted(member.filename)} is no .npy array")
        if member.filename in seen:
            raise ValueError(f"it has two members {quoted(member.filename)}")
        if member.compress_type not in METHODS or member.flag_bits & ENCRYPTED:
            raise ValueError(f"its member {quoted(member.filename)} is encrypted or packed in an unusual way")
        seen.add(member.filename)
        total += member.file_size
    if total > memory_limit():
        raise ValueError(
            f"unpacked it has {total / 2**20:,.0f} MiB, more than the {memory_limit() / 2**20:,.0f} MiB that "
            "DEGEM_MAX_READ_MIB or the free memory allow"
        )


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    with archive.open(member) as file:
        _header(file, member.file_size)
    with archive.open(member) as file:  # NumPy reads what the parser below has found to be plain, and of this size
        array: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False, max_header_size=MAX_HEADER)
        if file.read(1):  # also makes zipfile compare the checksum
            raise ValueError(f"{quoted(member.filename)} goes on behind its array")
    return array


def _header(file: IO[bytes], size: int) -> tuple[np.dtype[Any], Any, tuple[int, ...], int]:
    """The type, order and shape of an array, and where its values begin in a file of ``size`` bytes."""
    start = file.read(8)
    if start[:6] != MAGIC or len(start) < 8 or start[6] not in (1, 2, 3) or start[7]:
        raise ValueError("it does not begin like a .npy array")
    length_format = "<H" if start[6] == 1 else "<I"
    packed = file.read(struct.calcsize(length_format))
    (length,) = struct.unpack(length_format, packed) if len(packed) == struct.calcsize(length_format) else (0,)
    if length > MAX_HEADER:
        raise ValueError(f"its header has {length:,} bytes")
    match = HEADER.fullmatch(file.read(length).decode("latin-1"))
    if match is None:
        raise ValueError("its header is not that of a plain array of numbers or text")
    try:
        dtype = np.dtype(match[1])
    except TypeError:
        raise ValueError(f"its type {match[1]} is not known") from None
    shape = tuple(int(part) for part in match[3].replace(",", " ").split())
    if len(shape) > 8 or (dtype.itemsize == 0 and 0 not in shape) or max(shape, default=0) > np.iinfo(np.intp).max:
        raise ValueError(f"an array of type {match[1]} and shape {shape} is not plausible")
    begin = len(start) + len(packed) + length
    if begin + math.prod(shape) * dtype.itemsize != size:
        raise ValueError(f"{size - begin:,} bytes are not an array of type {match[1]} and shape {shape}")
    return dtype, "F" if match[2] == "True" else "C", shape, begin


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
