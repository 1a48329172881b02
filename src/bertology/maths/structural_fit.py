"""Fitting many structural probes at once, each with its own rate, best epoch and end (see `structural_probe`).

Probes of different layers, kinds, ranks and seeds see the same batches and do not touch each other: fitted alone, each
comes out the same. A probe that has stopped is no longer computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from bertology.maths.structural_probe import Member, Probes, TreeBatch, gradients, initial, losses

DECAYS = (0.9, 0.999)
TINY = 1e-8
BETTER = 1e-4
"""A loss that is lower by less does not make a new best epoch."""

IN_A_ROW = 16
"""So many batches are gone through with one layer before the next: its weights and moments stay in the cache."""

PATIENCE = 4
SLOWER = 0.1


@dataclass(frozen=True)
class Schedule:
    """How probes are fitted: the rate is cut to a tenth after an epoch without a new lowest held-out loss.

    A probe ends when its best epoch is more than four epochs old. With `fresh` the moments of Adam are forgotten when
    the rate is cut, as the paper does; the released code keeps them.
    """

    epochs: int = 40
    rate: float = 1e-3
    fresh: bool = True
    seed: int = 0


def fit(
    batches: Sequence[TreeBatch], held_out: Sequence[TreeBatch], members: Sequence[Member], schedule: Schedule
) -> Probes:
    """Fit all members in all layers; the weights kept are those of the epoch with the lowest held-out loss."""
    first = batches[0].states
    weights = initial(members, len(first), first.shape[-1]).to(first.device)
    # A processor's cache holds the weights and moments of a layer, not of all; an accelerator wants them all at once.
    at_once = 1 if first.device.type == "cpu" else len(first)
    runs = [_Run(part.clone(), members, schedule, at_once * n) for n, part in enumerate(weights.split(at_once))]
    generator = torch.Generator().manual_seed(schedule.seed)
    for epoch in range(schedule.epochs):
        going = [run for run in runs if run.layers]
        if not going:
            break
        for places in torch.randperm(len(batches), generator=generator).split(IN_A_ROW):
            some = [batches[place] for place in places.tolist()]
            for run in going:
                for batch in some:
                    run.step(run.part_of(batch))
        for run, found in zip(going, _judged(going, held_out), strict=True):
            run.judge(epoch, found)
    best, lowest, epochs = (
        torch.cat([getattr(run, name) for run in runs]) for name in ("best", "lowest", "best_epoch")
    )
    return Probes(tuple(members), best, lowest.cpu(), epochs.cpu() + 1)


def _judged(runs: Sequence[_Run], held_out: Sequence[TreeBatch]) -> list[Tensor]:
    """For each run, (layer, member) mean losses over the held-out sentences."""
    found = [torch.zeros(len(run.layers), len(run.members), device=run.weights.device) for run in runs]
    sentences = 0
    for batch in held_out:
        sentences += len(batch.sizes)
        for run, total in zip(runs, found, strict=True):
            total += losses(run.weights, run.current, run.part_of(batch))
    return [total / sentences for total in found]


class _Run:
    """The state of a fit of some layers: what is still being fitted, and the best of everything so far.

    Rates, counts of steps and losses are small and stay with the processor, wherever the weights are.
    """

    def __init__(self, weights: Tensor, members: Sequence[Member], schedule: Schedule, first: int) -> None:
        """`first` is the first of the layers in the batches."""
        self.schedule = schedule
        self.first = first
        self.all_members = tuple(members)
        self.layers = list(range(len(weights)))
        self.members = list(range(len(members)))
        self.weights = weights
        self.moments = torch.zeros_like(weights), torch.zeros_like(weights)
        shape = len(weights), len(members)
        self.rates = torch.full(shape, schedule.rate, dtype=torch.float64)
        self.steps = torch.zeros(shape, dtype=torch.float64)
        self.best = weights.clone()
        self.best_of_current = weights.clone()
        self.lowest = torch.full(shape, torch.inf)
        self.best_epoch = torch.zeros(shape, dtype=torch.long)
        self.current = list(members)
        self._point()

    def part_of(self, batch: TreeBatch) -> TreeBatch:
        """The batch with the layers that are still being fitted."""
        return batch.of_layers([self.first + layer for layer in self.layers])

    def step(self, batch: TreeBatch) -> None:
        """One step of Adam, each probe at its own rate and with its own count of steps."""
        gradient = gradients(self.weights, self.current, batch)
        first, second = self.moments
        first.lerp_(gradient, 1 - DECAYS[0])
        second.mul_(DECAYS[1]).addcmul_(gradient, gradient, value=1 - DECAYS[1])
        self.taken += 1
        spread = (1 - DECAYS[1] ** self.taken).sqrt()
        pace = self.paces * spread / (1 - DECAYS[0] ** self.taken)
        torch.sqrt(second, out=gradient)  # the gradient is used up
        torch.div(first, gradient.add_(self._by_column(TINY * spread)), out=gradient)
        self.weights.addcmul_(gradient, self._by_column(pace), value=-1)

    def judge(self, epoch: int, found: Tensor) -> None:
        """Keep what is better than before, slow down what is not, and leave what has not been for long."""
        here, found = self.here, found.cpu()
        self.steps[here] = self.taken
        lowest, best_epoch = self.lowest[here], self.best_epoch[here]
        worse = ~(found < lowest)
        better = found < lowest - BETTER
        torch.where(self._by_column(better) > 0, self.weights, self.best_of_current, out=self.best_of_current)
        self.lowest[here] = torch.where(better, found, lowest)
        best_epoch = torch.where(better, epoch, best_epoch)
        self.best_epoch[here] = best_epoch
        self.rates[here] = torch.where(worse, self.rates[here] * SLOWER, self.rates[here])
        if self.schedule.fresh:
            self.steps[here] = self.steps[here].masked_fill(worse, 0)
            for moment in self.moments:
                moment.mul_(self._by_column(~worse))
        last = epoch + 1 == self.schedule.epochs
        self._go_on_with(torch.zeros_like(worse) if last else epoch - best_epoch <= PATIENCE)

    def _go_on_with(self, going: Tensor) -> None:
        """Drop layers and members that have nothing left to fit; a probe stopped alone goes on without effect."""
        self.rates[self.here] = self.rates[self.here].masked_fill(~going, 0.0)
        layers, members = ([place for place, on in enumerate(going.any(axis).tolist()) if on] for axis in (1, 0))
        if len(layers) < len(self.layers) or len(members) < len(self.members):
            self._keep_only(layers, members)
        self._point()

    def _keep_only(self, layers: list[int], members: list[int]) -> None:
        """These of the layers and members at hand; the best of all is put where it stays."""
        everything = _columns(self.all_members, set(self.members))
        self.best[torch.tensor(self.layers)[:, None], :, torch.tensor(everything)] = self.best_of_current.transpose(
            1, 2
        )
        columns = _columns(self.current, set(members))
        kept = (self.weights, self.best_of_current, *self.moments)
        self.weights, self.best_of_current, *moments = (part[layers][:, :, columns] for part in kept)
        self.moments = moments[0], moments[1]
        self.layers = [self.layers[place] for place in layers]
        self.members = [self.members[place] for place in members]
        self.current = [self.current[place] for place in members]

    def _point(self) -> None:
        """Where the layers and members at hand are among all, what they have taken and at what rates they go on."""
        self.here = torch.tensor(self.layers, dtype=torch.long)[:, None], torch.tensor(self.members, dtype=torch.long)
        self.taken, self.paces = self.steps[self.here], self.rates[self.here]
        ranks = torch.tensor([member.rank for member in self.current], dtype=torch.long)
        self.owner = torch.arange(len(self.current)).repeat_interleave(ranks)

    def _by_column(self, values: Tensor) -> Tensor:
        """(layer, 1, column) where the weights are, from (layer, member)."""
        return values.float()[:, None, self.owner].to(self.weights.device)


def _columns(members: Sequence[Member], chosen: set[int]) -> list[int]:
    """The columns of the chosen members."""
    owner = [place for place, member in enumerate(members) for _ in range(member.rank)]
    return [column for column, place in enumerate(owner) if place in chosen]
