"""Attention gradients and the sites around attention, against finite differences and by hand."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import models
from bertology.encoder.attend import Gates, LayerActivations
from bertology.encoder.encoder import Batch, Output
from bertology.encoder.huggingface import HuggingFaceEncoder
from models import FAMILIES, HEADS

PROBE = torch.randn(models.WIDTH, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def _double(name: str, kind: str = "Model") -> HuggingFaceEncoder:
    return models.wrapped(models.model(name, kind).double(), name)


def _score(batch: Batch) -> Callable[[Output], Tensor]:
    """A scalar of the top layer, a sum over sentences of something that is not linear."""
    real = batch.mask.bool()
    return lambda output: (output.hidden[-1][real] @ PROBE.to(output.hidden[-1])).tanh().sum()


def _gradients(encoder: HuggingFaceEncoder, batch: Batch) -> list[LayerActivations]:
    seen: list[LayerActivations] = []
    encoder.run(batch, on_layer=seen.append, hidden=True, objective=_score(batch))
    return seen


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_attention_gradients_are_finite_differences(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The weights that a second model computes in transformers' own eager function are moved by a step."""
    encoder = _double(name)
    reference = models.reference(encoder).double()
    batch = models.batch(encoder.tokenise(models.inputs()[1:3]))
    moved: dict[str, Any] = {}

    def eager(module: Any, query: Any, key: Any, value: Any, mask: Any, scaling: float, **_: Any) -> Any:
        weights = torch.softmax(query @ key.transpose(2, 3) * scaling + mask, dim=-1)
        if moved["calls"] == moved["layer"]:
            weights = weights.clone()
            weights[moved["at"]] += moved["step"]
        moved["calls"] += 1
        return (weights @ value).transpose(1, 2), weights

    monkeypatch.setattr(sys.modules[type(reference).__module__], "eager_attention_forward", eager)

    def score(layer: int, at: tuple[int, ...], step: float) -> Tensor:
        moved.update(layer=layer, at=at, step=step, calls=0)
        with torch.no_grad():
            output = reference(input_ids=batch.ids, attention_mask=batch.mask)
        assert moved["calls"] == encoder.layers
        return _score(batch)(Output((output.last_hidden_state,), {}))

    seen = _gradients(encoder, batch)
    assert len(seen) == encoder.layers
    for layer, at in [(0, (0, 1, 2, 0)), (0, (1, 3, 5, 4)), (1, (1, 0, 3, 3)), (1, (0, 2, 1, 1))]:
        difference = (score(layer, at, 1e-5) - score(layer, at, -1e-5)) / 2e-5
        gradient = seen[layer].gradient
        assert gradient is not None
        torch.testing.assert_close(gradient[at], difference, atol=1e-8, rtol=1e-5)
        assert float(gradient[at].abs()) > 1e-6


@pytest.mark.parametrize("name", FAMILIES)
def test_attention_times_its_gradient_is_the_gradient_of_the_gate(name: str) -> None:
    """Michel et al. 2019: the derivative by a head's gate, here by central differences, is the sum of A * dL/dA."""
    encoder = _double(name)
    batch = models.batch(encoder.tokenise(models.inputs()[:2]))
    score = _score(batch)
    seen = _gradients(encoder, batch)
    step, tolerance = models.step_and_tolerance(name)
    for layer, head in [(0, 1), (encoder.layers - 1, 2)]:
        values: list[Tensor] = []
        for change in (step, -step):
            scale = torch.ones(encoder.layers, HEADS, dtype=torch.float64)
            scale[layer, head] += change
            with torch.no_grad():
                values.append(score(encoder.gated(Gates(scale=scale)).run(batch, hidden=True)))
        gradient = seen[layer].gradient
        assert gradient is not None
        product = (seen[layer].attention * gradient)[:, head].sum()
        torch.testing.assert_close(product, (values[0] - values[1]) / (2 * step), atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("name", FAMILIES)
def test_gradients_do_not_depend_on_batch_mates(name: str) -> None:
    encoder = models.encoder(name)
    pieces = encoder.tokenise(models.inputs()[:4])
    together = _gradients(encoder, models.batch(pieces))
    for row, one in enumerate(pieces):
        alone = _gradients(encoder, models.batch([one]))
        for mine, ours in zip(alone, together, strict=True):
            assert mine.gradient is not None
            assert ours.gradient is not None
            n = len(one)
            torch.testing.assert_close(mine.gradient[0], ours.gradient[row, :, :n, :n], atol=1e-4, rtol=1e-3)


def test_maps_that_the_objective_does_not_depend_on_have_gradient_zero() -> None:
    encoder = models.encoder("bert")
    batch = models.batch(encoder.tokenise(models.inputs()[:2]))
    seen: list[LayerActivations] = []
    encoder.run(batch, on_layer=seen.append, hidden=True, objective=lambda output: output.hidden[1].sum().sin())
    gradients = [layer.gradient for layer in seen]
    assert gradients[0] is not None
    assert gradients[1] is not None
    assert float(gradients[0].abs().sum()) > 0
    assert float(gradients[1].abs().sum()) == 0


@pytest.mark.parametrize("name", FAMILIES)
def test_context_is_attention_times_value(name: str) -> None:
    encoder = models.encoder(name)
    batch = models.batch(encoder.tokenise(models.inputs()[:3]))
    seen: list[LayerActivations] = []
    with torch.inference_mode():
        encoder.run(batch, on_layer=seen.append)
    for layer in seen:
        assert layer.value is not None
        assert layer.context is not None
        torch.testing.assert_close(layer.attention @ layer.value, layer.context)
        sums = layer.attention.sum(-1).transpose(1, 2)[batch.mask.bool()]
        torch.testing.assert_close(sums, torch.ones_like(sums))


def test_queries_keys_and_values_of_bert_are_those_made_by_hand() -> None:
    encoder = models.encoder("bert")
    batch = models.batch(encoder.tokenise(models.inputs()[:3]))
    seen: list[LayerActivations] = []
    with torch.inference_mode():
        hidden = encoder.run(batch, on_layer=seen.append, hidden=True).hidden
        mask = (1 - batch.mask[:, None, None]) * -1e9
        for number, layer in enumerate(seen):
            block = encoder.model.encoder.layer[number].attention.self
            by_hand = {
                site: module(hidden[number]).unflatten(-1, (HEADS, -1)).transpose(1, 2)
                for site, module in (("query", block.query), ("key", block.key), ("value", block.value))
            }
            for site, expected in by_hand.items():
                torch.testing.assert_close(getattr(layer, site), expected)
            scores = by_hand["query"] @ by_hand["key"].transpose(-1, -2) / (models.WIDTH / HEADS) ** 0.5
            torch.testing.assert_close(layer.attention, torch.softmax(scores + mask, -1), atol=1e-6, rtol=1e-5)
