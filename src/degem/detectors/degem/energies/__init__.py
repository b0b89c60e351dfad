"""The terms of DeGEM's energy: one file each, one line each here."""

from __future__ import annotations

from collections.abc import Sequence

from degem.detectors.degem.energies.affinity import AffinityEnergy
from degem.detectors.degem.energies.base import EnergyTerm as EnergyTerm
from degem.detectors.degem.energies.base import TrainingRows as TrainingRows
from degem.detectors.degem.energies.classes import ClassEnergy
from degem.detectors.degem.energies.contrast import ContrastEnergy
from degem.detectors.degem.energies.degrees import DegreesEnergy
from degem.detectors.degem.energies.latent import HeadSettings, LatentEnergy
from degem.detectors.degem.energies.own import OwnEnergy
from degem.detectors.degem.energies.prototypes import PrototypeEnergy


def make_terms(
    *, hops: Sequence[int], width: int, latent_dim: int, num_classes: int, head: HeadSettings
) -> list[EnergyTerm]:
    """The terms of a model.

    Arguments:
        hops: The hops that are used.
        width: The number of projected feature columns.
        latent_dim: The size d of the latent.
        num_classes: The number of classes C; 0 without labels.
        head: How the energy head is trained.
    """
    terms: list[EnergyTerm] = [
        OwnEnergy(),
        AffinityEnergy(hops, width),
        ContrastEnergy(latent_dim),
        LatentEnergy(latent_dim, max(num_classes, 1), head),
        DegreesEnergy(),
    ]
    if num_classes > 1:
        terms += [PrototypeEnergy(width, num_classes), ClassEnergy(len(hops) * width, num_classes)]
    return terms
