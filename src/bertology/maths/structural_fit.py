"""Fitting many structural probes at once, each with its own rate, best epoch and end (see `structural_probe`).

Probes of different layers, kinds, ranks and seeds see the same batches and do not touch each other: fitted alone, each
comes out the same. A probe that has stopped is no longer computed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import torch
from torch import Tensor
from torch.optim.adam import adam

from bertology.maths.structural_probe import Member, Probes, gradients, initial, losses
from bertology.maths.tree_batch import TreeBatch, of_layers

DECAYS = (0.9, 0.999)
TINY = 1e-8
BETTER = 1e-4
"""A loss that is lower by less does not make a new best epoch."""

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
    # A processor's cache holds the weights and moments of a layer, not of all; an accelerator wants them all at once.
    at_once = at_once or (1 if first.device.type == "cpu" else len(first))
    runs: list[_Run] = []
    for start in range(0, len(first), at_once):
        chosen = range(len(first))[start : start + at_once]
        runs.append(_fitted(of_layers(batches, chosen), of_layers(held_out, chosen), members, schedule))
    best = torch.cat([run.best for run in runs])
    courses = [course for run in runs for course in run.courses]
    lowest = torch.tensor([course.lowest for course in courses]).view(len(first), -1)
    epochs = torch.tensor([course.best_epoch + 1 for course in courses]).view(len(first), -1)
    return Probes(tuple(members), best.transpose(1, 2).contiguous(), lowest, epochs)


def _fitted(
    batches: Sequence[TreeBatch], held_out: Sequence[TreeBatch], members: Sequence[Member], schedule: Schedule
) -> _Run:
    """All members in the layers of the batches."""
    first = batches[0].states
    run = _Run(initial(members, len(first), first.shape[-1]).to(first.device), members, schedule)
    generator = torch.Generator().manual_seed(schedule.seed)
    for epoch in range(schedule.epochs):
        if not run.layers:
            break
        places = torch.randperm(len(batches), generator=generator).tolist()
        run.go_through(batches[place] for place in places)
        run.judge(epoch, run.losses_on(held_out))
    return run


@dataclass
class _Course:
    """How the fit of one probe stands: its rate, its steps of Adam since moments were forgotten, and its best epoch."""

    rate: float
    steps: int = 0
    lowest: float = float("inf")
    best_epoch: int = 0
    going: bool = True

    @property
    def pace(self) -> tuple[bool, float, int]:
        """Probes of one pace can take their steps as one."""
        return self.going, self.rate, self.steps


class _Block(NamedTuple):
    """Columns of a layer with one pace."""

    place: tuple[int, slice]
    going: bool
    rate: float
    steps: int


@dataclass(frozen=True)
class _Paced:
    """Columns that go on at one rate: their blocks' places among all at hand, weights, moments and counts of steps."""

    rate: float
    places: list[tuple[int, slice]]
    weights: list[Tensor]
    moments: tuple[list[Tensor], list[Tensor]]
    steps: list[Tensor]

    def step(self, slopes: Tensor) -> None:
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

    Weights, moments and the best are (layer, column, width): each probe has its own block.
    """

    def __init__(self, weights: Tensor, members: Sequence[Member], schedule: Schedule) -> None:
        """`weights` are (layer, width, column)."""
        self.schedule = schedule
        self.layers = list(range(len(weights)))
        self.members = list(range(len(members)))
        self.current = tuple(members)
        self.courses = [_Course(schedule.rate) for _ in self.layers for _ in members]
        self.weights = weights.transpose(1, 2).contiguous()
        self.moments = torch.zeros_like(self.weights), torch.zeros_like(self.weights)
        self.best = self.weights.clone()
        self.best_of = _blocks(self.best, members)
        self.said = torch.tensor(torch.inf)
        self._point()

    @torch.inference_mode()
    def go_through(self, batches: Iterable[TreeBatch]) -> None:
        """A step of Adam for each batch, each probe at its own rate and with its own count of steps."""
        count = 0
        for batch in batches:
            count += 1
            slopes = gradients(self.weights.transpose(1, 2), self.current, self._part_of(batch)).transpose(1, 2)
            for paced in self.paced:
                paced.step(slopes)
        for course in self.courses:
            course.steps += count

    @torch.inference_mode()
    def losses_on(self, held_out: Sequence[TreeBatch]) -> Tensor:
        """(layer, member, sentence) losses of the held-out sentences."""
        weights = self.weights.transpose(1, 2)
        return torch.cat([losses(weights, self.current, self._part_of(batch)) for batch in held_out], -1).cpu()

    def _part_of(self, batch: TreeBatch) -> TreeBatch:
        """The batch with the layers that are still being fitted."""
        return batch if len(self.layers) == len(batch.states) else batch.of_layers(self.layers)

    def judge(self, epoch: int, found: Tensor) -> None:
        """Keep what is better than before, slow down what is not, and leave what has not been for long.

        `found` is (layer, member, sentence) the losses of held-out sentences.
        """
        moved, self.said = (found - self.said).abs().mean(-1).flatten().tolist(), found
        changed = False
        for number, (loss, move) in enumerate(zip(found.mean(-1).flatten().tolist(), moved, strict=True)):
            course = self.courses[self.places[number]]
            if not course.going:
                continue
            worse, better = not loss < course.lowest, loss < course.lowest - BETTER
            hopeless = worse and loss - FURTHER * move > course.lowest - BETTER
            if better:
                course.lowest, course.best_epoch = loss, epoch
                self.best_of[self.places[number]].copy_(self.blocks[number])
            if worse:
                course.rate *= SLOWER
                if self.schedule.fresh:
                    self._forget(number)
            course.going = epoch - course.best_epoch <= PATIENCE and not hopeless
            changed |= worse or not course.going
        if changed:
            self._go_on()

    def _forget(self, number: int) -> None:
        """The moments of one of the probes at hand."""
        self.courses[self.places[number]].steps = 0
        for moment in self.moments:
            _blocks(moment, self.current)[number].zero_()

    def _go_on(self) -> None:
        """Drop layers and members that have nothing left to fit; a probe stopped alone is computed, and stays."""
        going = [self.courses[place].going for place in self.places]
        count = len(self.members)
        layers = [place for place in range(len(self.layers)) if any(going[place * count :][:count])]
        members = [place for place in range(count) if any(going[place::count])]
        if len(layers) < len(self.layers) or len(members) < count:
            self._keep_only(layers, members)
        self._point()

    def _keep_only(self, layers: list[int], members: list[int]) -> None:
        """These of the layers and members at hand."""
        owner = [place for place, member in enumerate(self.current) for _ in range(member.rank)]
        columns = [column for column, place in enumerate(owner) if place in members]
        kept = (part[layers][:, columns].contiguous() for part in (self.weights, *self.moments))
        self.weights, *moments = kept
        self.moments = moments[0], moments[1]
        self.said = self.said[layers][:, members]
        self.layers = [self.layers[place] for place in layers]
        self.members = [self.members[place] for place in members]
        self.current = tuple(self.current[place] for place in members)

    def _point(self) -> None:
        """Where the probes at hand are among all, and at what pace those go on that do."""
        count = len(self.best_of) // len(self.best)
        self.places = [layer * count + member for layer in self.layers for member in self.members]
        self.blocks = _blocks(self.weights, self.current)
        paces: dict[float, list[_Block]] = {}
        for layer in range(len(self.layers)):
            for block in self._blocks_of(layer):
                if block.going:
                    paces.setdefault(block.rate, []).append(block)
        self.paced = [self._paced(rate, blocks) for rate, blocks in paces.items()]

    def _blocks_of(self, layer: int) -> Iterator[_Block]:
        """The columns of one of the layers at hand, those together that go on alike."""
        places = self.places[layer * len(self.members) :][: len(self.members)]
        owners = zip((self.courses[place] for place in places), self.current, strict=True)
        column = 0
        for (going, rate, steps), some in groupby(owners, lambda owner: owner[0].pace):
            width = sum(member.rank for _, member in some)
            yield _Block((layer, slice(column, column + width)), going, rate, steps)
            column += width

    def _paced(self, rate: float, blocks: Sequence[_Block]) -> _Paced:
        places = [block.place for block in blocks]
        weights, first, second = ([part[place] for place in places] for part in (self.weights, *self.moments))
        steps = torch.tensor([float(block.steps) for block in blocks], device=self.weights.device)
        return _Paced(rate, places, weights, (first, second), list(steps.unbind()))


def _blocks(tensor: Tensor, members: Sequence[Member]) -> list[Tensor]:
    """(column, width) of each member in each layer, all of a layer together."""
    ranks = [member.rank for member in members]
    return [block for layer in tensor.unbind() for block in layer.split(ranks)]
