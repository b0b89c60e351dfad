"""Where raw datasets are read, and where what is made from them is kept."""

from __future__ import annotations

import os
from pathlib import Path


def cache_root() -> Path:
    """The folder of everything degem may rebuild: ``$DEGEM_CACHE``, else ``~/.cache/degem``."""
    return Path(os.environ.get("DEGEM_CACHE") or Path.home() / ".cache" / "degem")


def data_root(data_dir: str | Path | None = None) -> Path:
    """The folder of raw datasets: ``data_dir``, else ``$DEGEM_DATA``, else ``raw`` in the cache.

    Example:
        >>> data_root("my/data").as_posix()
        'my/data'
    """
    chosen = data_dir or os.environ.get("DEGEM_DATA")
    return Path(chosen) if chosen else cache_root() / "raw"
