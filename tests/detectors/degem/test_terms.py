"""How the terms of DeGEM's energy are put together."""

import math

import pytest
import torch

from degem.detectors.degem.terms import RARE, TERMS, TWO_SIDED, Scale, TermWeights, combine, energy_alone, rare_levels

LATENT, OWN, CONTRAST = (TERMS.index(name) for name in ("latent", "own", "contrast"))


def only(term: int) -> torch.Tensor:
    return torch.eye(len(TERMS))[term]


def known(count: int = 2000) -> torch.Tensor:
    return torch.rand(count, len(TERMS), generator=torch.Generator().manual_seed(0))


def at(value: float) -> torch.Tensor:
    return torch.full((1, len(TERMS)), value)


def test_the_critic_keeps_its_own_scale() -> None:
    scale = Scale.of(known())
    assert combine(at(3.0), scale, only(CONTRAST)).item() == pytest.approx(math.log(4))


def test_higher_energy_is_a_higher_score_in_every_term() -> None:
    scale = Scale.of(known())
    for term in range(len(TERMS)):
        low, middle, high = (combine(at(value), scale, only(term)).item() for value in (0.2, 0.5, 5.0))
        assert low < middle < high


def test_a_density_lower_than_training_nodes_have_counts_as_out() -> None:
    scale = Scale.of(known())
    typical, rare = (combine(at(value), scale, only(LATENT)).item() for value in (0.06, 0.001))
    assert rare > typical
    assert combine(at(0.001), scale, only(OWN)) < combine(at(0.06), scale, only(OWN))  # one-sided
    assert {TERMS[place] for place in TWO_SIDED.nonzero().flatten()} == {"latent", "near", "far"}


def test_a_few_nodes_cannot_show_that_an_energy_is_rare() -> None:
    few, many = (combine(at(-1.0), Scale.of(known(count)), only(LATENT)).item() for count in (12, 2000))
    assert few < many
    z = (-1.0 - Scale.of(known(5)).centre[LATENT]) / Scale.of(known(5)).width[LATENT]
    assert combine(at(-1.0), Scale.of(known(5)), only(LATENT)).item() == pytest.approx(-math.log1p(-z.item()))


def test_levels_fall_from_the_rare_one() -> None:
    levels = rare_levels()
    assert levels[-1] == pytest.approx(RARE)
    assert (levels.diff() > 0).all()


def test_weights_follow_homophily() -> None:
    weights = TermWeights(own=(1.0, 0.0))
    assert [weights.at(homophily)[OWN].item() for homophily in (0.0, 0.25, 1.0)] == [1.0, 0.75, 0.0]


def test_no_single_term_drowns_the_others() -> None:
    energies = torch.zeros(3, len(TERMS))
    energies[1, OWN] = 1e6
    energies[2] = 5.0
    flat = Scale(torch.zeros(len(TERMS)), torch.ones(len(TERMS)), torch.full((len(TERMS), len(rare_levels())), -1.0))
    scores = combine(energies, flat, torch.ones(len(TERMS)))
    assert scores[2] > scores[1] > scores[0]


def test_scale_is_robust() -> None:
    values = torch.randn(10_000, len(TERMS), generator=torch.Generator().manual_seed(0))
    values[:100] = 1e6
    scale = Scale.of(3 + 2 * values)
    assert scale.centre[LATENT].item() == pytest.approx(3, abs=0.1)
    assert scale.width[LATENT].item() == pytest.approx(2, abs=0.1)


@pytest.mark.parametrize("share", [0.01, 0.2])
def test_to_be_alone_is_as_strange_as_it_is_rare(share: float) -> None:
    energies, weights, scale = known(), only(LATENT), Scale.of(known())
    level = energy_alone(energies, share, scale, weights)
    assert (combine(energies, scale, weights) > level).float().mean().item() == pytest.approx(share, abs=0.002)
    assert energy_alone(energies, share, scale, only(OWN)) == 0  # a node's own features do not count here


def test_who_has_seen_none_or_nothing_else_cannot_say_how_strange_it_is() -> None:
    scale = Scale.of(known())
    assert energy_alone(known(), 0.0, scale, only(LATENT)).isinf()
    assert energy_alone(known()[:0], 0.1, scale, only(LATENT)).isinf()
