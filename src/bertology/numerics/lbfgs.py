"""L-BFGS for many independent problems at once (Nocedal & Wright 2006, chapter 7).

Problems are arranged along two axes, (group, problem). Each has its own step size, history and stopping point. Groups
whose problems have all converged, and problems that have converged in all groups, are no longer evaluated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from bertology.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor

MEMORY = 10
SUFFICIENT_DECREASE = 1e-4
MAX_HALVINGS = 12
ROUNDING = 1e-7


class LossAndGradient(NamedTuple):
    """Loss, validation loss, both (group, problem), and (group, problem, parameter) gradient.

    Without validation examples the validation loss is the loss itself.
    """

    loss: Tensor
    validation_loss: Tensor
    gradient: Tensor


class ActiveProblems(NamedTuple):
    """Indices of the groups and problems that have not converged."""

    groups: Tensor
    problems: Tensor


LossFunction = Callable[["Tensor", ActiveProblems], LossAndGradient]
Preconditioner = Callable[["Tensor", ActiveProblems], "Tensor"]


@dataclass(frozen=True)
class StoppingRule:
    """When a problem stops: after `max_iterations`, or when no component of the gradient exceeds `tolerance`.

    With `patience` also when the validation loss has not improved for so many iterations; the best parameters are kept.
    """

    max_iterations: int = 100
    tolerance: float = 1e-4
    patience: int = 0


def minimise(
    objective: LossFunction, start: Tensor, stopping_rule: StoppingRule, preconditioner: Preconditioner | None = None
) -> Tensor:
    """(group, problem, parameter) minimum of each loss or, with `patience`, of each validation loss.

    `objective` takes the parameters of the active groups and problems, and their indices. `preconditioner` takes a
    gradient likewise, and multiplies it by an approximate inverse of the second derivative.
    """
    state = _LbfgsState(objective, start, stopping_rule, preconditioner)
    for _ in range(stopping_rule.max_iterations):
        if not state.advance():
            break
    return state.best_parameters


class _CurvaturePair(NamedTuple):
    """A step, the change of the gradient, 1 / their inner product, and the preconditioned change."""

    step: Tensor
    gradient_change: Tensor
    inverse: Tensor
    preconditioned: Tensor | None


class _LbfgsState:
    """The active problems, and the best parameters so far."""

    def __init__(
        self, objective: LossFunction, start: Tensor, stopping_rule: StoppingRule, preconditioner: Preconditioner | None
    ) -> None:
        self.objective, self.stopping_rule, self.preconditioner = objective, stopping_rule, preconditioner
        self.active = ActiveProblems(*(torch.arange(size, device=start.device) for size in start.shape[:2]))
        self.parameters = start.clone()
        self.current = objective(self.parameters, self.active)
        self.best_parameters = start.clone()
        self.best_loss = self.current.validation_loss.clone()
        self.iterations_since_best = torch.zeros_like(self.best_loss)
        self.done = self._is_converged()
        self.preconditioned_gradient = self._precondition()
        self.history: list[_CurvaturePair] = []

    def advance(self) -> bool:
        """Make one step of every active problem; false if there is none."""
        if self.done.all():
            return False
        self._drop_finished()
        step, trial, moved = self._line_search(self._direction())
        change, before = trial.gradient - self.current.gradient, self.preconditioned_gradient
        # Near the minimum rounding hides the decrease of the loss, but not that of the gradient.
        stalled = (self.current.loss - trial.loss <= ROUNDING * self.current.loss.abs()) & (
            self._max_gradient(trial) >= self._max_gradient()
        )
        self.parameters = self.parameters + step
        self.current = LossAndGradient(
            *(torch.where(_match_dims(moved, new), new, old) for new, old in zip(trial, self.current, strict=True))
        )
        self.preconditioned_gradient = self._precondition()
        after = self.preconditioned_gradient
        self._remember(step, change, None if before is None or after is None else after - before)
        self.done |= ~moved | self._is_converged() | stalled
        self._keep_best()
        return True

    def _is_converged(self) -> Tensor:
        return self._max_gradient() <= self.stopping_rule.tolerance

    def _max_gradient(self, evaluated: LossAndGradient | None = None) -> Tensor:
        return (evaluated or self.current).gradient.abs().amax(-1)

    def _drop_finished(self) -> None:
        groups, problems = ~self.done.all(1), ~self.done.all(0)
        if groups.all() and problems.all():
            return
        self.active = ActiveProblems(self.active.groups[groups], self.active.problems[problems])

        def select(values: Any) -> Any:
            return None if values is None else values[groups][:, problems]

        self.parameters, self.best_loss, self.iterations_since_best, self.done = map(
            select, (self.parameters, self.best_loss, self.iterations_since_best, self.done)
        )
        self.current = LossAndGradient(*map(select, self.current))
        self.preconditioned_gradient = select(self.preconditioned_gradient)
        self.history = [_CurvaturePair(*map(select, pair)) for pair in self.history]

    def _precondition(self) -> Tensor | None:
        return None if self.preconditioner is None else self.preconditioner(self.current.gradient, self.active)

    def _direction(self) -> Tensor:
        """Minus the gradient times the approximate inverse Hessian (two-loop recursion).

        The preconditioner is linear, so that the preconditioned direction follows from preconditioned gradients.
        """
        direction = self.current.gradient.clone()
        preconditioned = None if self.preconditioned_gradient is None else self.preconditioned_gradient.clone()
        coefficients: list[Tensor] = []
        for pair in reversed(self.history):
            coefficient = (pair.inverse * (pair.step * direction).sum(-1))[..., None]
            direction.addcmul_(coefficient, pair.gradient_change, value=-1)
            if preconditioned is not None and pair.preconditioned is not None:
                preconditioned.addcmul_(coefficient, pair.preconditioned, value=-1)
            coefficients.append(coefficient)
        direction = self._scale_direction(direction if preconditioned is None else preconditioned)
        for pair, coefficient in zip(self.history, reversed(coefficients), strict=True):
            back = (pair.inverse * (pair.gradient_change * direction).sum(-1))[..., None]
            direction.addcmul_(coefficient - back, pair.step)
        return direction.neg_()

    def _scale_direction(self, direction: Tensor) -> Tensor:
        if not self.history:
            size = self.current.gradient.abs().sum(-1, keepdim=True).clamp(1.0)
            return direction / size if self.preconditioner is None else direction
        last = self.history[-1]
        other = last.gradient_change if last.preconditioned is None else last.preconditioned
        size = (last.step * last.gradient_change).sum(-1) / (last.gradient_change * other).sum(-1).clamp(min=1e-30)
        return direction * torch.where(last.inverse > 0, size, torch.ones_like(size))[..., None]

    def _line_search(self, direction: Tensor) -> tuple[Tensor, LossAndGradient, Tensor]:
        """The step of each problem, halved until the loss decreases enough, and the mask of problems that moved."""
        slope = (direction * self.current.gradient).sum(-1)
        uphill = slope >= 0
        if uphill.any():  # not a descent direction: use the gradient
            direction = torch.where(uphill[..., None], -self.current.gradient, direction)
            slope = (direction * self.current.gradient).sum(-1)
        length = torch.where(self.done, 0.0, torch.ones_like(slope))
        step = length[..., None] * direction
        trial = self.objective(self.parameters + step, self.active)
        for _ in range(MAX_HALVINGS):
            enough = self._decreases_enough(trial, length * slope) | self.done
            if enough.all():
                break
            length = torch.where(enough, length, length / 2)
            step = length[..., None] * direction
            trial = self.objective(self.parameters + step, self.active)
        moved = self._decreases_enough(trial, length * slope) & ~self.done
        return torch.where(moved[..., None], step, 0.0), trial, moved

    def _decreases_enough(self, trial: LossAndGradient, expected_change: Tensor) -> Tensor:
        loss = self.current.loss
        return trial.loss <= loss + SUFFICIENT_DECREASE * expected_change + ROUNDING * loss.abs()

    def _remember(self, step: Tensor, gradient_change: Tensor, preconditioned: Tensor | None) -> None:
        inner_product = (step * gradient_change).sum(-1)
        is_positive = inner_product > 1e-10 * gradient_change.square().sum(-1)
        inverse = torch.where(is_positive, 1 / inner_product.clamp(min=1e-30), 0.0)
        self.history.append(_CurvaturePair(step, gradient_change, inverse, preconditioned))
        del self.history[:-MEMORY]

    def _keep_best(self) -> None:
        if not self.stopping_rule.patience:
            better = torch.ones_like(self.done)
        else:
            better = self.current.validation_loss < self.best_loss
            self.iterations_since_best = torch.where(
                better, torch.zeros_like(self.iterations_since_best), self.iterations_since_best + 1
            )
            self.done |= self.iterations_since_best >= self.stopping_rule.patience
            self.best_loss = torch.minimum(self.best_loss, self.current.validation_loss)
        indices = self.active.groups[:, None], self.active.problems
        self.best_parameters[indices] = torch.where(better[..., None], self.parameters, self.best_parameters[indices])


def _match_dims(mask: Tensor, values: Tensor) -> Tensor:
    return mask[..., None] if values.ndim > mask.ndim else mask
