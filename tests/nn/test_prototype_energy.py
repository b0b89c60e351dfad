"""Energies around class prototypes, and each point without itself."""

import torch
from torch.nn import functional as F

from degem.nn.prototype_energy import CONCENTRATION, PrototypeEnergy


def _points() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    labels = torch.tensor([0, 1, 2, 0, 1, -1, 0, 1])
    return torch.randn(8, 5, generator=generator), labels, torch.randn(5, generator=generator)


def test_equals_its_formula() -> None:
    points, labels, centre = _points()
    energy = PrototypeEnergy(5, 3)
    energy.fit(points, labels, centre)
    seen = F.normalize(points - centre, dim=1)
    means = [seen[labels == c].mean(dim=0) for c in range(3)]
    cosines = torch.stack([F.cosine_similarity(seen, mean[None], dim=1) for mean in means], dim=1)
    torch.testing.assert_close(energy(points), -torch.logsumexp(CONCENTRATION * cosines, dim=1))


def test_a_left_out_energy_is_that_of_a_fit_without_the_point() -> None:
    points, labels, centre = _points()
    left_out = PrototypeEnergy(5, 3).fit(points, labels, centre)
    for row in (0, 4, 5):
        rest = torch.arange(len(points)) != row
        without = PrototypeEnergy(5, 3)
        without.fit(points[rest], labels[rest], centre)
        torch.testing.assert_close(left_out[row], without(points[row : row + 1])[0])


def test_the_only_point_of_a_class_is_not_its_own_prototype() -> None:
    points, labels, centre = _points()
    energy = PrototypeEnergy(5, 3)
    left_out = energy.fit(points, labels, centre)
    assert left_out[2] > energy(points)[2]
