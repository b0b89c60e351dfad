"""The paper's toy figure as a test: maximum likelihood recovers a density that class logits do not."""

from benchmarks import eight_gaussians as toy


def test_likelihood_energy_recovers_eight_gaussians_better_than_logits() -> None:
    truth = toy.density_on_grid(toy.true_energy)
    by_likelihood = toy.density_on_grid(toy.train_likelihood_energy(450, seed=0))
    by_logits = toy.density_on_grid(toy.train_logit_energy(250, seed=0))
    assert toy.total_variation(truth, by_likelihood) < 0.35
    assert toy.total_variation(truth, by_logits) > 0.8
