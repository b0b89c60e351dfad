"""Know which nodes your graph model should not be trusted on."""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from degem.data.files import read_graph as read_graph
    from degem.data.outputs import wrap as wrap
    from degem.detectors import Detector as Detector
    from degem.detectors.degem import DeGEM as DeGEM
    from degem.graph import Graph as Graph
    from degem.graph import NodeSet as NodeSet

    __version__: str

# Where each public name lives. Imported when first asked for, so that `degem --help` does not wait for torch.
_IMPORT_PATHS = {
    "DeGEM": "degem.detectors.degem",
    "Detector": "degem.detectors",
    "Graph": "degem.graph",
    "NodeSet": "degem.graph",
    "read_graph": "degem.data.files",
    "wrap": "degem.data.outputs",
}
__all__ = sorted(_IMPORT_PATHS)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return version("degem")
    if name not in _IMPORT_PATHS:
        raise AttributeError(f"module 'degem' has no attribute {name!r}")
    return getattr(import_module(_IMPORT_PATHS[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_IMPORT_PATHS, "__version__"})
