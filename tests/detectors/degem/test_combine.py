"""How the energies of DeGEM's terms are put together."""

import math

import pytest
import torch

from degem.detectors.degem.combine import TAIL, Tail, combine, log_tails

NEEDS = torch.tensor([False, True, True])


def known(count: int = 2000) -> torch.Tensor:
    return torch.randn(count, 3, generator=torch.Generator().manual_seed(0))


def at(value: float) -> torch.Tensor:
    return torch.full((1, 3), value)


def test_on_known_nodes_every_term_is_exponential_with_mean_one() -> None:
    tails = log_tails(known() * torch.tensor([1.0, 5.0, 100.0]), Tail.of(known() * torch.tensor([1.0, 5.0, 100.0])))
    torch.testing.assert_close(tails.mean(dim=0), torch.ones(3), rtol=0, atol=0.05)
    for level in (0.5, 0.9, 0.99):
        expected = torch.full((3,), -math.log(1 - level))
        torch.testing.assert_close(tails.quantile(level, dim=0), expected, rtol=0.15, atol=0)


def test_a_tail_probability_is_the_share_of_known_nodes_above() -> None:
    energies = known()
    for value in (-1.0, 0.0, 0.9):
        share = (energies >= value).float().mean(dim=0)
        found = torch.exp(-log_tails(at(value), Tail.of(energies)))[0]
        torch.testing.assert_close(found, share, rtol=0, atol=0.01)


def test_higher_energy_is_a_higher_score_in_every_term() -> None:
    tail = Tail.of(known())
    for term in range(3):
        energies = torch.zeros(50, 3)
        energies[:, term] = torch.linspace(-2.5, 30.0, 50)
        assert (combine(energies, tail, NEEDS, torch.zeros(50, dtype=torch.bool), torch.zeros(())).diff() > 0).all()


def test_equal_energies_are_no_evidence() -> None:
    tail = Tail.of(torch.ones(40, 3))
    assert torch.isfinite(log_tails(at(1.0), tail)).all()
    assert (log_tails(at(2.0), tail) > log_tails(at(1.0), tail)).all()


def test_a_few_nodes_are_enough_for_finite_tails() -> None:
    for count in (1, 2, 5):
        assert torch.isfinite(log_tails(at(3.0), Tail.of(known(count)))).all()


def test_beyond_the_last_quantile_the_tail_is_exponential() -> None:
    tail = Tail.of(known())
    last, excess = tail.quantiles[:, -1], tail.mean_excess
    for steps in (0.0, 1.0, 7.0):
        found = log_tails((last + steps * excess)[None], tail)[0]
        torch.testing.assert_close(found, torch.full((3,), steps - math.log(TAIL)), rtol=1e-4, atol=1e-4)


def test_gradients_reach_the_energies() -> None:
    energies = torch.tensor([[0.3, 0.5, 9.0]], requires_grad=True)
    log_tails(energies, Tail.of(known())).sum().backward()
    assert energies.grad is not None
    assert (energies.grad > 0).all()


@pytest.mark.parametrize(("rarity", "counted"), [(0.5, 2.0), (6.0, 6.0)])
def test_of_isolated_nodes_their_rarity_counts_and_at_least_what_usual_neighbours_would(
    rarity: float, counted: float
) -> None:
    energies, tail = known(10), Tail.of(known())
    scores = combine(energies, tail, NEEDS, torch.ones(10, dtype=torch.bool), torch.tensor(rarity))
    torch.testing.assert_close(scores, log_tails(energies, tail)[:, 0] + counted)
