"""What a mixture promises: white residuals, finite energies, and a rise in every direction."""

import numpy as np
import pytest
from scipy.special import logsumexp

from degem.ops.estimates import fit_mixture


def clouds(per_class: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(3), per_class)
    return 3 * rng.standard_normal((3, 4))[labels] + rng.standard_normal((3 * per_class, 4)), labels


def energies_under(mixture, points: np.ndarray) -> np.ndarray:  # type: ignore[no-untyped-def]
    whitened = (points - mixture.mean) @ mixture.whitening
    distances = ((whitened[:, None] - mixture.centres[None]) ** 2).sum(axis=2)
    return -logsumexp(mixture.log_prior - distances / 2, axis=1)


def test_residuals_are_white() -> None:
    points, labels = clouds(2000, seed=1)
    mixture = fit_mixture(points, labels)
    residuals = (points - mixture.mean) @ mixture.whitening - mixture.centres[labels]
    np.testing.assert_allclose(np.cov(residuals.T), np.eye(4), atol=0.06)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_handful_of_points_gives_finite_energies(count: int) -> None:
    points = np.random.default_rng(3).standard_normal((count, 8))
    assert np.isfinite(energies_under(fit_mixture(points, np.arange(count)), points)).all()


def test_energy_rises_in_every_direction() -> None:
    points, labels = clouds(30, seed=4)
    mixture = fit_mixture(points, labels)
    directions = np.random.default_rng(5).standard_normal((50, 4))
    near, far = (energies_under(mixture, length * directions) for length in (30, 60))
    assert (far > near).all()
    assert near.min() > energies_under(mixture, points).max()
