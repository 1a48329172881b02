"""Many independent minimisations at once by L-BFGS (Nocedal & Wright 2006, chapter 7): no BERT here.

Problems lie along two axes, (group, problem). Each has its own steps, its own history and its own end; a group whose
problems have all ended is computed no more, nor a problem that has ended in all groups.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

MEMORY = 10
SUFFICIENT = 1e-4
HALVINGS = 12
ROUNDING = 1e-7


class Seen(NamedTuple):
    """What an objective says of (group, problem, parameter): the loss, the loss that is watched, and the gradient.

    Both losses are (group, problem). Where nothing is held out the watched loss is the loss itself.
    """

    loss: Tensor
    watched: Tensor
    gradient: Tensor


class Which(NamedTuple):
    """The groups and the problems that are at work: places along the two axes."""

    groups: Tensor
    problems: Tensor


Objective = Callable[[Tensor, Which], Seen]
Precondition = Callable[[Tensor, Which], Tensor]


@dataclass(frozen=True)
class End:
    """When a problem ends: after so many `iterations`, or once every gradient is within the `tolerance`.

    With `patience` also once the watched loss has been above its best for so many iterations; the best then counts.
    """

    iterations: int = 100
    tolerance: float = 1e-4
    patience: int = 0


def minimise(objective: Objective, start: Tensor, end: End, precondition: Precondition | None = None) -> Tensor:
    """(group, problem, parameter) where each loss is least, or where the watched loss was.

    `objective` is given the parameters of some groups and problems, and which they are; `precondition` likewise, it
    returns an approximate inverse of the second derivative times what it is given.
    """
    state = _State(objective, start, end, precondition)
    for _ in range(end.iterations):
        if not state.advance():
            break
    return state.answer


class _Step(NamedTuple):
    """A step that was taken, how the gradient changed, one over their product, and the change preconditioned."""

    step: Tensor
    change: Tensor
    inverse: Tensor
    eased: Tensor | None


class _State:
    """The groups that are still at work, and the answers so far."""

    def __init__(self, objective: Objective, start: Tensor, end: End, precondition: Precondition | None) -> None:
        self.objective, self.end, self.precondition = objective, end, precondition
        self.which = Which(*(torch.arange(size, device=start.device) for size in start.shape[:2]))
        self.place = start.clone()
        self.seen = objective(self.place, self.which)
        self.answer = start.clone()
        self.best = self.seen.watched.clone()
        self.stale = torch.zeros_like(self.best)
        self.done = self._small()
        self.eased = self._conditioned()
        self.history: list[_Step] = []

    def advance(self) -> bool:
        """One step of every problem that has not ended; whether there was one."""
        if self.done.all():
            return False
        self._leave_out()
        step, seen, moved = self._searched(self._direction())
        change, before = seen.gradient - self.seen.gradient, self.eased
        # Near the end rounding hides what is gained; the gradient still tells.
        idle = (self.seen.loss - seen.loss <= ROUNDING * self.seen.loss.abs()) & (
            self._steepest(seen) >= self._steepest()
        )
        self.place = self.place + step
        self.seen = Seen(*(torch.where(_like(moved, new), new, old) for new, old in zip(seen, self.seen, strict=True)))
        self.eased = self._conditioned()
        self._remember(step, change, None if before is None or self.eased is None else self.eased - before)
        self.done |= ~moved | self._small() | idle
        self._keep_best()
        return True

    def _small(self) -> Tensor:
        return self._steepest() <= self.end.tolerance

    def _steepest(self, seen: Seen | None = None) -> Tensor:
        return (seen or self.seen).gradient.abs().amax(-1)

    def _leave_out(self) -> None:
        groups, problems = ~self.done.all(1), ~self.done.all(0)
        if groups.all() and problems.all():
            return
        self.which = Which(self.which.groups[groups], self.which.problems[problems])

        def left(values: Tensor) -> Tensor:
            return values[groups][:, problems]

        self.place, self.best, self.stale, self.done = map(left, (self.place, self.best, self.stale, self.done))
        self.seen = Seen(*map(left, self.seen))
        self.eased = None if self.eased is None else left(self.eased)
        self.history = [
            _Step(left(one.step), left(one.change), left(one.inverse), None if one.eased is None else left(one.eased))
            for one in self.history
        ]

    def _conditioned(self) -> Tensor | None:
        return None if self.precondition is None else self.precondition(self.seen.gradient, self.which)

    def _direction(self) -> Tensor:
        """Minus the gradient times the inverse second derivative that the history tells.

        What the preconditioner makes of it is had from what it made of each gradient: it is linear.
        """
        along = self.seen.gradient.clone()
        eased = None if self.eased is None else self.eased.clone()
        shares: list[Tensor] = []
        for past in reversed(self.history):
            share = (past.inverse * (past.step * along).sum(-1))[..., None]
            along.addcmul_(share, past.change, value=-1)
            if eased is not None and past.eased is not None:
                eased.addcmul_(share, past.eased, value=-1)
            shares.append(share)
        along = self._scaled(along if eased is None else eased)
        for past, share in zip(self.history, reversed(shares), strict=True):
            back = (past.inverse * (past.change * along).sum(-1))[..., None]
            along.addcmul_(share - back, past.step)
        return along.neg_()

    def _scaled(self, along: Tensor) -> Tensor:
        if not self.history:
            return (
                along if self.eased is not None else along / self.seen.gradient.abs().sum(-1, keepdim=True).clamp(1.0)
            )
        last = self.history[-1]
        other = last.change if last.eased is None else last.eased
        size = (last.step * last.change).sum(-1) / (last.change * other).sum(-1).clamp(min=1e-30)
        return along * torch.where(last.inverse > 0, size, torch.ones_like(size))[..., None]

    def _searched(self, direction: Tensor) -> tuple[Tensor, Seen, Tensor]:
        """The step of each problem, halved until its loss falls enough; and which problems moved at all."""
        slope = (direction * self.seen.gradient).sum(-1)
        uphill = slope >= 0
        if uphill.any():  # the history misleads: go down the gradient
            direction = torch.where(uphill[..., None], -self.seen.gradient, direction)
            slope = (direction * self.seen.gradient).sum(-1)
        length = torch.where(self.done, 0.0, torch.ones_like(slope))
        step = length[..., None] * direction
        seen = self.objective(self.place + step, self.which)
        for _ in range(HALVINGS):
            enough = self._enough(seen, length * slope) | self.done
            if enough.all():
                break
            length = torch.where(enough, length, length / 2)
            step = length[..., None] * direction
            seen = self.objective(self.place + step, self.which)
        moved = self._enough(seen, length * slope) & ~self.done
        return torch.where(moved[..., None], step, 0.0), seen, moved

    def _enough(self, seen: Seen, promised: Tensor) -> Tensor:
        return seen.loss <= self.seen.loss + SUFFICIENT * promised + ROUNDING * self.seen.loss.abs()

    def _remember(self, step: Tensor, change: Tensor, eased: Tensor | None) -> None:
        curved = (step * change).sum(-1)
        real = curved > 1e-10 * change.square().sum(-1)
        self.history.append(_Step(step, change, torch.where(real, 1 / curved.clamp(min=1e-30), 0.0), eased))
        del self.history[:-MEMORY]

    def _keep_best(self) -> None:
        if not self.end.patience:
            better = torch.ones_like(self.done)
        else:
            better = self.seen.watched < self.best
            self.stale = torch.where(better, torch.zeros_like(self.stale), self.stale + 1)
            self.done |= self.stale >= self.end.patience
            self.best = torch.minimum(self.best, self.seen.watched)
        places = self.which.groups[:, None], self.which.problems
        self.answer[places] = torch.where(better[..., None], self.place, self.answer[places])


def _like(mask: Tensor, other: Tensor) -> Tensor:
    return mask[..., None] if other.ndim > mask.ndim else mask
