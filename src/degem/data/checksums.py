"""Checksums of raw files whose loader unpickles: only the official ones may reach it."""

from __future__ import annotations

import hashlib
from pathlib import Path

from degem.errors import GraphError

PICKLED = "ind."  # Planetoid's files: PyG unpickles them, and a pickle can run any code
SHA256 = {
    "ind.cora.allx": "9419ba2f26f5c35243db64aba110e0f35a04851609e0dc5433450676ca6b8543",
    "ind.cora.ally": "2b998f5cc7fedc86e7f97ca2498f47a1ffc1462c29e2d578b23bf3f62b6e7d71",
    "ind.cora.graph": "58f13302f39dde8852dad6fe6d15b89b077b6d7f837626bce671ef80344b383d",
    "ind.cora.test.index": "297ce89af2b51a6a194181c7dbe1796c6a1cf9cd9349a88383b1b1e227867875",
    "ind.cora.tx": "b9afbaa4a400df991f6f02ef677e1e44da55ffc04801fd02f9e673987829226a",
    "ind.cora.ty": "41f5ac76596a1699cc33f53084a2419e92961c42bb75f36fc38e616d348532ad",
    "ind.cora.x": "23cfa55d91c6f624233f5eb7b6e3f141f1bd2b2ae39608a63cf5d084bb27baab",
    "ind.cora.y": "94465c14eb53e04ca262198dcbb2521ee8af60fb3f3d546cd6ca24a511b0e7d1",
}


def copy_official(source: Path, target: Path) -> None:
    """Copy a pickled raw file if it is the official one, so that what is checked is what the loader reads.

    Arguments:
        source: The raw file.
        target: Where the loader will read it; must not exist.
    """
    content = source.read_bytes()
    if hashlib.sha256(content).hexdigest() != SHA256.get(source.name):
        raise GraphError(
            f"{source} is not the official file (its checksum is not known), and its loader would run code from it: "
            "put the official file there"
        )
    with target.open("xb") as file:
        file.write(content)


def is_pickled(name: str) -> bool:
    """Whether the loader of a raw file of this name unpickles it.

    Example:
        >>> is_pickled("ind.cora.x"), is_pickled("DE.npz")
        (True, False)
    """
    return name.startswith(PICKLED)
