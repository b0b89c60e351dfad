"""Ways to spoil bytes, arrays and JSON, each a function of a seeded generator."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

import numpy as np

TOKENS = [
    b"", b"\x00", b"\xff", b"\xef\xbb\xbf", b"\n", b"\r", b",", b'"', b"nan", b"inf", b"-1", b"1e39", b"1e400", b"0x10",
    b"007", b"9" * 30, b"=1+1", b"\x1b[31m", b"\xf0\x9f\x92\xa9", b"PAR1", b"PK\x03\x04", b"\x93NUMPY", b"x" * 5000,
    b"{'descr': '|O'", b"(999999999999,)", b"<U0", b"<f8", b"'>i8'", b"True", b"[" * 3000, b"\xed\xa0\x80",
]  # fmt: skip
NUMBERS = [0, -1, 1, 2**31 - 1, 2**31, 2**63 - 1, -(2**63), 3 * 10**8, 10**12, 7]
VALUES: list[Any] = [
    None, True, "", "x", "\x1b[2J", "\udc80", -1, 0, 1.5, 1e308, float("nan"), float("inf"), 10**30, 20_000, [], {},
    [[]], {"a": 1}, "cuda", "meta", "../../x", [1, "1"], "9" * 5000, ["a"] * 3, [0, 0], 2**31, 2**63,
]  # fmt: skip


def spoil_bytes(rng: Random, content: bytes) -> bytes:
    """One to four small changes anywhere."""
    spoiled = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        at = rng.randint(0, len(spoiled))
        end = min(len(spoiled), at + rng.choice([1, 1, 2, 8, 64, 1000]))
        token = rng.choice(TOKENS)
        match rng.randrange(7):
            case 0:
                spoiled[at:end] = bytes(rng.randrange(256) for _ in range(end - at))
            case 1:
                spoiled[at:end] = b""
            case 2:
                spoiled[at:at] = token
            case 3:
                spoiled[at : at + len(token)] = token
            case 4:
                spoiled[at:at] = spoiled[at:end] * rng.choice([1, 2, 50])
            case 5:
                del spoiled[at:]
            case 6 if spoiled:
                spoiled[rng.randrange(len(spoiled))] ^= 1 << rng.randrange(8)
    return bytes(spoiled)


def spoil_array(rng: Random, array: np.ndarray) -> np.ndarray:
    """An array like the one given, but for its values, its type or its shape."""
    array = np.array(array)
    match rng.randrange(9):
        case 0 if array.size and array.dtype.kind in "iufb":
            with np.errstate(all="ignore"):
                array.reshape(-1)[rng.randrange(array.size)] = np.int64(rng.choice(NUMBERS)).astype(array.dtype)
        case 1 if array.dtype.kind == "f" and array.size:
            array.reshape(-1)[rng.randrange(array.size)] = rng.choice([np.nan, np.inf, -np.inf, 1e300, -0.0])
        case 2:
            kinds = ["int8", "uint64", "float16", "float64", ">i4", "bool", "complex64", "datetime64[s]", "U3", "S2"]
            with np.errstate(all="ignore"):
                array = array.astype(rng.choice(kinds)) if array.dtype.kind not in "USO" else array.astype("S")
        case 3:
            array = array[: rng.randint(0, max(len(array), 1))] if array.ndim else array[None]
        case 4:
            array = np.concatenate([array, array]) if array.ndim else array
        case 5:
            array = array.reshape(rng.choice([(-1,), (1, -1), (-1, 1), (1, 1, -1)]))
        case 6:
            array = np.asfortranarray(array[::-1]) if array.ndim else array
        case 7:
            array = np.empty(rng.choice([(0,), (0, 2), (2, 0), ()]), dtype=array.dtype)
        case 8 if array.ndim:
            array = (
                array[np.array([rng.randrange(len(array)) for _ in range(len(array))], dtype=int)]
                if len(array)
                else array
            )
    return array


def spoil_json(rng: Random, document: Any) -> Any:
    """A document with one value changed, taken away or added, at any depth."""
    document = copy.deepcopy(document)
    holder, path = document, []
    while True:
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        if not keys:
            break
        key = rng.choice(keys)
        path.append(key)
        if not isinstance(holder[key], dict | list) or not holder[key] or rng.random() < 0.4:
            break
        holder = holder[key]
    if not path:
        return document
    match rng.randrange(5):
        case 0:
            del holder[path[-1]]
        case 1 if isinstance(holder, dict):
            holder[rng.choice(["x", "", "seed", "device", "__class__"])] = rng.choice(VALUES)
        case 2 if isinstance(holder[path[-1]], int | float):
            holder[path[-1]] = rng.choice(NUMBERS)
        case _:
            holder[path[-1]] = copy.deepcopy(rng.choice(VALUES))
    return document
