"""A model run on from one of its layers, and with its layers left out, exchanged or repeated.

The layers of a copy that shares all weights are put into stations, which tell each other how far a pass has come. The
model's own code runs before, between and after the layers, so that every family is run as it is: what is left out are
the layers themselves. Places are counted in the order in which layers are called, which is how ALBERT, whose layers
are one, has places as well.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from bertology.encoder.attend import Gates, active_tap, tapped
from bertology.encoder.blocks import LAYERS
from bertology.encoder.encoder import Batch, Output
from bertology.encoder.huggingface import HuggingFaceEncoder


@dataclass(frozen=True)
class Call:
    """How a layer was called: the layer, the states it was given, and whatever else it was given."""

    layer: nn.Module
    states: Tensor
    given: tuple[Any, ...]
    named: dict[str, Any]

    def again(self, states: Tensor) -> Any:
        """The same call with other states."""
        return self.layer(states, *self.given, **self.named)


@dataclass
class Course:
    """What a pass has to do, and how far it has come.

    The layers before `start` are left out, where `entering` comes in instead. Gates act up to the place `last`. With
    an `order`, a place runs the layers that the order has there, each called as it was in the pass `before`. `calls`
    are noted where there is a list for them: they hold the states of every layer.
    """

    start: int = 0
    entering: Tensor | None = None
    last: int | None = None
    order: tuple[int, ...] | None = None
    before: Sequence[Call] = ()
    calls: list[Call] | None = None
    place: int = field(default=0, init=False)


class Station(nn.Module):
    """Stands where a layer stood, and runs it as the course says."""

    def __init__(self, layer: nn.Module) -> None:
        """Of one layer; it is set on a course before every pass."""
        super().__init__()
        self.layer = layer
        self.course = Course()
        self.returns = 0
        """How many things the layer returns in a tuple, 0 where it returns its states alone."""

    @property
    def attention_type(self) -> str:
        """What ModernBERT asks its layers for, to give each the mask and the positions of its kind."""
        return str(self.layer.attention_type)

    def forward(self, hidden_states: Tensor, *given: Any, **named: Any) -> Any:
        """The states after this place."""
        course = self.course
        place, course.place = course.place, course.place + 1
        if place < course.start:
            return self._returned(self._passed(hidden_states))
        if place == course.start and course.entering is not None:
            hidden_states = course.entering
        if course.order is not None:
            return self._returned(_in_order(course, place, hidden_states))
        call = Call(self.layer, hidden_states, given, named)
        if course.calls is not None:
            course.calls.append(call)
        with ExitStack() as stack:
            if course.last is not None and place > course.last:
                stack.enter_context(tapped(None))
            returned = call.again(hidden_states)
        self.returns = len(returned) if isinstance(returned, tuple) else 0
        return returned

    def _passed(self, states: Tensor) -> Tensor:
        tap = active_tap()
        if tap is not None:
            tap.layer += 1  # layers are numbered in the order in which they attend, and this one does not
        return states

    def _returned(self, states: Tensor) -> Any:
        return (states, *(None,) * (self.returns - 1)) if self.returns else states


def _in_order(course: Course, place: int, states: Tensor) -> Tensor:
    """The last place runs all that is left; there may be fewer layers than places."""
    order = course.order or ()
    end = len(order) if place == len(course.before) - 1 else place + 1
    for layer in order[place:end]:
        returned = course.before[layer].again(states)
        states = returned[0] if isinstance(returned, tuple) else returned
    return states


@dataclass(frozen=True)
class Journey:
    """One pass through all layers, and how each was called."""

    batch: Batch
    output: Output
    calls: Sequence[Call]


@dataclass(frozen=True, eq=False)
class Resumable:
    """An encoder that can be run on from any of its layers; what it returns has logits, and no hidden states."""

    encoder: HuggingFaceEncoder
    stations: Sequence[Station]

    def travel(self, batch: Batch) -> Journey:
        """One pass through all layers."""
        calls: list[Call] = []
        output = self._run(batch, Course(calls=calls), None)
        return Journey(batch, output, calls)

    def gated(self, journey: Journey, gates: Gates, *, times: int, first: int, last: int) -> Output:
        """The rows of a journey so many times over, from the layer `first` on, under gates that act up to `last`.

        The rows of one time stand together; the gates have one axis for all rows.
        """
        entering = journey.calls[first].states if first else None
        course = Course(first, None if entering is None else entering.repeat(times, 1, 1), last)
        given = (journey.batch.ids, journey.batch.types, journey.batch.mask)
        return self._run(Batch(*(part.repeat(times, 1) for part in given)), course, gates)

    def rearranged(self, journey: Journey, order: Sequence[int]) -> Output:
        """A journey through these layers in this order; what lies below the first change is not run again."""
        first = common_start(order, len(journey.calls))
        if first == len(journey.calls) == len(order):
            return journey.output
        # A longer journey begins to differ after its last place: that place must be run.
        start = min(first, len(journey.calls) - 1)
        course = Course(start, journey.calls[start].states, order=tuple(order), before=journey.calls)
        return self._run(journey.batch, course, None)

    def _run(self, batch: Batch, course: Course, gates: Gates | None) -> Output:
        for station in self.stations:
            station.course = course
        return self.encoder.gated(gates).run(batch)


def common_start(order: Sequence[int], layers: int) -> int:
    """How many layers an order begins with that stand where they always stand."""
    return next((k for k in range(min(len(order), layers)) if order[k] != k), min(len(order), layers))


@torch.no_grad()
def resumable(encoder: HuggingFaceEncoder) -> Resumable | None:
    """The encoder with stations, its weights shared; None where its layers are not known, or not called one by one."""
    whole: nn.Module = encoder.model
    layers = [module for module in whole.modules() if type(module).__name__ in LAYERS]
    shared = [*whole.parameters(), *whole.buffers(), encoder.model.config, *layers]
    model = copy.deepcopy(whole, {id(part): part for part in shared})
    stations: dict[int, Station] = {}
    for module in list(model.modules()):
        for name, child in module.named_children():
            if type(child).__name__ in LAYERS:
                setattr(module, name, stations.setdefault(id(child), Station(child)))
    made = Resumable(replace(encoder, model=model, gates=None), list(stations.values()))
    pieces = torch.ones(1, 2, dtype=torch.long, device=encoder.device)
    trial = made.travel(Batch(pieces, torch.zeros_like(pieces), torch.ones_like(pieces)))
    return made if len(trial.calls) == encoder.layers else None
