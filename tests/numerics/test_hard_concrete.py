"""Probabilities in closed form equal frequencies of samples, and gates reach 0 and 1 exactly."""

from __future__ import annotations

import math

import pytest
import torch

from bertology.numerics.hard_concrete import HardConcrete

GATES = HardConcrete()
LOCATIONS = [-3.0, -1.0, 0.0, 0.7, 2.5]
N_SAMPLES = 200_000


def sample_gates(location: float, gates: HardConcrete = GATES) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return gates.sample(torch.full((N_SAMPLES,), location, dtype=torch.float64), generator)


@pytest.mark.parametrize("location", LOCATIONS)
@pytest.mark.parametrize("gates", [GATES, HardConcrete(0.66, -0.3, 1.2)], ids=["voita", "other"])
def test_probabilities_equal_frequencies_of_samples(location: float, gates: HardConcrete) -> None:
    sampled = sample_gates(location, gates)
    at = torch.tensor(location)
    assert float((sampled > 0).double().mean()) == pytest.approx(float(gates.p_nonzero(at)), abs=0.005)
    assert float((sampled == 1).double().mean()) == pytest.approx(float(gates.p_one(at)), abs=0.005)


def test_expected_number_of_open_gates_is_the_sum_of_probabilities() -> None:
    locations = torch.tensor(LOCATIONS).repeat(N_SAMPLES // 10, 1)
    counted = (GATES.sample(locations, torch.Generator().manual_seed(1)) > 0).sum(1).double().mean()
    assert float(counted) == pytest.approx(float(GATES.p_nonzero(torch.tensor(LOCATIONS)).sum()), abs=0.02)


def test_probability_of_an_open_gate_at_location_zero() -> None:
    """sigmoid(-0.33 ln(0.1 / 1.1)) = 0.688: what the reference gives for locations around 0."""
    assert float(GATES.p_nonzero(torch.zeros(()))) == pytest.approx(1 / (1 + (0.1 / 1.1) ** 0.33), abs=1e-6)
    assert float(GATES.p_nonzero(torch.zeros(()))) == pytest.approx(0.69, abs=0.005)


def test_one_gate_by_hand() -> None:
    noise, location = 0.3, 0.4
    sigmoid = 1 / (1 + math.exp(-(math.log(noise) - math.log(1 - noise) + location) / 0.33))
    expected = min(1.0, max(0.0, sigmoid * 1.2 - 0.1))
    assert float(GATES.gates(torch.tensor(location), torch.tensor(noise))) == pytest.approx(expected, abs=1e-6)
    assert 0 < expected < 1


def test_gate_is_open_if_one_is_more_probable_than_zero() -> None:
    """With a symmetric stretch this is the sign of the location."""
    assert GATES.is_open(torch.tensor([-0.5, -0.01, 0.01, 0.5])).tolist() == [False, False, True, True]
    assert not bool(HardConcrete(zeta=1.01).is_open(torch.tensor(0.01)))


def test_gradient_of_gates_between_zero_and_one() -> None:
    location = torch.tensor([0.2, 8.0], requires_grad=True)
    GATES.gates(location, torch.tensor([0.45, 0.5])).sum().backward()
    assert location.grad is not None
    step = torch.tensor([1e-3, 0.0])
    noise = torch.tensor([0.45, 0.5])
    gradient = (
        GATES.gates(location.detach() + step, noise) - GATES.gates(location.detach() - step, noise)
    ).sum() / 2e-3
    assert float(location.grad[0]) == pytest.approx(float(gradient), rel=1e-2)
    assert float(location.grad[1]) == 0.0


def test_extreme_noise_gives_finite_gates() -> None:
    sampled = GATES.gates(torch.tensor([0.0, 0.0]), torch.tensor([1e-6, 1 - 1e-6]))
    assert sampled.tolist() == [0.0, 1.0]
