"""A model whose forward pass can resume in the middle of a layer, or skip, swap and repeat layers.

The layers of a copy that shares all weights are replaced by proxies. The model's own code runs before, between and
after them, so that every family runs as it is; only layers, or parts of them, are left out.

Which parts can be left out is found by trial, not by the name of a model: whether a layer is reproduced by its parts,
and which positions each task head reads.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bertology.encoder.attention_hook import (
    AttentionHook,
    Gates,
    LayerActivations,
    use_attention_implementation,
    use_hook,
)
from bertology.encoder.encoder import ModelInputs, ModelOutput, TaskEncoder
from bertology.encoder.families import is_layer
from bertology.encoder.huggingface import IMPLEMENTATION
from bertology.encoder.layer_proxies import FinalLayer, LayerCall, LayerProxy, LayerSchedule
from bertology.encoder.partial_forward import HeadOutputs, ReadPositions, forward_at_positions, has_plain_qkv
from bertology.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor, nn


@dataclass(frozen=True)
class TaskHeadLocality:
    """Which positions of the last layer the task heads depend on.

    `first_token_heads` depend on the first token only; the logits of `per_token_heads` at a token depend on that token
    only. `layers_support_positions`: layers can run at selected positions.
    """

    first_token_heads: frozenset[str] = frozenset()
    per_token_heads: frozenset[str] = frozenset()
    layers_support_positions: bool = False


@dataclass(frozen=True)
class ForwardTrace:
    """A forward pass and the calls of its layers.

    With a `final_layer` the output is that of one task head, at the positions that are read.
    """

    inputs: ModelInputs
    output: ModelOutput
    layer_calls: Sequence[LayerCall]
    task_head: str
    final_layer: FinalLayer | None


@dataclass(frozen=True, eq=False)
class ResumableEncoder:
    """An encoder that can resume at any layer; its outputs have logits but no hidden states."""

    encoder: TaskEncoder
    layer_proxies: Sequence[LayerProxy]
    locality: TaskHeadLocality = TaskHeadLocality()

    def trace(self, inputs: ModelInputs, *, task_head: str = "", positions: Tensor | None = None) -> ForwardTrace:
        """Run one forward pass through all layers and record their calls.

        If only one task head is of interest, and its logits at `positions` (row, k), this pass and all that resume
        from it compute no more than these need.
        """
        calls: list[LayerCall] = []
        trace = ForwardTrace(
            inputs, ModelOutput((), {}), calls, task_head, self._final_layer(inputs, task_head, positions)
        )
        return replace(trace, output=self._forward(trace, LayerSchedule(self.encoder.layers, call_log=calls)))

    def head_outputs(self, trace: ForwardTrace, layer: int) -> HeadOutputs:
        """Head outputs of a layer in a trace, from which gated passes resume."""
        self.encoder.with_gates(Gates())  # refused if heads were removed
        head_outputs = self.rerun_attention(trace.layer_calls[layer])
        if trace.final_layer is not None and layer == self.encoder.layers - 1:
            return head_outputs.at_positions(trace.final_layer.read_positions)
        return head_outputs

    def rerun_attention(self, call: LayerCall) -> HeadOutputs:
        """Head outputs of one layer call."""
        activations: list[LayerActivations] = []
        with (
            use_attention_implementation(IMPLEMENTATION, self.encoder.model.config),
            use_hook(AttentionHook(activations.append)),
        ):
            call.rerun(call.states)
        return HeadOutputs.from_activations(activations[0])

    def resume_gated(
        self,
        trace: ForwardTrace,
        head_outputs: HeadOutputs,
        gates: Gates,
        *,
        repeats: int,
        first_layer: int,
        last_gated_layer: int,
    ) -> ModelOutput:
        """Resume all rows of a trace, repeated, at the heads of `first_layer`, gated up to `last_gated_layer`.

        The rows of one repetition are contiguous; the batch axis of the gates covers all rows.
        """
        schedule = LayerSchedule(
            self.encoder.layers,
            start=first_layer,
            output_states=head_outputs.forward_gated(gates, first_layer, repeats),
            last_gated_layer=last_gated_layer,
        )
        return self._forward(trace, schedule, gates, repeats)

    def resume_reordered(self, trace: ForwardTrace, layer_order: Sequence[int]) -> ModelOutput:
        """Run the layers in another order; layers below the first change are not run again."""
        n_layers = len(trace.layer_calls)
        n_unchanged = common_prefix_length(layer_order, n_layers)
        if n_unchanged == n_layers == len(layer_order):
            return trace.output
        # A longer order differs after the last layer, which must then be run.
        start = min(n_unchanged, n_layers - 1)
        schedule = LayerSchedule(
            self.encoder.layers,
            start=start,
            input_states=trace.layer_calls[start].states,
            layer_order=tuple(layer_order),
            recorded_calls=trace.layer_calls,
        )
        return self._forward(trace, schedule)

    def apply_task_heads(self, trace: ForwardTrace, states: Tensor) -> ModelOutput:
        """The output of the task heads for these states of the last layer."""
        schedule = LayerSchedule(self.encoder.layers, start=self.encoder.layers - 1, output_states=states)
        return self._forward(trace, schedule)

    def _final_layer(self, inputs: ModelInputs, task_head: str, positions: Tensor | None) -> FinalLayer | None:
        mask = inputs.attention_mask.bool()
        n_heads = self.encoder.heads if self.locality.layers_support_positions else 0
        if task_head in self.locality.first_token_heads:
            return FinalLayer(ReadPositions(torch.zeros_like(inputs.input_ids[:, :1]), mask), n_heads)
        if task_head in self.locality.per_token_heads and positions is not None:
            return FinalLayer(ReadPositions(positions, mask), n_heads)
        return None

    def _forward(
        self, trace: ForwardTrace, schedule: LayerSchedule, gates: Gates | None = None, repeats: int = 1
    ) -> ModelOutput:
        if trace.final_layer is not None:
            read_positions = trace.final_layer.read_positions.repeat(repeats)
            schedule.final_layer = replace(trace.final_layer, read_positions=read_positions)
        for proxy in self.layer_proxies:
            proxy.schedule = schedule
        tensors = (trace.inputs.input_ids, trace.inputs.token_type_ids, trace.inputs.attention_mask)
        output = self.encoder.with_gates(gates).forward(ModelInputs(*(tensor.repeat(repeats, 1) for tensor in tensors)))
        if schedule.final_layer is None:
            return output
        is_per_token = trace.task_head in self.locality.per_token_heads
        positions = schedule.final_layer.read_positions.positions if is_per_token else None
        return ModelOutput((), {trace.task_head: output.logits[trace.task_head]}, positions)


def common_prefix_length(layer_order: Sequence[int], n_layers: int) -> int:
    """Number of layers at the start of an order that are in their usual place."""
    length = min(len(layer_order), n_layers)
    return next((k for k in range(length) if layer_order[k] != k), length)


def make_resumable(encoder: TaskEncoder) -> ResumableEncoder | None:
    """The encoder with layer proxies, sharing its weights.

    None if its layers are unknown, are not called one by one, or are not reproduced by their parts; and with activation
    hooks, which must see full passes.
    """
    if getattr(encoder, "activation_hooks", None) is not None:
        return None
    with torch.no_grad():
        model: nn.Module = encoder.model
        layers = [module for module in model.modules() if is_layer(module)]
        shared = [*model.parameters(), *model.buffers(), encoder.model.config, *layers]
        model = copy.deepcopy(model, {id(part): part for part in shared})
        resumable = ResumableEncoder(encoder.with_model(model).with_gates(None), _insert_proxies(model))
        positions = torch.arange(4, device=encoder.device)[None]
        trial = resumable.trace(ModelInputs(positions, torch.zeros_like(positions), (positions < 3).long()))
        if len(trial.layer_calls) != encoder.layers:
            return None
        with use_attention_implementation(IMPLEMENTATION, encoder.model.config):
            states = [call.rerun_states(call.states) for call in trial.layer_calls]
        if encoder.is_pruned:
            return replace(resumable, locality=_find_locality(resumable, trial, states[-1]))
        head_outputs = [resumable.rerun_attention(call) for call in trial.layer_calls]
        if not all(
            _is_close(layer.post_attention.forward(layer.outputs), layer_states, trial)
            for layer, layer_states in zip(head_outputs, states, strict=True)
        ):
            return None
        locality = replace(
            _find_locality(resumable, trial, states[-1]),
            layers_support_positions=_supports_positions(encoder, trial, states),
        )
        return replace(resumable, locality=locality)


def _insert_proxies(model: nn.Module) -> list[LayerProxy]:
    """Replace the layers of a model by proxies, in order; a layer used several times has one proxy."""
    proxies: dict[int, LayerProxy] = {}
    for module in list(model.modules()):
        for name, child in module.named_children():
            if is_layer(child):
                setattr(module, name, proxies.setdefault(id(child), LayerProxy(child)))
    return list(proxies.values())


def _is_close(actual: Tensor, expected: Tensor, trace: ForwardTrace) -> bool:
    """Whether the states of all tokens agree up to rounding."""
    actual, expected = (
        states[trace.inputs.attention_mask[:, : states.shape[1]].bool()] for states in (actual, expected)
    )
    return float((actual - expected).abs().max()) < torch.finfo(actual.dtype).eps ** 0.5 * float(expected.abs().max())


def _supports_positions(encoder: TaskEncoder, trace: ForwardTrace, states: Sequence[Tensor]) -> bool:
    """Whether every layer can run at selected positions; causal layers cannot."""
    first = ReadPositions(torch.zeros_like(trace.inputs.input_ids[:, :1]), trace.inputs.attention_mask.bool())
    return not encoder.causal and all(
        has_plain_qkv(call.layer)
        and _is_close(
            forward_at_positions(call.layer, call.states, first, encoder.heads), first.gather(layer_states), trace
        )
        for call, layer_states in zip(trace.layer_calls, states, strict=True)
    )


def _find_locality(resumable_encoder: ResumableEncoder, trace: ForwardTrace, states: Tensor) -> TaskHeadLocality:
    """Test which logits stay the same when the states of all tokens but one are noise."""
    if resumable_encoder.encoder.causal:
        return TaskHeadLocality()  # a causal classifier may find its last token by the ids
    noise = torch.randn(states.shape, generator=torch.Generator().manual_seed(0)).to(states)
    masks = [torch.arange(states.shape[1], device=states.device) == position for position in range(3)]
    perturbed = [
        resumable_encoder.apply_task_heads(trace, torch.where(mask[:, None], states, noise)).logits for mask in masks
    ]
    original = resumable_encoder.apply_task_heads(trace, states).logits
    first_token_heads = frozenset(name for name in original if torch.equal(perturbed[0][name], original[name]))
    per_token_heads = frozenset(
        name
        for name, logits in original.items()
        if logits.shape[:2] == states.shape[:2]
        and all(torch.equal(other[name][:, position], logits[:, position]) for position, other in enumerate(perturbed))
    )
    return TaskHeadLocality(first_token_heads, per_token_heads)
