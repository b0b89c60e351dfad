"""Detectors: one file (or folder) a method. Add yours with one line in ``registry.py``."""

from typing import TYPE_CHECKING, Any

from degem.detectors.registry import METHODS, named

if TYPE_CHECKING:
    from degem.detectors.base import Detector as Detector
    from degem.detectors.base import ScoreResult as ScoreResult

# Imported when first asked for: no method waits for the libraries of another, nor the list of their names for torch.
_IMPORT_PATHS = {method.import_path.rpartition(".")[2]: method.import_path for method in METHODS.values()}
_IMPORT_PATHS |= {name: f"degem.detectors.base.{name}" for name in ("Detector", "ScoreResult")}


def __getattr__(name: str) -> Any:
    if name not in _IMPORT_PATHS:
        raise AttributeError(f"module 'degem.detectors' has no attribute {name!r}")
    return named(_IMPORT_PATHS[name])


def __dir__() -> list[str]:
    return sorted({*globals(), *_IMPORT_PATHS})
