"""Layer proxies: substitutes for layers that can be skipped, swapped or repeated (see `resumable_encoder`).

The proxies of a model share a `LayerSchedule`. Depth counts layer calls, so that ALBERT, whose layers are one module,
has depths as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bertology.encoder.attention_hook import active_hook, use_hook
from bertology.encoder.partial_forward import ReadPositions, forward_at_positions
from bertology.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor, nn


@dataclass(frozen=True)
class LayerCall:
    """One call of a layer: the layer, its input states and its other arguments."""

    layer: nn.Module
    states: Tensor
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def rerun(self, states: Tensor) -> Any:
        """Repeat the call with other states; returns what the layer returns."""
        return self.layer(states, *self.args, **self.kwargs)

    def rerun_states(self, states: Tensor) -> Tensor:
        """Repeat the call with other states; returns the output states."""
        returned = self.rerun(states)
        return returned[0] if isinstance(returned, tuple) else returned


@dataclass(frozen=True)
class FinalLayer:
    """How to run the last layer if only some positions of its output are read.

    `n_heads` is 0 if the layer cannot run at selected positions.
    """

    read_positions: ReadPositions
    n_heads: int

    def run(self, call: LayerCall, states: Tensor) -> Tensor:
        """(row, k, width) output of the last layer at the positions that are read."""
        # Gates act inside the layer's attention, which a partial run does not call.
        if self.n_heads and self.read_positions.is_sparse and active_hook() is None:
            return forward_at_positions(call.layer, states, self.read_positions, self.n_heads)
        return self.read_positions.gather(call.rerun_states(states))


@dataclass
class LayerSchedule:
    """Plan and progress of one forward pass through layer proxies.

    Layers before `start` are skipped. `input_states` replace the input of layer `start`; `output_states` replace its
    output, so that it is skipped as well. Gates act up to `last_gated_layer`. With a `layer_order`, each depth runs
    the layer that the order has there, called as in `recorded_calls`; the last depth runs the rest of the order.
    Calls are appended to `call_log` if there is one: it holds the states of every layer.
    """

    depth: int
    start: int = 0
    input_states: Tensor | None = None
    output_states: Tensor | None = None
    last_gated_layer: int | None = None
    layer_order: tuple[int, ...] | None = None
    recorded_calls: Sequence[LayerCall] = ()
    call_log: list[LayerCall] | None = None
    final_layer: FinalLayer | None = None
    position: int = field(default=0, init=False)

    def final_layer_at(self, position: int) -> FinalLayer | None:
        """`final_layer` at the last depth, None elsewhere."""
        return self.final_layer if position == self.depth - 1 else None


class LayerProxy(torch.nn.Module):
    """A substitute for a layer that runs it as the schedule says."""

    def __init__(self, layer: nn.Module) -> None:
        """The schedule is set before every forward pass."""
        super().__init__()
        self.layer = layer
        self.schedule = LayerSchedule(0)
        self.tuple_size = 0
        """Length of the tuple that the layer returns; 0 if it returns its states only."""

    @property
    def attention_type(self) -> str:
        """Read by ModernBERT, to choose each layer's mask and positions."""
        return str(self.layer.attention_type)

    def forward(self, hidden_states: Tensor, *args: Any, **kwargs: Any) -> Any:
        """The output of this depth of the schedule."""
        schedule = self.schedule
        position, schedule.position = schedule.position, schedule.position + 1
        if position < schedule.start:
            return self._wrap_states(self._skip_layer(hidden_states))
        if position == schedule.start and schedule.output_states is not None:
            return self._wrap_states(self._skip_layer(schedule.output_states))
        if position == schedule.start and schedule.input_states is not None:
            hidden_states = schedule.input_states
        if schedule.layer_order is not None:
            return self._wrap_states(_run_in_order(schedule, position, hidden_states))
        call = LayerCall(self.layer, hidden_states, args, kwargs)
        if schedule.call_log is not None:
            schedule.call_log.append(call)
        with ExitStack() as stack:
            if schedule.last_gated_layer is not None and position > schedule.last_gated_layer:
                stack.enter_context(use_hook(None))
            final_layer = schedule.final_layer_at(position)
            if final_layer is not None:
                return self._wrap_states(final_layer.run(call, hidden_states))
            returned = call.rerun(hidden_states)
        self.tuple_size = len(returned) if isinstance(returned, tuple) else 0
        return returned

    def _skip_layer(self, states: Tensor) -> Tensor:
        hook = active_hook()
        if hook is not None:
            hook.next_layer += 1  # hooks number layers by their attention calls, and this layer makes none
        return states

    def _wrap_states(self, states: Tensor) -> Any:
        return (states, *(None,) * (self.tuple_size - 1)) if self.tuple_size else states


def _run_in_order(schedule: LayerSchedule, position: int, states: Tensor) -> Tensor:
    """Run one layer of the order, or at the last depth all remaining ones; the order may be shorter than the depth."""
    order, final_layer = schedule.layer_order or (), schedule.final_layer_at(position)
    layers = order[position : len(order) if position == schedule.depth - 1 else position + 1]
    for layer in layers[:-1] if final_layer is not None else layers:
        states = schedule.recorded_calls[layer].rerun_states(states)
    if final_layer is None:
        return states
    if not layers:
        return final_layer.read_positions.gather(states)
    return final_layer.run(schedule.recorded_calls[layers[-1]], states)
