"""Mixtures against their definition, and leaving out against fitting again."""

import numpy as np
import pytest
from scipy.special import logsumexp

from degem.ops.density import NUM_KERNELS, fit_kernels, fit_mixture, mixture_energy, squared_distances


def clouds(per_class: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(3), per_class)
    return 3 * rng.standard_normal((3, 4))[labels] + rng.standard_normal((3 * per_class, 4)), labels


def energies_under(mixture, points: np.ndarray) -> np.ndarray:  # type: ignore[no-untyped-def]
    whitened = (points - mixture.middle) @ mixture.whitening
    distances = ((whitened[:, None] - mixture.centres[None]) ** 2).sum(axis=2)
    return -logsumexp(mixture.log_prior - distances / 2, axis=1)


def test_energy_is_the_mixture_written_out() -> None:
    points, labels = clouds(30, seed=0)
    mixture = fit_mixture(points, labels)
    whitened = (points - mixture.middle) @ mixture.whitening
    fast = mixture_energy(squared_distances(whitened, mixture.centres), mixture.log_prior)
    np.testing.assert_allclose(fast, energies_under(mixture, points), rtol=1e-6)


def test_residuals_are_white() -> None:
    points, labels = clouds(2000, seed=1)
    mixture = fit_mixture(points, labels)
    residuals = (points - mixture.middle) @ mixture.whitening - mixture.centres[labels]
    np.testing.assert_allclose(np.cov(residuals.T), np.eye(4), atol=0.06)


def test_left_out_energies_are_those_of_a_mixture_fitted_without_the_point() -> None:
    points, labels = clouds(40, seed=2)
    mixture = fit_mixture(points, labels)
    again = []
    for index in range(0, len(points), 7):
        others = np.arange(len(points)) != index
        again.append(energies_under(fit_mixture(points[others], labels[others]), points[index : index + 1])[0])
    np.testing.assert_allclose(mixture.left_out[::7], again, rtol=0.1, atol=0.15)
    assert mixture.left_out.mean() > energies_under(mixture, points).mean()


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_handful_of_points_gives_finite_energies(count: int) -> None:
    points = np.random.default_rng(3).standard_normal((count, 8))
    assert np.isfinite(fit_mixture(points, np.arange(count)).left_out).all()


def test_energy_rises_in_every_direction() -> None:
    points, labels = clouds(30, seed=4)
    mixture = fit_mixture(points, labels)
    directions = np.random.default_rng(5).standard_normal((50, 4))
    near, far = (energies_under(mixture, length * directions) for length in (30, 60))
    assert (far > near).all()
    assert near.min() > mixture.left_out.max()


def kernel_energies(mixture, values: np.ndarray) -> np.ndarray:  # type: ignore[no-untyped-def]
    return energies_under(mixture, values[:, None])


def test_kernels_see_that_nothing_lies_between_two_groups() -> None:
    rng = np.random.default_rng(6)
    groups = np.concatenate([rng.normal(-7, 0.2, 30), rng.normal(0, 0.5, 90)])
    kernels, gaussian = fit_kernels(groups), fit_mixture(groups[:, None])
    between = np.linspace(-4.5, -2.5, 5)
    assert kernel_energies(kernels, between).min() > np.quantile(kernels.left_out, 0.95)
    assert kernel_energies(gaussian, between).max() < np.quantile(gaussian.left_out, 0.75)  # one Gaussian does not


def test_left_out_kernels_are_those_fitted_without_the_number() -> None:
    values = np.sort(np.random.default_rng(7).normal(0, 1, NUM_KERNELS))
    kernels = fit_kernels(values)
    again = [kernel_energies(fit_kernels(np.delete(values, at)), values[at : at + 1])[0] for at in range(5, 60, 9)]
    np.testing.assert_allclose(kernels.left_out[5:60:9], again, atol=0.15)


@pytest.mark.parametrize("values", [[0.5], [0.5, 0.5, 0.5], [-7.0, 0.0]])
def test_kernels_of_a_handful_of_numbers_are_finite(values: list[float]) -> None:
    kernels = fit_kernels(np.array(values))
    assert np.isfinite(kernels.left_out).all()
    assert np.isfinite(kernel_energies(kernels, np.array([-100.0, 0.0, 100.0]))).all()
