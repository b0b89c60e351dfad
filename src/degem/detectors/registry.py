"""Which detectors there are: one line a method, which says where its class lives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from degem.detectors.base import Detector

METHODS = {
    "degem": "degem.detectors.degem.DeGEM",
    "energy": "degem.detectors.energy.Energy",
    "energy-ft": "degem.detectors.energy_ft.EnergyFT",
    "gkde": "degem.detectors.gkde.GKDE",
    "gnnsafe": "degem.detectors.gnnsafe.GNNSafe",
    "gnnsafe++": "degem.detectors.gnnsafe_pp.GNNSafePP",
    "gpn": "degem.detectors.gpn.GPN",
    "grasp": "degem.detectors.grasp.GRASP",
    "jlde": "degem.detectors.jlde.JLDE",
    "knn": "degem.detectors.knn.KNN",
    "mahalanobis": "degem.detectors.mahalanobis.Mahalanobis",
    "msp": "degem.detectors.msp.MSP",
    "nodesafe": "degem.detectors.nodesafe.NodeSafe",
    "odin": "degem.detectors.odin.ODIN",
    "oe": "degem.detectors.oe.OE",
    "oodgat": "degem.detectors.oodgat.OODGAT",
    "residualflow": "degem.detectors.residualflow.ResidualFlow",
    "degree": "degem.detectors.trivial.Degree",
    "nonzeros": "degem.detectors.trivial.NonZeros",
    "norm": "degem.detectors.trivial.Norm",
}


class Registry(MutableMapping[str, "type[Detector]"]):
    """Detectors by name. One that was not imported yet is imported when it is asked for: many need slow libraries.

    Arguments:
        homes: Where the class of each name lives.

    Example:
        >>> Registry({"msp": "degem.detectors.msp.MSP"})["msp"].__name__
        'MSP'
    """

    def __init__(self, homes: Mapping[str, str]) -> None:
        self.homes = homes
        self.known: dict[str, type[Detector]] = {}

    def __getitem__(self, name: str) -> type[Detector]:
        if name not in self.known:
            self.known[name] = named(self.homes[name])
        return self.known[name]

    def __setitem__(self, name: str, kind: type[Detector]) -> None:
        self.known[name] = kind

    def __delitem__(self, name: str) -> None:
        del self.known[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**self.homes, **self.known})

    def __contains__(self, name: object) -> bool:
        return name in self.homes or name in self.known  # without importing it

    def __len__(self) -> int:
        return len({**self.homes, **self.known})


def named(home: str) -> Any:
    """What ``package.module.name`` stands for."""
    module, _, name = home.rpartition(".")
    return getattr(import_module(module), name)
