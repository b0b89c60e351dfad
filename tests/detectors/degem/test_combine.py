"""How the energies of DeGEM's terms are put together."""

import dataclasses
import math

import pytest
import torch

from degem.detectors.degem.combine import TAIL, Combination, Tail, combine, log_tails

NEEDS = torch.tensor([False, True, True])
ONE_SIDED = torch.zeros(len(NEEDS))
ISOLATED, CONNECTED = (torch.full((50,), alone) for alone in (True, False))


def weigh(spreads: torch.Tensor) -> torch.Tensor:
    """The first term from 1 to 3, the second up to 1, by how far they spread; the third half."""
    return torch.stack([spreads[0].clamp(1.0, 3.0), spreads[1].clamp(max=1.0), torch.tensor(0.5)])


def fitted(energies: torch.Tensor, share_isolated: float = 0.01) -> Combination:
    return Combination.of(
        energies, torch.zeros(len(energies), dtype=torch.bool), NEEDS, ONE_SIDED, weigh, share_isolated
    )


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
    for term in range(3):
        energies = torch.zeros(50, 3)
        energies[:, term] = torch.linspace(-2.5, 30.0, 50)
        assert (combine(energies, CONNECTED, NEEDS, fitted(known())).diff() > 0).all()


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


@pytest.mark.parametrize("share", [0.5, 0.2, 0.01])
def test_an_isolated_node_is_as_strange_as_such_nodes_are_rare(share: float) -> None:
    known_around, unknown_own = known(), torch.full((2000, 1), -9.0)  # own features that say nothing
    energies = torch.cat([unknown_own, known_around[:, 1:]], dim=1)
    combination = fitted(known(), share)
    around = combine(energies, torch.zeros(2000, dtype=torch.bool), NEEDS, combination)
    alone = combine(energies[:50], ISOLATED, NEEDS, combination)
    assert (around > alone[0]).float().mean().item() == pytest.approx(share, rel=0.5, abs=0.01)


def test_of_an_isolated_node_only_its_own_features_are_looked_at() -> None:
    energies, combination = known(50), fitted(known())
    moved = energies + torch.tensor([0.0, 50.0, 50.0])
    torch.testing.assert_close(
        combine(energies, ISOLATED, NEEDS, combination), combine(moved, ISOLATED, NEEDS, combination)
    )
    assert (combine(moved, CONNECTED, NEEDS, combination) > combine(energies, CONNECTED, NEEDS, combination)).all()


def test_isolated_nodes_do_not_shape_the_tails_of_terms_that_need_neighbours() -> None:
    energies, isolated = known(), torch.arange(2000) < 500
    energies[:500] += 100.0
    with_them = Combination.of(energies, isolated, NEEDS, ONE_SIDED, weigh, 0.25)
    without = Combination.of(energies[500:], isolated[500:], NEEDS, ONE_SIDED, weigh, 0.25)
    torch.testing.assert_close(with_them.tail.quantiles[1:], without.tail.quantiles[1:])
    assert with_them.tail.quantiles[0, -1] > 50


def test_a_term_counts_by_how_far_it_spreads_within_bounds() -> None:
    spread = known() * torch.tensor([2.0, 0.1, 7.0])
    torch.testing.assert_close(fitted(spread).weights, torch.tensor([2.0, 0.1, 0.5]), rtol=0.1, atol=0)
    torch.testing.assert_close(fitted(100 * spread).weights, torch.tensor([3.0, 1.0, 0.5]))


def test_energies_that_are_too_low_count_by_their_odds() -> None:
    middle = Tail.of(torch.arange(1001.0)[:, None])
    both = dataclasses.replace(middle, low_odds=torch.tensor([0.5]))
    energies = torch.tensor([[20.0], [500.0], [980.0]])
    one_sided, two_sided = log_tails(energies, middle).flatten(), log_tails(energies, both).flatten()
    assert two_sided[0] == pytest.approx(-math.log(0.02) + math.log(0.5), abs=0.05)
    assert torch.equal(two_sided[1:], one_sided[1:])


def test_a_term_that_is_constant_does_not_drown_the_others() -> None:
    tail = Tail.of(torch.full((100, 1), 2.0))
    assert log_tails(torch.tensor([[2.5]]), tail).item() < 100
