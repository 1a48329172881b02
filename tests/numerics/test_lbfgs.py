"""Each problem reaches its own minimum, whatever the others do."""

from __future__ import annotations

import torch
from torch import Tensor

from bertology.numerics.lbfgs import ActiveProblems, LossAndGradient, LossFunction, StoppingRule, minimise


def quadratic(curvature: Tensor, centre: Tensor) -> LossFunction:
    """(group, problem, parameter) curvatures and centres of bowls."""

    def objective(place: Tensor, which: ActiveProblems) -> LossAndGradient:
        bend, middle = (part[which.groups][:, which.problems] for part in (curvature, centre))
        apart = place - middle
        loss = (bend * apart.square()).sum(-1) / 2
        return LossAndGradient(loss, loss, bend * apart)

    return objective


def test_bowls_of_very_different_steepness() -> None:
    generator = torch.Generator().manual_seed(0)
    curvature = torch.logspace(-1, 3, 24).view(2, 3, 4)
    centre = torch.randn(2, 3, 4, generator=generator)
    found = minimise(quadratic(curvature, centre), torch.zeros(2, 3, 4), StoppingRule(200, 1e-5))
    torch.testing.assert_close(found, centre, atol=1e-3, rtol=1e-3)


def test_the_valley_of_rosenbrock() -> None:
    def objective(place: Tensor, which: ActiveProblems) -> LossAndGradient:
        leaf = place.detach().requires_grad_()
        x, y = leaf.unbind(-1)
        loss = (1 - x) ** 2 + 100 * (y - x**2) ** 2
        (slope,) = torch.autograd.grad(loss.sum(), leaf)
        return LossAndGradient(loss.detach(), loss.detach(), slope)

    start = torch.tensor([[[-1.2, 1.0], [0.0, 0.0]], [[2.0, -1.0], [1.0, 1.0]]], dtype=torch.float64)
    found = minimise(objective, start, StoppingRule(300, 1e-7))
    torch.testing.assert_close(found, torch.ones_like(found), atol=1e-4, rtol=1e-4)


def test_what_is_watched_decides_where_a_problem_ends() -> None:
    def objective(place: Tensor, which: ActiveProblems) -> LossAndGradient:
        return LossAndGradient((place - 4).square().sum(-1), (place - 1).square().sum(-1), 2 * (place - 4))

    watched = minimise(objective, torch.zeros(1, 1, 1), StoppingRule(50, 1e-6, patience=3))
    unwatched = minimise(objective, torch.zeros(1, 1, 1), StoppingRule(50, 1e-6))
    assert abs(float(unwatched) - 4) < 1e-4
    assert abs(float(watched) - 1) <= 1


def test_a_preconditioner_changes_the_way_and_not_the_end() -> None:
    curvature, centre = torch.logspace(-2, 4, 6).view(1, 1, 6), torch.ones(1, 1, 6)
    steps: list[int] = []

    def counted(place: Tensor, which: ActiveProblems) -> LossAndGradient:
        steps.append(1)
        return quadratic(curvature, centre)(place, which)

    found = minimise(counted, torch.zeros(1, 1, 6), StoppingRule(300, 1e-6), lambda slope, which: slope / curvature)
    torch.testing.assert_close(found, centre, atol=1e-4, rtol=1e-4)
    assert len(steps) < 6
