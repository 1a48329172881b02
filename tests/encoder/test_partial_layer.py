"""A layer run for some pieces alone gives these pieces what the whole layer gives them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import models
from bertology.encoder.blocks import LAYERS
from bertology.encoder.encoder import Batch
from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.encoder.partial_layer import Reading, for_read_pieces, projected_plainly

PLAIN = ("bert", "roberta", "distilbert", "electra", "albert")
PIECES = torch.tensor([[0, 3, 1], [0, 0, 2], [4, 1, 0]])


def watched(name: str) -> tuple[HuggingFaceEncoder, Batch]:
    encoder = models.wrapped(models.model(name).double(), name)
    return encoder, models.batch(encoder.tokenise(models.inputs()[:3]))


def layers_run(encoder: HuggingFaceEncoder, batch: Batch) -> list[tuple[Any, Tensor, Tensor]]:
    """Every layer that was run, the states it was given, and what it made of them."""
    found: list[tuple[Any, Tensor, Tensor]] = []

    def keep(module: Any, given: Any, returned: Any) -> None:
        found.append((module, given[0], returned[0] if isinstance(returned, tuple) else returned))

    kinds = [module for module in encoder.model.modules() if type(module).__name__ in LAYERS]
    hooks = [module.register_forward_hook(keep) for module in kinds]
    with torch.no_grad():
        encoder.run(batch)
    for hook in hooks:
        hook.remove()
    return found


@pytest.mark.parametrize("name", PLAIN)
@torch.no_grad()
def test_some_pieces_alone_come_out_as_of_the_whole_layer(name: str) -> None:
    encoder, batch = watched(name)
    assert not batch.mask.all(), "padding is among it"
    found = layers_run(encoder, batch)
    assert len(found) == encoder.layers
    for pieces in (PIECES, PIECES[:, :1]):
        reading = Reading(pieces, batch.mask.bool())
        for layer, states, made in found:
            alone = for_read_pieces(layer, states, reading, encoder.heads)
            torch.testing.assert_close(alone, reading.of(made), atol=1e-10, rtol=1e-10)


@torch.no_grad()
def test_padding_is_not_seen() -> None:
    encoder, batch = watched("bert")
    layer, states, _ = layers_run(encoder, batch)[0]
    reading = Reading(PIECES, batch.mask.bool())
    noisy = torch.where(reading.real[..., None], states, torch.randn_like(states))
    expected = for_read_pieces(layer, states, reading, encoder.heads)
    torch.testing.assert_close(for_read_pieces(layer, noisy, reading, encoder.heads), expected, atol=0, rtol=0)
    deaf = for_read_pieces(layer, noisy, Reading(PIECES, torch.ones_like(reading.real)), encoder.heads)
    assert float((deaf - expected).abs().max()) > 1e-3


@pytest.mark.parametrize("name", models.FAMILIES)
def test_families_whose_scores_have_more_to_them_are_not_run_so(name: str) -> None:
    encoder = models.encoder(name)
    kinds = [module for module in encoder.model.modules() if type(module).__name__ in LAYERS]
    assert all(projected_plainly(layer) == (name in PLAIN) for layer in kinds)


def test_readings_are_of_states_and_of_heads_alike() -> None:
    states = torch.randn(3, 5, 8)
    reading = Reading(PIECES, torch.ones(3, 5, dtype=torch.bool))
    by_head = states.view(3, 5, 2, 4).transpose(1, 2)
    expected = torch.stack([states[row, pieces] for row, pieces in enumerate(PIECES)])
    torch.testing.assert_close(reading.of(states), expected, atol=0, rtol=0)
    torch.testing.assert_close(reading.of_heads(by_head).transpose(1, 2).flatten(2), expected, atol=0, rtol=0)
    twice = reading.times(2).of(states.repeat(2, 1, 1))
    torch.testing.assert_close(twice, expected.repeat(2, 1, 1), atol=0, rtol=0)
    assert not reading.few and Reading(PIECES[:, :1], torch.ones(3, 4, dtype=torch.bool)).few
