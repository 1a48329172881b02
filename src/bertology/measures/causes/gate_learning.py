"""A model that learns on while its heads are gated: L0 gates that close what is not worth its price, or gates as given.

The items of a step are shown as they are asked elsewhere, and the loop is that of fine-tuning. The model given is left
as it is.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from bertology.encoder.attend import Gates
from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.encoder.pruning import Heads
from bertology.finetuning.examples import Example, Padded
from bertology.finetuning.loop import Recipe, settled, train
from bertology.maths.hard_concrete import HardConcrete
from bertology.measures.causes.examination import Examination, Sheet, asked_again
from bertology.measures.causes.head_orders import gated_to

Floats = NDArray[np.float64]
Meter = Callable[[int, int], None]

DISTRIBUTION = HardConcrete()
RISING = 2 / 3
"""The share of the steps over which the price rises: at full price from the start all gates close before the loss can
tell them apart, and what is left of a broken model says nothing about any one of them."""


@dataclass(frozen=True)
class Lesson:
    """How gates are learnt: `penalty` nats for each gate that is expected not to be 0, over so many steps.

    Gates begin at the location `start` and move at `rate`; with `weights` the model learns beside them, at the rate
    that fine-tuning would choose.
    """

    penalty: float
    steps: int
    size: int
    start: float
    rate: float
    weights: bool
    seed: int


@dataclass(frozen=True)
class Learnt:
    """What came of a lesson: the locations of the gates (layer, head), and the model with only the heads it keeps."""

    locations: Floats
    encoder: HuggingFaceEncoder

    @property
    def kept(self) -> Heads:
        """(layer, head) whether the gate is likelier to be 1 than 0."""
        return DISTRIBUTION.kept(torch.from_numpy(self.locations)).numpy()


class _Gated(nn.Module):
    """A model and the locations of its gates, in one row so that they do not decay."""

    def __init__(self, model: Any, locations: Tensor | None, *, frozen: bool) -> None:
        super().__init__()
        self.model = model
        self.locations = None if locations is None else nn.Parameter(locations)
        self.frozen = frozen

    def train(self, mode: bool = True) -> _Gated:
        """Without dropout where the weights do not learn: it would only blur the gates."""
        super().train(mode)
        if self.frozen:
            self.model.eval()
        return self


def learn_gates(encoder: HuggingFaceEncoder, examination: Examination, lesson: Lesson, tell: Meter) -> Learnt:
    """Gates drawn anew at every step, one for each head and all items, by the loss and the penalty together."""
    own = _copy(encoder, frozen=not lesson.weights)
    shape = encoder.layers, encoder.heads
    begun = torch.full((shape[0] * shape[1],), lesson.start, device=encoder.device)
    module = _Gated(own.model, begun, frozen=not lesson.weights)
    assert module.locations is not None, "made with them"
    locations = module.locations
    begun_steps = count(1)

    def loss(sheet: Sheet) -> Tensor:
        price = lesson.penalty * min(1.0, next(begun_steps) / (RISING * lesson.steps))
        scale = DISTRIBUTION.draw(locations).view(shape)
        answer = sheet.losses(own.gated(Gates(scale=scale)).run(sheet.shown)).mean()
        return answer + price * DISTRIBUTION.chance_open(locations).sum()

    _learn(module, encoder, examination, loss, lesson, tell)
    found = locations.detach().double().cpu().view(shape).numpy()
    made = Learnt(found, own)
    return replace(made, encoder=gated_to(own, made.kept))


def retrained(
    encoder: HuggingFaceEncoder, examination: Examination, kept: Heads, *, steps: int, size: int, seed: int, tell: Meter
) -> HuggingFaceEncoder:
    """The model that has learnt on with only these heads at work."""
    own = gated_to(_copy(encoder, frozen=False), kept)
    module = _Gated(own.model, None, frozen=False)
    lesson = Lesson(0.0, steps, size, 0.0, 0.0, True, seed)
    _learn(module, encoder, examination, lambda sheet: sheet.losses(own.run(sheet.shown)).mean(), lesson, tell)
    return own


def _learn(
    module: _Gated,
    encoder: HuggingFaceEncoder,
    examination: Examination,
    loss: Callable[[Sheet], Tensor],
    lesson: Lesson,
    tell: Meter,
) -> None:
    sheets = _sheets(encoder, examination, lesson.size, lesson.seed)
    usual = settled(Recipe(), width=encoder.width, device=encoder.device).rate or 0.0
    recipe = Recipe(
        seed=lesson.seed,
        epochs=-(-lesson.steps // len(sheets)),
        size=1,
        rate=usual if lesson.weights else lesson.rate,
        patience=None,
        precision="float32",
    )
    faster = {"locations": lesson.rate / usual} if lesson.weights else {}

    def of_one(batch: Padded) -> Tensor:
        return loss(sheets[batch.places[0]])

    # The loop is about examples: here each of them stands for a sheet, and a batch is one sheet.
    stand_ins = [Example(np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(1, np.int64)) for _ in sheets]
    train(module, of_one, stand_ins, None, recipe, faster=faster, progress=tell)


def _sheets(encoder: HuggingFaceEncoder, examination: Examination, size: int, seed: int) -> list[Sheet]:
    """The items as sheets of so many; what is hidden of them goes by the seed."""
    items = list({id(item): item for item in examination.items}.values())
    parts = (items[start : start + size] for start in range(0, len(items), size))
    return [sheet for part in parts for sheet in asked_again(encoder, examination, part, seed=seed).sheets]


def _copy(encoder: HuggingFaceEncoder, *, frozen: bool) -> HuggingFaceEncoder:
    model = copy.deepcopy(encoder.model)
    model.requires_grad_(not frozen)
    return replace(encoder, model=model)


def drawn_alike(kept: Sequence[Heads], draws: int, seed: int) -> list[Heads]:
    """For each set of heads so many others of the same size, drawn at random."""
    found: list[Heads] = []
    for number, heads in enumerate(kept):
        generator = np.random.default_rng([seed, number])
        for _ in range(draws):
            found.append(generator.permutation(heads.ravel()).reshape(heads.shape))
    return found
