"""Connect the layers of a model to the attention hook: patched self-attention, and the part after attention.

Without an active hook a layer computes as it does without bertology.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import MethodType
from typing import TYPE_CHECKING, Any

from bertology.encoder.attention_hook import (
    UNCHANGED,
    LayerActivations,
    PostAttention,
    active_hook,
    head_changes,
    uniform_attention,
)
from bertology.encoder.encoder import Encoder, ModelInputs, ModelOutput
from bertology.encoder.families import AttentionForward, is_layer, layer_spec, model_families
from bertology.errors import Refusal
from bertology.lazy import torch
from bertology.machine_errors import raise_machine_error

if TYPE_CHECKING:
    from torch import Tensor, nn


def patch_attention(model: nn.Module) -> None:
    """Make self-attention outside transformers' attention interface call `hooked_attention`.

    Idempotent; a deep copy of a patched model is patched.
    """
    forwards = {name: forward for family in model_families() for name, forward in family.patched_attention.items()}
    for module in model.modules():
        forward = forwards.get(type(module).__name__)
        if forward is not None:
            module.forward = MethodType(_when_hooked(forward), module)


def _when_hooked(forward: AttentionForward) -> Callable[..., Any]:
    def hooked_or_original(module: Any, *args: Any, **kwargs: Any) -> Any:
        # The forward of the class, not of the instance: a deep copy must not call the module it was copied from.
        is_plain = active_hook() is None and head_changes(module) == UNCHANGED
        chosen = type(module).forward if is_plain else forward
        return chosen(module, *args, **kwargs)

    return hooked_or_original


def register_layer_hooks(model: nn.Module) -> int:
    """Make every known layer announce its `PostAttention` and states to the active hook; returns the number of layers.

    Idempotent; a deep copy of a model with these hooks has them too.
    """
    layers: list[Any] = [module for module in model.modules() if is_layer(module)]
    for layer in layers:
        if _announce_layer not in layer._forward_pre_hooks.values():
            layer.register_forward_pre_hook(_announce_layer, with_kwargs=True)
            layer.register_forward_hook(_announce_states)
    return len(layers)


def build_post_attention(layer: nn.Module, residual: Tensor) -> PostAttention:
    """The part of a layer after its heads, for this residual."""
    spec = layer_spec(layer)
    assert spec is not None, f"{type(layer).__name__} is a layer of no known family"
    projection: Any = layer.get_submodule(spec.output_projection)
    norm: Any = layer.get_submodule(spec.attention_norm) if spec.attention_norm else None
    weight: Tensor = projection.weight.detach()
    bias: Tensor | None = projection.bias
    return PostAttention(
        residual.detach(),
        weight if spec.conv1d_weights else weight.T,
        None if bias is None else bias.detach(),
        norm,
        partial(spec.feed_forward, layer),
        spec.parallel_feed_forward(layer) if spec.parallel_feed_forward is not None else None,
    )


def _announce_layer(
    layer: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    hook = active_hook()
    if hook is None:
        return None
    states: Tensor = args[0] if args else kwargs["hidden_states"]
    replacement = states if hook.next_layer else hook.apply("hidden", states, 0)
    hook.post_attention = build_post_attention(layer, replacement)
    if replacement is states:
        return None
    return ((replacement, *args[1:]), kwargs) if args else (args, {**kwargs, "hidden_states": replacement})


def _announce_states(layer: nn.Module, args: tuple[Any, ...], output: Any) -> Any:
    hook = active_hook()
    if hook is None or hook.activation_hooks is None:
        return None
    states = output[0] if isinstance(output, tuple) else output
    replacement = hook.apply("hidden", states, hook.next_layer)
    return (replacement, *output[1:]) if isinstance(output, tuple) else replacement


# The second, shorter input shows whether padding is masked as the model masks it.
LENGTHS = (7, 4)
TOLERANCE = {"torch.float32": 1e-3, "torch.float64": 1e-6}
HALF_PRECISION_TOLERANCE = 5e-2


def verify_capture(
    encoder: Encoder, reference_forward: Callable[[ModelInputs], ModelOutput], *, vocabulary_size: int
) -> bool:
    """Whether attention is causal, as observed in a trial pass: not every configuration says so.

    Refuses a model if the hook misses a layer or head, or changes the output. `reference_forward` runs the model
    without the hook and returns its hidden states.
    """
    batch = _build_inputs(vocabulary_size, encoder.device)
    activations: list[LayerActivations] = []
    try:
        with torch.no_grad():
            reference = reference_forward(batch).hidden_states
            hooked = encoder.forward(batch, on_layer=activations.append, hidden=True).hidden_states
        heads_by_layer = [encoder.heads] * encoder.layers
    except Refusal:
        raise
    except Exception as error:  # whatever else stops the trial pass, this model cannot be recorded
        raise_machine_error(error)
        raise _refusal(encoder, f"fails in a trial pass ({' '.join(str(error).split())[:200]})") from error
    if [layer.heads for layer in activations] != heads_by_layer:
        raise _refusal(
            encoder,
            f"exposed the attention of {len(activations)} layers in a trial pass but has {len(heads_by_layer)}",
        )
    if len(hooked) != len(heads_by_layer) + 1:
        raise _refusal(encoder, f"returns {len(hooked)} hidden states for {len(heads_by_layer)} layers")
    if not _is_close(reference[-1], hooked[-1], batch.attention_mask.bool()):
        raise _refusal(encoder, "computes different hidden states when its attention is recorded")
    looks_ahead = {
        bool(uniform_attention(layer.attention_mask, layer.attention)[0].triu(1).any()) for layer in activations
    }
    if len(looks_ahead) > 1:
        raise _refusal(encoder, "has causal layers and layers that attend to later tokens")
    return not looks_ahead.pop() if looks_ahead else encoder.causal


def _build_inputs(vocabulary_size: int, device: str) -> ModelInputs:
    positions = torch.arange(max(LENGTHS), device=device)
    ids = torch.stack([(positions * 7 + 5 + row) % vocabulary_size for row in range(len(LENGTHS))])
    mask = torch.stack([(positions < length).long() for length in LENGTHS])
    return ModelInputs(ids, torch.zeros_like(ids), mask)


def _is_close(reference: Tensor, hooked: Tensor, token_mask: Tensor) -> bool:
    if reference.shape != hooked.shape:
        return False
    reference, hooked = reference[token_mask], hooked[token_mask]
    tolerance = TOLERANCE.get(str(reference.dtype), HALF_PRECISION_TOLERANCE) * float(reference.abs().max())
    return bool((reference - hooked).abs().max() <= tolerance)


def _refusal(encoder: Encoder, problem: str) -> Refusal:
    return Refusal(
        f"{encoder.name} {problem}",
        "a model whose layers all use transformers' attention interface, by queries, keys, values, mask and bias alone",
        f"Choose a model of a supported family: {', '.join(family.name for family in model_families())}",
    )
