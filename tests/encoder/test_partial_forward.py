"""A layer run at selected positions gives the states of the full layer at these positions."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import tiny_models
from bertology.encoder.encoder import ModelInputs, TaskEncoder
from bertology.encoder.families import is_layer
from bertology.encoder.partial_forward import ReadPositions, forward_at_positions, has_plain_qkv

PLAIN_QKV = ("bert", "roberta", "distilbert", "electra", "albert")
POSITIONS = torch.tensor([[0, 3, 1], [0, 0, 2], [4, 1, 0]])


def double_encoder(name: str) -> tuple[TaskEncoder, ModelInputs]:
    encoder = tiny_models.wrap_model(tiny_models.model(name).double(), name)
    return encoder, tiny_models.batch(encoder.tokenise(tiny_models.inputs()[:3]))


def layer_states(encoder: TaskEncoder, batch: ModelInputs) -> list[tuple[Any, Tensor, Tensor]]:
    """Every layer with its input and output states."""
    states: list[tuple[Any, Tensor, Tensor]] = []

    def append(module: Any, args: Any, returned: Any) -> None:
        states.append((module, args[0], returned[0] if isinstance(returned, tuple) else returned))

    hooks = [module.register_forward_hook(append) for module in encoder.model.modules() if is_layer(module)]
    with torch.no_grad():
        encoder.forward(batch)
    for hook in hooks:
        hook.remove()
    return states


@pytest.mark.parametrize("name", PLAIN_QKV)
@torch.no_grad()
def test_selected_positions_equal_those_of_the_full_layer(name: str) -> None:
    encoder, batch = double_encoder(name)
    assert not batch.attention_mask.all(), "the batch has padding"
    layers = layer_states(encoder, batch)
    assert len(layers) == encoder.layers
    for positions in (POSITIONS, POSITIONS[:, :1]):
        read_positions = ReadPositions(positions, batch.attention_mask.bool())
        for layer, states, output in layers:
            selected = forward_at_positions(layer, states, read_positions, encoder.heads)
            torch.testing.assert_close(selected, read_positions.gather(output), atol=1e-10, rtol=1e-10)


@torch.no_grad()
def test_padding_is_masked() -> None:
    encoder, batch = double_encoder("bert")
    layer, states, _ = layer_states(encoder, batch)[0]
    masked = ReadPositions(POSITIONS, batch.attention_mask.bool())
    unmasked = ReadPositions(POSITIONS, torch.ones_like(masked.attention_mask))
    noisy = torch.where(masked.attention_mask[..., None], states, torch.randn_like(states))
    expected = forward_at_positions(layer, states, masked, encoder.heads)
    torch.testing.assert_close(forward_at_positions(layer, noisy, masked, encoder.heads), expected, atol=0, rtol=0)
    assert float((forward_at_positions(layer, noisy, unmasked, encoder.heads) - expected).abs().max()) > 1e-3


@pytest.mark.parametrize("name", tiny_models.FAMILIES)
def test_families_with_other_score_terms_have_no_plain_projections(name: str) -> None:
    encoder = tiny_models.encoder(name)
    layers = [module for module in encoder.model.modules() if is_layer(module)]
    assert layers and all(has_plain_qkv(layer) == (name in PLAIN_QKV) for layer in layers)


def test_positions_are_gathered_from_states_and_from_heads() -> None:
    states = torch.randn(3, 5, 8)
    read_positions = ReadPositions(POSITIONS, torch.ones(3, 5, dtype=torch.bool))
    by_head = states.view(3, 5, 2, 4).transpose(1, 2)
    expected = torch.stack([states[row, positions] for row, positions in enumerate(POSITIONS)])
    torch.testing.assert_close(read_positions.gather(states), expected, atol=0, rtol=0)
    from_heads = read_positions.gather_heads(by_head).transpose(1, 2).flatten(2)
    torch.testing.assert_close(from_heads, expected, atol=0, rtol=0)
    twice = read_positions.repeat(2).gather(states.repeat(2, 1, 1))
    torch.testing.assert_close(twice, expected.repeat(2, 1, 1), atol=0, rtol=0)
    assert (
        not read_positions.is_sparse and ReadPositions(POSITIONS[:, :1], torch.ones(3, 4, dtype=torch.bool)).is_sparse
    )
