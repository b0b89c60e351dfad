"""Detectors: one file (or folder) a method. Add yours with one line in ``registry.py``."""

from typing import TYPE_CHECKING, Any

from degem.detectors.registry import METHODS, named

if TYPE_CHECKING:
    from degem.detectors.base import Detector as Detector
    from degem.detectors.base import ScoreResult as ScoreResult

# Imported when first asked for: no method waits for the libraries of another, nor the list of their names for torch.
_HOMES = {method.home.rpartition(".")[2]: method.home for method in METHODS.values()}
_HOMES |= {name: f"degem.detectors.base.{name}" for name in ("Detector", "ScoreResult")}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'degem.detectors' has no attribute {name!r}")
    return named(_HOMES[name])


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
