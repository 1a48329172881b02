"""Chances in closed form are those of many draws, and gates reach both ends exactly."""

from __future__ import annotations

import math

import pytest
import torch

from bertology.maths.hard_concrete import HardConcrete

GATES = HardConcrete()
LOCATIONS = [-3.0, -1.0, 0.0, 0.7, 2.5]
DRAWS = 200_000


def drawn(location: float, gates: HardConcrete = GATES) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return gates.draw(torch.full((DRAWS,), location, dtype=torch.float64), generator)


@pytest.mark.parametrize("location", LOCATIONS)
@pytest.mark.parametrize("gates", [GATES, HardConcrete(0.66, -0.3, 1.2)], ids=["voita", "another"])
def test_the_chances_are_those_of_many_draws(location: float, gates: HardConcrete) -> None:
    found = drawn(location, gates)
    at = torch.tensor(location)
    assert float((found > 0).double().mean()) == pytest.approx(float(gates.chance_open(at)), abs=0.005)
    assert float((found == 1).double().mean()) == pytest.approx(float(gates.chance_one(at)), abs=0.005)


def test_the_expected_number_of_open_gates_is_the_sum_of_chances() -> None:
    locations = torch.tensor(LOCATIONS).repeat(DRAWS // 10, 1)
    counted = (GATES.draw(locations, torch.Generator().manual_seed(1)) > 0).sum(1).double().mean()
    assert float(counted) == pytest.approx(float(GATES.chance_open(torch.tensor(LOCATIONS)).sum()), abs=0.02)


def test_at_zero_a_gate_is_open_seven_times_in_ten() -> None:
    """sigmoid(-0.33 ln(0.1 / 1.1)) = 0.688: what the reference gives for locations around 0."""
    assert float(GATES.chance_open(torch.zeros(()))) == pytest.approx(1 / (1 + (0.1 / 1.1) ** 0.33), abs=1e-6)
    assert float(GATES.chance_open(torch.zeros(()))) == pytest.approx(0.69, abs=0.005)


def test_the_stretch_written_out_for_one_gate() -> None:
    noise, location = 0.3, 0.4
    share = 1 / (1 + math.exp(-(math.log(noise) - math.log(1 - noise) + location) / 0.33))
    expected = min(1.0, max(0.0, share * 1.2 - 0.1))
    assert float(GATES.at(torch.tensor(location), torch.tensor(noise))) == pytest.approx(expected, abs=1e-6)
    assert 0 < expected < 1


def test_settled_gates_have_no_noise_and_reach_both_ends() -> None:
    found = GATES.settled(torch.tensor([-4.0, 0.0, 4.0]))
    torch.testing.assert_close(found, torch.tensor([0.0, 0.5, 1.0]))


def test_a_gate_is_kept_where_one_is_likelier_than_zero() -> None:
    """With ends that lie alike beyond 0 and 1, that is where the location is positive."""
    assert GATES.kept(torch.tensor([-0.5, -0.01, 0.01, 0.5])).tolist() == [False, False, True, True]
    assert not bool(HardConcrete(zeta=1.01).kept(torch.tensor(0.01)))


def test_gradients_reach_gates_that_are_between_the_ends() -> None:
    location = torch.tensor([0.2, 8.0], requires_grad=True)
    GATES.at(location, torch.tensor([0.45, 0.5])).sum().backward()
    assert location.grad is not None
    step = torch.tensor([1e-3, 0.0])
    noise = torch.tensor([0.45, 0.5])
    slope = (GATES.at(location.detach() + step, noise) - GATES.at(location.detach() - step, noise)).sum() / 2e-3
    assert float(location.grad[0]) == pytest.approx(float(slope), rel=1e-2)
    assert float(location.grad[1]) == 0.0


def test_noise_at_the_ends_makes_numbers() -> None:
    found = GATES.at(torch.tensor([0.0, 0.0]), torch.tensor([1e-6, 1 - 1e-6]))
    assert found.tolist() == [0.0, 1.0]
