"""Which detectors there are: one line a method, which says where its class lives and what it needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from functools import cached_property
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from degem.errors import ParameterError

if TYPE_CHECKING:
    from degem.detectors.base import Detector


class Listed(NamedTuple):
    """What there is to say of a method without loading it; a test holds it against the class itself.

    Arguments:
        import_path: Where its class lives.
        paper: The paper it is from.
        needs_labels: Whether it needs labelled nodes.
        needs_exposure: Whether it needs nodes known to be OOD.
    """

    import_path: str
    paper: str
    needs_labels: bool = True
    needs_exposure: bool = False


CONTROL = "a trivial control, for reading benchmarks"
NEAREST = "Ramaswamy et al. 2000"
METHODS = {
    "degem": Listed("degem.detectors.degem.DeGEM", "Chen et al. 2025", needs_labels=False),
    "degem-published": Listed("degem.detectors.degem_published.DeGEMPublished", "Chen et al. 2025", needs_labels=False),
    "energy": Listed("degem.detectors.logits.Energy", "Liu et al. 2020"),
    "energy-ft": Listed("degem.detectors.exposure.EnergyFT", "Liu et al. 2020", needs_exposure=True),
    "energydef": Listed("degem.detectors.energydef.EnergyDef", "Gong & Sun 2024", needs_labels=False),
    "gkde": Listed("degem.detectors.gkde.GKDE", "Zhao et al. 2020"),
    "gnnsafe": Listed("degem.detectors.logits.GNNSafe", "Wu et al. 2023"),
    "gnnsafe++": Listed("degem.detectors.exposure.GNNSafePP", "Wu et al. 2023", needs_exposure=True),
    "gold": Listed("degem.detectors.gold.GOLD", "Wang et al. 2025"),
    "gpn": Listed("degem.detectors.gpn.GPN", "Stadler et al. 2021"),
    "grasp": Listed("degem.detectors.logits.GRASP", "Ma et al. 2024"),
    "knn": Listed("degem.detectors.latents.KNN", "Sun et al. 2022"),
    "latent-ebm": Listed("degem.detectors.latent_ebm.LatentEBM", "Chen et al. 2025"),
    "mahalanobis": Listed("degem.detectors.latents.Mahalanobis", "Lee et al. 2018"),
    "msp": Listed("degem.detectors.logits.MSP", "Hendrycks & Gimpel 2017"),
    "nodesafe": Listed("degem.detectors.logits.NodeSafe", "Yang et al. 2025"),
    "odin": Listed("degem.detectors.odin.ODIN", "Liang et al. 2018"),
    "oe": Listed("degem.detectors.exposure.OE", "Hendrycks et al. 2019", needs_exposure=True),
    "oodgat": Listed("degem.detectors.oodgat.OODGAT", "Song & Wang 2022"),
    "residualflow": Listed("degem.detectors.residualflow.ResidualFlow", "Zisselman & Tamar 2020"),
    "rsl": Listed("degem.detectors.rsl.RSL", "Yang et al. 2025b", needs_labels=False),
    "iforest": Listed("degem.detectors.iforest.IForest", "Liu et al. 2008", needs_labels=False),
    "iforest-1hop": Listed("degem.detectors.iforest.IForestOneHop", "Liu et al. 2008", needs_labels=False),
    "ecod": Listed("degem.detectors.features.ECOD", "Li et al. 2022", needs_labels=False),
    "ecod-1hop": Listed("degem.detectors.features.ECODOneHop", "Li et al. 2022", needs_labels=False),
    "feature-knn": Listed("degem.detectors.features.FeatureKNN", NEAREST, needs_labels=False),
    "feature-knn-1hop": Listed("degem.detectors.features.FeatureKNNOneHop", NEAREST, needs_labels=False),
    "degree": Listed("degem.detectors.trivial.Degree", CONTROL, needs_labels=False),
    "nonzeros": Listed("degem.detectors.trivial.NonZeros", CONTROL, needs_labels=False),
    "norm": Listed("degem.detectors.trivial.Norm", CONTROL, needs_labels=False),
}


GROUP = "degem.detectors"


class Registry(MutableMapping[str, "type[Detector]"]):
    """Detectors by name, imported when first asked for: many need slow libraries.

    Beside those that are listed there are those of other packages: entry points of the group ``degem.detectors``, and
    any class by ``module:Class``.

    Arguments:
        listed: What there is to say of each name, above all where its class lives.

    Example:
        >>> Registry({"msp": METHODS["msp"]})["msp"].__name__
        'MSP'
        >>> Registry({})["degem.detectors.logits:MSP"].__name__
        'MSP'
    """

    def __init__(self, listed: Mapping[str, Listed]) -> None:
        self.listed = listed
        self._loaded: dict[str, type[Detector]] = {}

    @cached_property
    def plugins(self) -> dict[str, str]:
        """Where the detectors of other packages live, as ``module:Class``, by name."""
        return {found.name: found.value for found in entry_points(group=GROUP) if found.name not in self.listed}

    def __getitem__(self, name: str) -> type[Detector]:
        if name not in self._loaded:
            try:
                self._loaded[name] = self._load(name)
            except ParameterError as error:
                raise KeyError(str(error)) from error
        return self._loaded[name]

    def __setitem__(self, name: str, kind: type[Detector]) -> None:
        self._loaded[name] = kind

    def __delitem__(self, name: str) -> None:
        del self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**self.listed, **self.plugins, **self._loaded})

    def __contains__(self, name: object) -> bool:
        return name in self.listed or name in self._loaded or name in self.plugins  # without importing it

    def __len__(self) -> int:
        return len({**self.listed, **self.plugins, **self._loaded})

    def check(self, name: str) -> None:
        """Raise :class:`~degem.errors.ParameterError` where there is no such detector."""
        if name not in self.listed and name not in self._loaded:
            self._loaded[name] = self._load(name)

    def _load(self, name: str) -> type[Detector]:
        from degem.detectors.base import Detector

        if name in self.listed:
            return cast("type[Detector]", named(self.listed[name].import_path))
        module, colon, attribute = self.plugins.get(name, name).partition(":")
        if not colon:
            raise ParameterError(f"there is no method {name!r}: choose from {', '.join(sorted(self))}, or module:Class")
        try:
            kind = getattr(import_module(module), attribute)
        except (ImportError, AttributeError, ValueError) as error:
            raise ParameterError(f"method {name} cannot be loaded: {error}") from None
        if not (isinstance(kind, type) and issubclass(kind, Detector) and "name" in kind.__dict__):
            raise ParameterError(f"method {name} is not a subclass of degem.Detector that has a name")
        if name in self.plugins and kind.name != name:
            raise ParameterError(f"method {name} calls itself {kind.name}: give the entry point the same name")
        return kind


def named(import_path: str) -> Any:
    """What ``package.module.name`` stands for."""
    module, _, name = import_path.rpartition(".")
    return getattr(import_module(module), name)
