"""What surrounds attention is found in every family: attention's output is rebuilt from it, and compared."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor

import models
from bertology.encoder.attend import Block, LayerActivations
from bertology.encoder.blocks import LAYERS, teach
from bertology.encoder.encoder import Batch
from bertology.encoder.huggingface import HuggingFaceEncoder
from models import FAMILIES

PRE_NORM = {"modernbert", "gpt2"}
# The module whose output is attention's own, after the output projection and before the residual.
PROJECTED = {
    "distilbert": "attention.out_lin",
    "albert": "attention.dense",
    "mpnet": "attn.o",
    "modernbert": "attn.Wo",
    "gpt2": "attn.c_proj",
}
# The module whose output is the state after attention, residual and LayerNorm.
NORMED = {"distilbert": "sa_layer_norm", "albert": "attention.LayerNorm", "mpnet": "attention.LayerNorm"}


def _seen(encoder: HuggingFaceEncoder, batch: Batch) -> list[LayerActivations]:
    seen: list[LayerActivations] = []
    with torch.inference_mode():
        encoder.run(batch, on_layer=seen.append)
    return seen


def _outputs(encoder: HuggingFaceEncoder, batch: Batch, ending: str) -> list[Tensor]:
    """What the modules of that name return in a second, unwatched model, in the order in which they run."""
    reference = models.reference(encoder).to(next(encoder.model.parameters()).dtype)
    found: list[Tensor] = []

    def keep(_module: Any, _given: Any, returned: Tensor) -> None:
        found.append(returned)

    for name, module in reference.named_modules():
        if name.endswith(ending):
            module.register_forward_hook(keep)
    padding = reference.config.pad_token_id or 0
    with torch.inference_mode():
        reference(input_ids=batch.ids.masked_fill(batch.mask == 0, padding), attention_mask=batch.mask)
    return found


def _block(layer: LayerActivations) -> Block:
    assert layer.block is not None
    return layer.block


def _mixed(layer: LayerActivations) -> Tensor:
    """The sum over heads and pieces of attention times the transformed value vectors: (batch, piece, width)."""
    assert layer.value is not None
    attention = layer.attention.to(layer.value.dtype)
    transformed = torch.einsum("bhjs,hsw->bhjw", layer.value, _block(layer).projection(attention.shape[1]))
    return torch.einsum("bhij,bhjw->biw", attention, transformed)


def _double(name: str) -> tuple[HuggingFaceEncoder, Batch]:
    # transformers' own ModernBERT has NaN in padding rows in double precision, which spread to the other layers.
    plain = models.model(name)
    encoder = models.wrapped(plain if name == "modernbert" else plain.double(), name)
    return encoder, models.batch(encoder.tokenise(models.inputs()[:3]))


@pytest.mark.parametrize("name", FAMILIES)
def test_values_and_projection_add_up_to_attention_output(name: str) -> None:
    encoder, batch = _double(name)
    expected = _outputs(encoder, batch, PROJECTED.get(name, "attention.output.dense"))
    seen = _seen(encoder, batch)
    real = batch.mask.bool()
    assert len(seen) == len(expected) == encoder.layers
    for layer, output in zip(seen, expected, strict=True):
        bias = _block(layer).bias
        whole = _mixed(layer) + (0 if bias is None else bias)
        torch.testing.assert_close(whole[real], output[real], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", [name for name in FAMILIES if name not in PRE_NORM])
def test_residual_and_norm_reproduce_the_state_after_attention(name: str) -> None:
    encoder, batch = _double(name)
    expected = _outputs(encoder, batch, NORMED.get(name, "attention.output.LayerNorm"))
    real = batch.mask.bool()
    for layer, output in zip(_seen(encoder, batch), expected, strict=True):
        block = _block(layer)
        assert block.norm is not None and block.bias is not None
        state = block.norm(_mixed(layer) + block.bias + block.residual)
        torch.testing.assert_close(state[real], output[real], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", FAMILIES)
def test_what_heads_give_is_carried_on_to_the_end_of_the_layer(name: str) -> None:
    encoder, batch = _double(name)
    expected: list[Tensor] = []

    def keep(_module: Any, _given: Any, returned: Any) -> None:
        expected.append(returned[0] if isinstance(returned, tuple) else returned)

    reference = models.reference(encoder).to(next(encoder.model.parameters()).dtype)
    for module in reference.modules():
        if type(module).__name__ in LAYERS:
            module.register_forward_hook(keep)
    with torch.inference_mode():
        padding = reference.config.pad_token_id or 0
        reference(input_ids=batch.ids.masked_fill(batch.mask == 0, padding), attention_mask=batch.mask)
        real = batch.mask.bool()
        for layer, states in zip(_seen(encoder, batch), expected, strict=True):
            assert layer.context is not None
            torch.testing.assert_close(_block(layer).carry_on(layer.context)[real], states[real], atol=1e-5, rtol=1e-5)
            twice = _block(layer).carry_on(layer.context.repeat(2, 1, 1, 1))
            torch.testing.assert_close(twice[3:][real], states[real], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_residual_is_the_hidden_state_below(name: str) -> None:
    encoder, batch = _double(name)
    seen: list[LayerActivations] = []
    with torch.inference_mode():
        hidden = encoder.run(batch, on_layer=seen.append, hidden=True).hidden
    for number, layer in enumerate(seen):
        torch.testing.assert_close(_block(layer).residual, hidden[number], atol=0, rtol=0)
        assert (_block(layer).norm is None) == (name in PRE_NORM)


def test_a_copy_is_taught_and_teaching_twice_is_teaching_once() -> None:
    encoder = models.wrapped(models.model("bert"), "bert")
    copied: Any = copy.deepcopy(encoder.model)
    assert teach(copied) == encoder.layers
    hooks = [len(m._forward_pre_hooks) for m in copied.modules() if type(m).__name__ in LAYERS]
    assert hooks == [1] * encoder.layers
    batch = models.batch(encoder.tokenise(models.inputs()[:1]))
    assert all(layer.block is not None for layer in _seen(models.wrapped(copied, "bert"), batch))
