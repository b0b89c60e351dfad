"""Detectors: one file (or folder) a method. Add yours with one line in ``registry.py``."""

from degem.detectors.base import Detector as Detector
from degem.detectors.base import Scored as Scored
from degem.detectors.registry import METHODS, named

_HOMES = {home.rpartition(".")[2]: home for home in METHODS.values()}


def __getattr__(name: str) -> type[Detector]:
    """A method's class, imported now: none waits for the libraries of another."""
    if name not in _HOMES:
        raise AttributeError(f"module 'degem.detectors' has no attribute {name!r}")
    return named(_HOMES[name])


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
