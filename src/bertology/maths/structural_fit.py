"""Fitting many structural probes at once, each with its own rate, best epoch and end (see `structural_probe`).

Probes of different layers, kinds, ranks and seeds see the same batches and do not touch each other: fitted alone, each
comes out the same. A probe that has stopped is no longer computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.optim.adam import adam

from bertology.maths.structural_probe import Member, Probes, gradients, initial, losses
from bertology.maths.tree_batch import TreeBatch

DECAYS = (0.9, 0.999)
TINY = 1e-8
BETTER = 1e-4
"""A loss that is lower by less does not make a new best epoch."""

IN_A_ROW = 16
"""So many batches are gone through with one layer before the next: its weights and moments stay in the cache."""

PATIENCE = 4
SLOWER = 0.1
FURTHER = 2.0
"""All epochs after a cut of the rate, at a tenth and less, move the loss no further than so many times the last."""


@dataclass(frozen=True)
class Schedule:
    """How probes are fitted: the rate is cut to a tenth after an epoch without a new lowest held-out loss.

    A probe ends when its best epoch is more than four epochs old, or before that when it is clear that this epoch stays
    the best: the rate was cut and the loss is above its best by more than twice what the losses of held-out sentences
    moved in the last epoch, in the mean. With `fresh` the moments of Adam are forgotten when the rate is cut, as the
    paper does; the released code keeps them.
    """

    epochs: int = 40
    rate: float = 1e-3
    fresh: bool = True
    seed: int = 0


def fit(
    batches: Sequence[TreeBatch],
    held_out: Sequence[TreeBatch],
    members: Sequence[Member],
    schedule: Schedule,
    *,
    at_once: int = 0,
) -> Probes:
    """Fit all members in all layers; the weights kept are those of the epoch with the lowest held-out loss.

    So many layers are computed `at_once`; 0 leaves it to the device, the probes are the same.
    """
    first = batches[0].states
    weights = initial(members, len(first), first.shape[-1]).to(first.device)
    # A processor's cache holds the weights and moments of a layer, not of all; an accelerator wants them all at once.
    at_once = at_once or (1 if first.device.type == "cpu" else len(first))
    runs = [_Run(part, members, schedule, at_once * number) for number, part in enumerate(weights.split(at_once))]
    generator = torch.Generator().manual_seed(schedule.seed)
    for epoch in range(schedule.epochs):
        going = [run for run in runs if run.layers]
        if not going:
            break
        for places in torch.randperm(len(batches), generator=generator).split(IN_A_ROW):
            _gone_through(going, [batches[place] for place in places.tolist()])
        for run, found in zip(going, _judged(going, held_out), strict=True):
            run.judge(epoch, found)
    best, lowest, epochs = (
        torch.cat([getattr(run, name) for run in runs]) for name in ("best", "lowest", "best_epoch")
    )
    return Probes(tuple(members), best.transpose(1, 2).contiguous(), lowest, epochs + 1)


@torch.inference_mode()
def _gone_through(runs: Sequence[_Run], batches: Sequence[TreeBatch]) -> None:
    """A step of every run for each batch."""
    for run in runs:
        for batch in batches:
            run.step(run.part_of(batch))


@torch.inference_mode()
def _judged(runs: Sequence[_Run], held_out: Sequence[TreeBatch]) -> list[Tensor]:
    """For each run, (layer, member, sentence) losses of the held-out sentences."""
    found: list[list[Tensor]] = [[] for _ in runs]
    for batch in held_out:
        for run, own in zip(runs, found, strict=True):
            own.append(losses(run.weights.transpose(1, 2), run.current, run.part_of(batch)))
    return [torch.cat(own, -1).cpu() for own in found]


@dataclass(frozen=True)
class _Paced:
    """Probes that go on at one rate: their places among all at hand, weights, moments and counts of steps."""

    rate: float
    places: list[int]
    weights: list[Tensor]
    moments: tuple[list[Tensor], list[Tensor]]
    steps: list[Tensor]

    def step(self, slopes: Sequence[Tensor]) -> None:
        """One step of Adam down these slopes of all at hand."""
        adam(
            self.weights,
            [slopes[place] for place in self.places],
            *self.moments,
            [],
            self.steps,
            fused=True,
            amsgrad=False,
            beta1=DECAYS[0],
            beta2=DECAYS[1],
            lr=self.rate,
            weight_decay=0.0,
            eps=TINY,
            maximize=False,
        )


class _Run:
    """The state of a fit of some layers: what is still being fitted, and the best of everything so far.

    Weights, moments and the best are (layer, column, width): each probe has its own block. Rates, epochs and losses are
    small and stay with the processor, wherever the weights are.
    """

    def __init__(self, weights: Tensor, members: Sequence[Member], schedule: Schedule, first: int) -> None:
        """`weights` are (layer, width, column), `first` is the first of the layers in the batches."""
        self.schedule = schedule
        self.first = first
        self.layers = list(range(len(weights)))
        self.members = list(range(len(members)))
        self.current = tuple(members)
        self.weights = weights.transpose(1, 2).contiguous()
        self.moments = torch.zeros_like(self.weights), torch.zeros_like(self.weights)
        self.best = self.weights.clone()
        self.best_of = _blocks(self.best, members)
        shape = len(weights), len(members)
        self.steps = torch.zeros(shape, device=weights.device)
        self.rates = torch.full(shape, schedule.rate, dtype=torch.float64)
        self.lowest = torch.full(shape, torch.inf)
        self.best_epoch = torch.zeros(shape, dtype=torch.long)
        self.said = torch.tensor(torch.inf)
        self._point(torch.ones(shape, dtype=torch.bool))

    def part_of(self, batch: TreeBatch) -> TreeBatch:
        """The batch with the layers that are still being fitted."""
        return batch.of_layers([self.first + layer for layer in self.layers])

    def step(self, batch: TreeBatch) -> None:
        """One step of Adam, each probe at its own rate and with its own count of steps."""
        slopes = gradients(self.weights.transpose(1, 2), self.current, batch).transpose(1, 2)
        blocks = _blocks(slopes, self.current)
        for paced in self.paced:
            paced.step(blocks)

    def judge(self, epoch: int, found: Tensor) -> None:
        """Keep what is better than before, slow down what is not, and leave what has not been for long.

        `found` is (layer, member, sentence) the losses of held-out sentences.
        """
        moved, self.said, found = (found - self.said).abs().mean(-1), found, found.mean(-1)
        lowest, best_epoch, rates = self.lowest[self.here], self.best_epoch[self.here], self.rates[self.here]
        worse, better = ~(found < lowest), found < lowest - BETTER
        hopeless = worse & (found - FURTHER * moved > lowest - BETTER)
        best_epoch = torch.where(better, epoch, best_epoch)
        self.lowest[self.here] = torch.where(better, found, lowest)
        self.best_epoch[self.here] = best_epoch
        self.rates[self.here] = torch.where(worse, rates * SLOWER, rates)
        self._keep(better)
        if self.schedule.fresh:
            self._forget(worse)
        last = epoch + 1 == self.schedule.epochs
        self._go_on_with(torch.zeros_like(worse) if last else (epoch - best_epoch <= PATIENCE) & ~hopeless)

    def _keep(self, better: Tensor) -> None:
        blocks = _blocks(self.weights, self.current)
        for place, block, new in zip(self._places(), blocks, better.flatten().tolist(), strict=True):
            if new:
                self.best_of[place].copy_(block)

    def _forget(self, worse: Tensor) -> None:
        self.steps.masked_fill_(worse.to(self.steps.device), 0)
        for moment in self.moments:
            for block, cut in zip(_blocks(moment, self.current), worse.flatten().tolist(), strict=True):
                if cut:
                    block.zero_()

    def _places(self) -> list[int]:
        """Where the probes at hand are among all."""
        return [layer * self.lowest.shape[1] + member for layer in self.layers for member in self.members]

    def _go_on_with(self, going: Tensor) -> None:
        """Drop layers and members that have nothing left to fit; a probe stopped alone is computed, and stays."""
        layers, members = ([place for place, on in enumerate(going.any(axis).tolist()) if on] for axis in (1, 0))
        if len(layers) < len(self.layers) or len(members) < len(self.members):
            self._keep_only(layers, members)
        self._point(going[layers][:, members])

    def _keep_only(self, layers: list[int], members: list[int]) -> None:
        """These of the layers and members at hand."""
        owner = [place for place, member in enumerate(self.current) for _ in range(member.rank)]
        columns = [column for column, place in enumerate(owner) if place in members]
        kept = (part[layers][:, columns].contiguous() for part in (self.weights, *self.moments))
        self.weights, *moments = kept
        self.moments = moments[0], moments[1]
        self.steps, self.said = (part[layers][:, members] for part in (self.steps, self.said))
        self.layers = [self.layers[place] for place in layers]
        self.members = [self.members[place] for place in members]
        self.current = tuple(self.current[place] for place in members)

    def _point(self, going: Tensor) -> None:
        """Where the layers and members at hand are among all, and at what rates those go on that do."""
        self.here = torch.tensor(self.layers, dtype=torch.long)[:, None], torch.tensor(self.members, dtype=torch.long)
        rates, on = self.rates[self.here].flatten().tolist(), going.flatten().tolist()
        weights, first, second = (_blocks(part, self.current) for part in (self.weights, *self.moments))
        steps = list(self.steps.flatten().unbind())
        self.paced: list[_Paced] = []
        for rate in sorted({rate for rate, goes in zip(rates, on, strict=True) if goes}):
            places = [place for place, goes in enumerate(on) if goes and rates[place] == rate]
            own, one, two, taken = ([part[place] for place in places] for part in (weights, first, second, steps))
            self.paced.append(_Paced(rate, places, own, (one, two), taken))


def _blocks(tensor: Tensor, members: Sequence[Member]) -> list[Tensor]:
    """(column, width) of each member in each layer, all of a layer together."""
    ranks = [member.rank for member in members]
    return [block for layer in tensor.unbind() for block in layer.split(ranks)]
