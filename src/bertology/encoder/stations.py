"""What stands where layers stood, so that some of them can be left out, exchanged or repeated (see `resumable`).

Stations tell each other how far a pass has come. Places are counted in the order in which layers are called, which is
how ALBERT, whose layers are one, has places as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

from bertology.encoder.attend import active_tap, tapped
from bertology.encoder.partial_layer import Reading, for_read_pieces


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

    def states_of(self, states: Tensor) -> Tensor:
        """The states alone that come of the same call with other states."""
        returned = self.again(states)
        return returned[0] if isinstance(returned, tuple) else returned


@dataclass(frozen=True)
class Ending:
    """The last layer of a pass: what is read of it, and by how many heads it can be run for that alone.

    `heads` is 0 where it cannot.
    """

    reading: Reading
    heads: int

    def run(self, call: Call, states: Tensor) -> Tensor:
        """(row, k, width): what comes of the last layer for the pieces that are read."""
        # Gates act inside of the layer's own attention.
        if self.heads and self.reading.few and active_tap() is None:
            return for_read_pieces(call.layer, states, self.reading, self.heads)
        return self.reading.of(call.states_of(states))


@dataclass
class Course:
    """What a pass has to do, and how far it has come.

    The layers before `start` are left out, where `entering` comes in instead; or `leaving` comes out of the layer at
    `start`, which is then left out as well. Gates act up to the place `last`. With an `order`, a place runs the layers
    that the order has there, each called as it was in the pass `before`. `calls` are noted where there is a list for
    them: they hold the states of every layer. With an `ending`, that is how the last of all `places` is run.
    """

    places: int
    start: int = 0
    entering: Tensor | None = None
    leaving: Tensor | None = None
    last: int | None = None
    order: tuple[int, ...] | None = None
    before: Sequence[Call] = ()
    calls: list[Call] | None = None
    ending: Ending | None = None
    place: int = field(default=0, init=False)

    def ending_at(self, place: int) -> Ending | None:
        """How a place is run if it is the last one, and not run whole."""
        return self.ending if place == self.places - 1 else None


class Station(nn.Module):
    """Stands where a layer stood, and runs it as the course says."""

    def __init__(self, layer: nn.Module) -> None:
        """Of one layer; it is set on a course before every pass."""
        super().__init__()
        self.layer = layer
        self.course = Course(0)
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
        if place == course.start and course.leaving is not None:
            return self._returned(self._passed(course.leaving))
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
            ending = course.ending_at(place)
            if ending is not None:
                return self._returned(ending.run(call, hidden_states))
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
    order, ending = course.order or (), course.ending_at(place)
    left = order[place : len(order) if place == course.places - 1 else place + 1]
    for layer in left[:-1] if ending is not None else left:
        states = course.before[layer].states_of(states)
    if ending is None:
        return states
    return ending.run(course.before[left[-1]], states) if left else ending.reading.of(states)
