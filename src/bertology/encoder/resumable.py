"""A model run on from midway one of its layers, and with its layers left out, exchanged or repeated.

The layers of a copy that shares all weights are put into stations. The model's own code runs before, between and after
the layers, so that every family is run as it is: what is left out are the layers themselves, or parts of them.

Which parts can be left out is found by trial, not by the name of a model: whether a layer comes out as it should when
it is put together from its parts, and which pieces the heads on top of the model read.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from bertology.encoder.attend import Gates, LayerActivations, Tap, tapped
from bertology.encoder.blocks import LAYERS
from bertology.encoder.encoder import Batch, Output
from bertology.encoder.huggingface import IMPLEMENTATION, HuggingFaceEncoder
from bertology.encoder.partial_layer import Attended, Reading, for_read_pieces, projected_plainly
from bertology.encoder.pruning import PrunedEncoder
from bertology.encoder.stations import Call, Course, Ending, Station
from bertology.encoder.switch import attending_by


@dataclass(frozen=True)
class Habits:
    """What a model reads: `first` are the outputs that depend on the first piece of the last layer alone.

    `own` are outputs of which what is said of a piece depends on that piece alone. `alone`: whether layers can be run
    for some pieces alone.
    """

    first: frozenset[str] = frozenset()
    own: frozenset[str] = frozenset()
    alone: bool = False


@dataclass(frozen=True)
class Journey:
    """One pass through all layers, and how each was called.

    With an `ending` the output is that of one `head` on top of the model, for the pieces that are read.
    """

    batch: Batch
    output: Output
    calls: Sequence[Call]
    head: str
    ending: Ending | None


@dataclass(frozen=True, eq=False)
class Resumable:
    """An encoder that can be run on from any of its layers; what it returns has logits, and no hidden states."""

    encoder: HuggingFaceEncoder
    stations: Sequence[Station]
    habits: Habits = Habits()

    def travel(self, batch: Batch, *, head: str = "", asked: Tensor | None = None) -> Journey:
        """One pass through all layers.

        Where one `head` on top of the model is all that is of interest, and of its answers those at the pieces `asked`,
        (row, k), no more is made than these need, on this journey and on all that go on from it.
        """
        calls: list[Call] = []
        journey = Journey(batch, Output((), {}), calls, head, self._ending(batch, head, asked))
        return replace(journey, output=self._run(journey, self._course(journey, calls=calls)))

    def midway(self, journey: Journey, layer: int) -> Attended:
        """What the heads of a layer gave on a journey: changes of them go on from there."""
        self.encoder.gated(Gates())  # refused where heads are gone
        attended = self.attended(journey.calls[layer])
        if journey.ending is not None and layer == self.encoder.layers - 1:
            return attended.at(journey.ending.reading)
        return attended

    def attended(self, call: Call) -> Attended:
        """What the heads gave in a call."""
        seen: list[LayerActivations] = []
        with attending_by(IMPLEMENTATION, self.encoder.model.config), tapped(Tap(seen.append)):
            call.again(call.states)
        return Attended.seen(seen[0])

    def gated(self, journey: Journey, midway: Attended, gates: Gates, *, times: int, first: int, last: int) -> Output:
        """The rows of a journey so many times over, from midway the layer `first` on, under gates up to `last`.

        The rows of one time stand together; the gates have one axis for all rows.
        """
        leaving = midway.under(gates, first, times)
        return self._run(journey, self._course(journey, times, start=first, leaving=leaving, last=last), gates, times)

    def rearranged(self, journey: Journey, order: Sequence[int]) -> Output:
        """A journey through these layers in this order; what lies below the first change is not run again."""
        first = common_start(order, len(journey.calls))
        if first == len(journey.calls) == len(order):
            return journey.output
        # A longer journey begins to differ after its last place: that place must be run.
        start = min(first, len(journey.calls) - 1)
        entering = journey.calls[start].states
        course = self._course(journey, start=start, entering=entering, order=tuple(order), before=journey.calls)
        return self._run(journey, course)

    def without(self, journey: Journey, leaving: Tensor) -> Output:
        """What the heads on top of the model make of these states, its layers left out."""
        return self._run(journey, self._course(journey, start=self.encoder.layers - 1, leaving=leaving))

    def _ending(self, batch: Batch, head: str, asked: Tensor | None) -> Ending | None:
        real, heads = batch.mask.bool(), self.encoder.heads if self.habits.alone else 0
        if head in self.habits.first:
            return Ending(Reading(torch.zeros_like(batch.ids[:, :1]), real), heads)
        if head in self.habits.own and asked is not None:
            return Ending(Reading(asked, real), heads)
        return None

    def _course(self, journey: Journey, times: int = 1, **named: Any) -> Course:
        ending = journey.ending and replace(journey.ending, reading=journey.ending.reading.times(times))
        return Course(self.encoder.layers, ending=ending, **named)

    def _run(self, journey: Journey, course: Course, gates: Gates | None = None, times: int = 1) -> Output:
        for station in self.stations:
            station.course = course
        given = (journey.batch.ids, journey.batch.types, journey.batch.mask)
        output = self.encoder.gated(gates).run(Batch(*(part.repeat(times, 1) for part in given)))
        if course.ending is None:
            return output
        pieces = course.ending.reading.pieces if journey.head in self.habits.own else None
        return Output((), {journey.head: output.logits[journey.head]}, pieces)


def common_start(order: Sequence[int], layers: int) -> int:
    """How many layers an order begins with that stand where they always stand."""
    return next((k for k in range(min(len(order), layers)) if order[k] != k), min(len(order), layers))


@torch.no_grad()
def resumable(encoder: HuggingFaceEncoder) -> Resumable | None:
    """The encoder with stations, its weights shared.

    None where its layers are not known, not called one by one, or not made of the parts that they should be made of.
    """
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
    pieces = torch.arange(4, device=encoder.device)[None]
    trial = made.travel(Batch(pieces, torch.zeros_like(pieces), (pieces < 3).long()))
    if len(trial.calls) != encoder.layers:
        return None
    with attending_by(IMPLEMENTATION, model.config):
        states = [call.states_of(call.states) for call in trial.calls]
    if isinstance(encoder, PrunedEncoder):
        return replace(made, habits=_habits(made, trial, states[-1]))
    halves = [made.attended(call) for call in trial.calls]
    if not all(_same(half.block.carry_on(half.context), own, trial) for half, own in zip(halves, states, strict=True)):
        return None
    return replace(made, habits=replace(_habits(made, trial, states[-1]), alone=_alone(encoder, trial, states)))


def _same(found: Tensor, expected: Tensor, trial: Journey) -> bool:
    """Whether states are the same for all real pieces, as far as arithmetic goes."""
    found, expected = (states[trial.batch.mask[:, : states.shape[1]].bool()] for states in (found, expected))
    return float((found - expected).abs().max()) < torch.finfo(found.dtype).eps ** 0.5 * float(expected.abs().max())


def _alone(encoder: HuggingFaceEncoder, trial: Journey, states: Sequence[Tensor]) -> bool:
    """Whether every layer can be run for some pieces alone; not where pieces see only what is before them."""
    reading = Reading(torch.zeros_like(trial.batch.ids[:, :1]), trial.batch.mask.bool())
    return not encoder.causal and all(
        projected_plainly(call.layer)
        and _same(for_read_pieces(call.layer, call.states, reading, encoder.heads), reading.of(own), trial)
        for call, own in zip(trial.calls, states, strict=True)
    )


def _habits(made: Resumable, trial: Journey, states: Tensor) -> Habits:
    """Which outputs stay the same when the states of all pieces but one are noise."""
    if made.encoder.causal:
        return Habits()  # such a one may look for its last piece in the ids
    noise = torch.randn(states.shape, generator=torch.Generator().manual_seed(0)).to(states)
    kept = [torch.arange(states.shape[1], device=states.device) == piece for piece in range(3)]
    found = [made.without(trial, torch.where(one[:, None], states, noise)).logits for one in kept]
    whole = made.without(trial, states).logits
    first = frozenset(name for name in whole if torch.equal(found[0][name], whole[name]))
    own = frozenset(
        name
        for name, logits in whole.items()
        if logits.shape[:2] == states.shape[:2]
        and all(torch.equal(some[name][:, piece], logits[:, piece]) for piece, some in enumerate(found))
    )
    return Habits(first, own)
