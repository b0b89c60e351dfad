"""DeGEM's energy of latents on the penultimate layer of a classifier."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from degem.detectors.backbone import BackboneDetector, Layers
from degem.detectors.degem.energies.latent import HeadSettings, LatentEnergy
from degem.detectors.restoring import restored
from degem.detectors.split import TrainingSet
from degem.graph import Graph
from degem.model_file import tensor_of
from degem.threads import one_thread
from degem.training import seeded


@dataclass(kw_only=True, eq=False)
class LatentEBM(BackboneDetector):
    r"""The energy that DeGEM learns of its own latents, learnt of those of a classifier (Chen et al. 2025).

    A mixture of one Gaussian a class plus a head trained by maximum likelihood with Langevin sampling, see
    :class:`~degem.detectors.degem.energies.latent.LatentEnergy`: for a network of your own, see :func:`degem.wrap`.

    Arguments: those of :class:`~degem.detectors.backbone.GCNDetector`.
    """

    reads_logits = False
    name = "latent-ebm"

    def _read(self, training: TrainingSet) -> None:
        nodes = training.labelled_nodes
        latents = self._layers(training.graph).hidden[-1][torch.from_numpy(nodes).to(self.device)]
        generator = torch.Generator(self.device).manual_seed(self.seed)
        with one_thread():
            self.energy_ = self._new_energy(training.num_classes)
            self.energy_.fit_latents(latents, training.graph.labels[nodes], generator)

    @torch.no_grad()
    def _score_layers(self, layers: Layers, graph: Graph) -> Tensor:
        return self.energy_.energy_of(layers.hidden[-1])

    def _state(self) -> dict[str, Tensor]:
        return {**super()._state(), **{f"energy.{name}": value for name, value in self.energy_.state_dict().items()}}

    def _restore(self, state: dict[str, Tensor]) -> None:
        super()._restore(state)
        classes = len(tensor_of(state, "energy.energy.centres", torch.float32, None, self.latent_dim_))
        self.energy_ = restored(self, lambda: self._new_energy(classes), state, "energy.")

    def _new_energy(self, num_classes: int) -> LatentEnergy:
        with seeded(self.seed):
            return LatentEnergy(self.latent_dim_, num_classes, HeadSettings()).to(self.device)
