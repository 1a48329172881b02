"""The part of a layer after attention, in every family: attention outputs and layer outputs are rebuilt from it."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor

import tiny_models
from bertology.encoder.attention_hook import LayerActivations, PostAttention
from bertology.encoder.encoder import ModelInputs, TaskEncoder
from bertology.encoder.families import is_layer
from bertology.encoder.layer_hooks import register_layer_hooks
from tiny_models import FAMILIES

PRE_NORM = {"modernbert", "gpt2"}
# The module whose output is the attention output, after the output projection and before the residual.
PROJECTED = {
    "distilbert": "attention.out_lin",
    "albert": "attention.dense",
    "mpnet": "attn.o",
    "modernbert": "attn.Wo",
    "gpt2": "attn.c_proj",
}
# The module whose output is the state after attention, residual and LayerNorm.
NORMED = {"distilbert": "sa_layer_norm", "albert": "attention.LayerNorm", "mpnet": "attention.LayerNorm"}


def _activations(encoder: TaskEncoder, batch: ModelInputs) -> list[LayerActivations]:
    activations: list[LayerActivations] = []
    with torch.inference_mode():
        encoder.forward(batch, on_layer=activations.append)
    return activations


def _module_outputs(encoder: TaskEncoder, batch: ModelInputs, suffix: str) -> list[Tensor]:
    """Outputs of the modules of that name in a second model without hooks, in the order in which they run."""
    reference = tiny_models.reference(encoder).to(next(encoder.model.parameters()).dtype)
    outputs: list[Tensor] = []

    def append(_module: Any, _args: Any, returned: Tensor) -> None:
        outputs.append(returned)

    for name, module in reference.named_modules():
        if name.endswith(suffix):
            module.register_forward_hook(append)
    padding = reference.config.pad_token_id or 0
    with torch.inference_mode():
        reference(
            input_ids=batch.input_ids.masked_fill(batch.attention_mask == 0, padding),
            attention_mask=batch.attention_mask,
        )
    return outputs


def _post_attention(layer: LayerActivations) -> PostAttention:
    assert layer.post_attention is not None
    return layer.post_attention


def _attention_output(layer: LayerActivations) -> Tensor:
    """(batch, token, width): attention times the transformed value vectors, summed over heads and tokens."""
    assert layer.value is not None
    attention = layer.attention.to(layer.value.dtype)
    transformed = torch.einsum(
        "bhjs,hsw->bhjw", layer.value, _post_attention(layer).head_projection(attention.shape[1])
    )
    return torch.einsum("bhij,bhjw->biw", attention, transformed)


def _double_encoder(name: str) -> tuple[TaskEncoder, ModelInputs]:
    # In double precision transformers' ModernBERT has NaN in padding rows, which spread to the other layers.
    model = tiny_models.model(name)
    encoder = tiny_models.wrap_model(model if name == "modernbert" else model.double(), name)
    return encoder, tiny_models.batch(encoder.tokenise(tiny_models.inputs()[:3]))


@pytest.mark.parametrize("name", FAMILIES)
def test_projected_values_add_up_to_the_attention_output(name: str) -> None:
    encoder, batch = _double_encoder(name)
    expected = _module_outputs(encoder, batch, PROJECTED.get(name, "attention.output.dense"))
    activations = _activations(encoder, batch)
    mask = batch.attention_mask.bool()
    assert len(activations) == len(expected) == encoder.layers
    for layer, output in zip(activations, expected, strict=True):
        bias = _post_attention(layer).output_bias
        actual = _attention_output(layer) + (0 if bias is None else bias)
        torch.testing.assert_close(actual[mask], output[mask], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", [name for name in FAMILIES if name not in PRE_NORM])
def test_residual_and_norm_reproduce_the_state_after_attention(name: str) -> None:
    encoder, batch = _double_encoder(name)
    expected = _module_outputs(encoder, batch, NORMED.get(name, "attention.output.LayerNorm"))
    mask = batch.attention_mask.bool()
    for layer, output in zip(_activations(encoder, batch), expected, strict=True):
        post_attention = _post_attention(layer)
        assert post_attention.layer_norm is not None and post_attention.output_bias is not None
        summed = _attention_output(layer) + post_attention.output_bias + post_attention.residual
        torch.testing.assert_close(post_attention.layer_norm(summed)[mask], output[mask], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", FAMILIES)
def test_head_outputs_reproduce_the_output_of_the_layer(name: str) -> None:
    encoder, batch = _double_encoder(name)
    expected: list[Tensor] = []

    def append(_module: Any, _args: Any, returned: Any) -> None:
        expected.append(returned[0] if isinstance(returned, tuple) else returned)

    reference = tiny_models.reference(encoder).to(next(encoder.model.parameters()).dtype)
    for module in reference.modules():
        if is_layer(module):
            module.register_forward_hook(append)
    with torch.inference_mode():
        padding = reference.config.pad_token_id or 0
        reference(
            input_ids=batch.input_ids.masked_fill(batch.attention_mask == 0, padding),
            attention_mask=batch.attention_mask,
        )
        mask = batch.attention_mask.bool()
        for layer, states in zip(_activations(encoder, batch), expected, strict=True):
            assert layer.head_outputs is not None
            once = _post_attention(layer).forward(layer.head_outputs)
            torch.testing.assert_close(once[mask], states[mask], atol=1e-5, rtol=1e-5)
            twice = _post_attention(layer).forward(layer.head_outputs.repeat(2, 1, 1, 1))
            torch.testing.assert_close(twice[3:][mask], states[mask], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_residual_is_the_hidden_state_below(name: str) -> None:
    encoder, batch = _double_encoder(name)
    activations: list[LayerActivations] = []
    with torch.inference_mode():
        hidden = encoder.forward(batch, on_layer=activations.append, hidden=True).hidden_states
    for number, layer in enumerate(activations):
        torch.testing.assert_close(_post_attention(layer).residual, hidden[number], atol=0, rtol=0)
        assert (_post_attention(layer).layer_norm is None) == (name in PRE_NORM)


def test_hooks_are_copied_with_a_model_and_registered_once() -> None:
    encoder = tiny_models.wrap_model(tiny_models.model("bert"), "bert")
    copied: Any = copy.deepcopy(encoder.model)
    assert register_layer_hooks(copied) == encoder.layers
    hooks = [len(m._forward_pre_hooks) for m in copied.modules() if is_layer(m)]
    assert hooks == [1] * encoder.layers
    batch = tiny_models.batch(encoder.tokenise(tiny_models.inputs()[:1]))
    assert all(
        layer.post_attention is not None for layer in _activations(tiny_models.wrap_model(copied, "bert"), batch)
    )
