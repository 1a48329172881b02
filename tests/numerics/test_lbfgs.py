"""Each problem reaches its minimum, whatever the others do."""

from __future__ import annotations

import torch
from torch import Tensor

from bertology.numerics.lbfgs import ActiveProblems, LossAndGradient, LossFunction, StoppingRule, minimise


def quadratic(curvature: Tensor, minimum: Tensor) -> LossFunction:
    """Quadratic losses with these (group, problem, parameter) curvatures and minima."""

    def objective(parameters: Tensor, active: ActiveProblems) -> LossAndGradient:
        scale, target = (tensor[active.groups][:, active.problems] for tensor in (curvature, minimum))
        difference = parameters - target
        loss = (scale * difference.square()).sum(-1) / 2
        return LossAndGradient(loss, loss, scale * difference)

    return objective


def test_quadratics_of_very_different_curvature() -> None:
    generator = torch.Generator().manual_seed(0)
    curvature = torch.logspace(-1, 3, 24).view(2, 3, 4)
    minimum = torch.randn(2, 3, 4, generator=generator)
    solution = minimise(quadratic(curvature, minimum), torch.zeros(2, 3, 4), StoppingRule(200, 1e-5))
    torch.testing.assert_close(solution, minimum, atol=1e-3, rtol=1e-3)


def test_the_rosenbrock_function() -> None:
    def objective(parameters: Tensor, active: ActiveProblems) -> LossAndGradient:
        leaf = parameters.detach().requires_grad_()
        x, y = leaf.unbind(-1)
        loss = (1 - x) ** 2 + 100 * (y - x**2) ** 2
        (gradient,) = torch.autograd.grad(loss.sum(), leaf)
        return LossAndGradient(loss.detach(), loss.detach(), gradient)

    start = torch.tensor([[[-1.2, 1.0], [0.0, 0.0]], [[2.0, -1.0], [1.0, 1.0]]], dtype=torch.float64)
    solution = minimise(objective, start, StoppingRule(300, 1e-7))
    torch.testing.assert_close(solution, torch.ones_like(solution), atol=1e-4, rtol=1e-4)


def test_with_patience_the_validation_loss_decides_where_a_problem_ends() -> None:
    def objective(parameters: Tensor, active: ActiveProblems) -> LossAndGradient:
        return LossAndGradient(
            (parameters - 4).square().sum(-1), (parameters - 1).square().sum(-1), 2 * (parameters - 4)
        )

    with_patience = minimise(objective, torch.zeros(1, 1, 1), StoppingRule(50, 1e-6, patience=3))
    without_patience = minimise(objective, torch.zeros(1, 1, 1), StoppingRule(50, 1e-6))
    assert abs(float(without_patience) - 4) < 1e-4
    assert abs(float(with_patience) - 1) <= 1


def test_with_patience_the_best_parameters_are_kept_although_later_ones_are_better_than_the_first() -> None:
    """The steps lead from 0 over 1 to 4; of these, 1 is nearest to 2.2 and 0 is farthest."""

    def objective(parameters: Tensor, active: ActiveProblems) -> LossAndGradient:
        return LossAndGradient(
            (parameters - 4).square().sum(-1), (parameters - 2.2).square().sum(-1), 2 * (parameters - 4)
        )

    assert float(minimise(objective, torch.zeros(1, 1, 1), StoppingRule(50, 1e-6, patience=3))) == 1.0


def test_a_preconditioner_changes_the_number_of_steps_but_not_the_minimum() -> None:
    curvature, minimum = torch.logspace(-2, 4, 6).view(1, 1, 6), torch.ones(1, 1, 6)
    steps: list[int] = []

    def counted(parameters: Tensor, active: ActiveProblems) -> LossAndGradient:
        steps.append(1)
        return quadratic(curvature, minimum)(parameters, active)

    solution = minimise(
        counted, torch.zeros(1, 1, 6), StoppingRule(300, 1e-6), lambda gradient, active: gradient / curvature
    )
    torch.testing.assert_close(solution, minimum, atol=1e-4, rtol=1e-4)
    assert len(steps) < 6


def test_preconditioning_is_a_change_of_variables() -> None:
    """Steps with the preconditioner D are those for x = D^(1/2) y without one, whatever the history."""
    generator = torch.Generator().manual_seed(1)
    root = torch.tensor([0.5, 2.0, 0.3, 1.2], dtype=torch.float64)
    factor = torch.randn(4, 4, generator=generator, dtype=torch.float64)
    curvature = factor @ factor.T + torch.eye(4, dtype=torch.float64)
    start = torch.full((1, 1, 4), 0.02, dtype=torch.float64)  # a small gradient: the first step is not shortened

    def objective(parameters: Tensor, active: ActiveProblems) -> LossAndGradient:
        loss = ((parameters @ curvature) * parameters).sum(-1) / 2 + parameters.square().square().sum(-1)
        return LossAndGradient(loss, loss, parameters @ curvature + 4 * parameters**3)

    def in_other_variables(parameters: Tensor, active: ActiveProblems) -> LossAndGradient:
        loss, validation_loss, gradient = objective(parameters * root, active)
        return LossAndGradient(loss, validation_loss, gradient * root)

    for steps in range(1, 7):
        rule = StoppingRule(steps, 0.0)
        solution = minimise(objective, start, rule, lambda gradient, active: gradient * root.square())
        expected = minimise(in_other_variables, start / root, rule) * root
        torch.testing.assert_close(solution, expected, rtol=1e-9, atol=1e-12)


def test_no_step_increases_a_small_loss() -> None:
    """Allowance is made for rounding in proportion to the loss: a step that overshoots is shortened."""
    curvature, minimum = torch.full((1, 1, 1), 1e-6), torch.zeros(1, 1, 1)
    start = torch.ones(1, 1, 1)
    solution = minimise(
        quadratic(curvature, minimum), start, StoppingRule(1, 0.0), lambda gradient, active: 3 * gradient / curvature
    )
    assert float(solution) == -0.5, "the step of -3 is halved once"
