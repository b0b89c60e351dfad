"""Waves stand for a Gaussian kernel, and are bounded."""

import torch

from degem.nn.degem import WaveClassifier


def test_products_of_waves_are_the_kernel() -> None:
    torch.manual_seed(0)
    classifier = WaveClassifier(3, 2, num_waves=20_000, bandwidth=1.5)
    points = torch.randn(6, 3)
    waves = classifier.waves(points)
    kernel = torch.exp(-torch.cdist(points, points).square() / (2 * 1.5**2))
    torch.testing.assert_close(waves @ waves.T, kernel, atol=0.04, rtol=0)


def test_far_points_are_no_surer_than_the_weights_allow() -> None:
    torch.manual_seed(0)
    classifier = WaveClassifier(3, 2)
    most = classifier.linear.weight.abs().sum(dim=1) * (2 / 128) ** 0.5 + classifier.linear.bias.abs()
    assert (classifier(1e6 * torch.randn(50, 3)).abs() <= most + 1e-4).all()
