"""Gradients of attention, and activations around attention, against finite differences and by hand."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import tiny_models
from bertology.encoder.attention_hook import Gates, LayerActivations
from bertology.encoder.encoder import ModelInputs, ModelOutput, TaskEncoder
from tiny_models import FAMILIES, HEADS

PROBE = torch.randn(tiny_models.WIDTH, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def _double_encoder(name: str, kind: str = "Model") -> TaskEncoder:
    return tiny_models.wrap_model(tiny_models.model(name, kind).double(), name)


def _score(batch: ModelInputs) -> Callable[[ModelOutput], Tensor]:
    """A non-linear scalar of the last layer, summed over inputs."""
    mask = batch.attention_mask.bool()
    return lambda output: (output.hidden_states[-1][mask] @ PROBE.to(output.hidden_states[-1])).tanh().sum()


def _gradients(encoder: TaskEncoder, batch: ModelInputs) -> list[LayerActivations]:
    activations: list[LayerActivations] = []
    encoder.forward(batch, on_layer=activations.append, hidden=True, objective=_score(batch))
    return activations


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_attention_gradients_are_finite_differences(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Attention weights of a second model, computed by transformers' eager function, are changed by a step."""
    encoder = _double_encoder(name)
    reference = tiny_models.reference(encoder).double()
    batch = tiny_models.batch(encoder.tokenise(tiny_models.inputs()[1:3]))
    change: dict[str, Any] = {}

    def eager(module: Any, query: Any, key: Any, value: Any, mask: Any, scaling: float, **_: Any) -> Any:
        weights = torch.softmax(query @ key.transpose(2, 3) * scaling + mask, dim=-1)
        if change["calls"] == change["layer"]:
            weights = weights.clone()
            weights[change["at"]] += change["step"]
        change["calls"] += 1
        return (weights @ value).transpose(1, 2), weights

    monkeypatch.setattr(sys.modules[type(reference).__module__], "eager_attention_forward", eager)

    def score(layer: int, at: tuple[int, ...], step: float) -> Tensor:
        change.update(layer=layer, at=at, step=step, calls=0)
        with torch.no_grad():
            output = reference(input_ids=batch.input_ids, attention_mask=batch.attention_mask)
        assert change["calls"] == encoder.layers
        return _score(batch)(ModelOutput((output.last_hidden_state,), {}))

    activations = _gradients(encoder, batch)
    assert len(activations) == encoder.layers
    for layer, at in [(0, (0, 1, 2, 0)), (0, (1, 3, 5, 4)), (1, (1, 0, 3, 3)), (1, (0, 2, 1, 1))]:
        difference = (score(layer, at, 1e-5) - score(layer, at, -1e-5)) / 2e-5
        gradient = activations[layer].gradient
        assert gradient is not None
        torch.testing.assert_close(gradient[at], difference, atol=1e-8, rtol=1e-5)
        assert float(gradient[at].abs()) > 1e-6


@pytest.mark.parametrize("name", FAMILIES)
def test_attention_times_its_gradient_is_the_gradient_of_the_gate(name: str) -> None:
    """Michel et al. (2019): the derivative with respect to a head's gate is the sum of A * dL/dA."""
    encoder = _double_encoder(name)
    batch = tiny_models.batch(encoder.tokenise(tiny_models.inputs()[:2]))
    score = _score(batch)
    activations = _gradients(encoder, batch)
    step, tolerance = tiny_models.step_and_tolerance(name)
    for layer, head in [(0, 1), (encoder.layers - 1, 2)]:
        values: list[Tensor] = []
        for change in (step, -step):
            scale = torch.ones(encoder.layers, HEADS, dtype=torch.float64)
            scale[layer, head] += change
            with torch.no_grad():
                values.append(score(encoder.with_gates(Gates(scale=scale)).forward(batch, hidden=True)))
        gradient = activations[layer].gradient
        assert gradient is not None
        product = (activations[layer].attention * gradient)[:, head].sum()
        torch.testing.assert_close(product, (values[0] - values[1]) / (2 * step), atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("name", FAMILIES)
def test_gradients_do_not_depend_on_the_rest_of_the_batch(name: str) -> None:
    encoder = tiny_models.encoder(name)
    tokens = encoder.tokenise(tiny_models.inputs()[:4])
    together = _gradients(encoder, tiny_models.batch(tokens))
    for row, row_tokens in enumerate(tokens):
        alone = _gradients(encoder, tiny_models.batch([row_tokens]))
        for expected, actual in zip(alone, together, strict=True):
            assert expected.gradient is not None
            assert actual.gradient is not None
            n = len(row_tokens)
            torch.testing.assert_close(expected.gradient[0], actual.gradient[row, :, :n, :n], atol=1e-4, rtol=1e-3)


def test_attention_that_the_objective_does_not_depend_on_has_gradient_zero() -> None:
    encoder = tiny_models.encoder("bert")
    batch = tiny_models.batch(encoder.tokenise(tiny_models.inputs()[:2]))
    activations: list[LayerActivations] = []
    encoder.forward(
        batch, on_layer=activations.append, hidden=True, objective=lambda output: output.hidden_states[1].sum().sin()
    )
    gradients = [layer.gradient for layer in activations]
    assert gradients[0] is not None
    assert gradients[1] is not None
    assert float(gradients[0].abs().sum()) > 0
    assert float(gradients[1].abs().sum()) == 0


@pytest.mark.parametrize("name", FAMILIES)
def test_head_outputs_are_attention_times_values(name: str) -> None:
    encoder = tiny_models.encoder(name)
    batch = tiny_models.batch(encoder.tokenise(tiny_models.inputs()[:3]))
    activations: list[LayerActivations] = []
    with torch.inference_mode():
        encoder.forward(batch, on_layer=activations.append)
    for layer in activations:
        assert layer.value is not None
        assert layer.head_outputs is not None
        torch.testing.assert_close(layer.attention @ layer.value, layer.head_outputs)
        sums = layer.attention.sum(-1).transpose(1, 2)[batch.attention_mask.bool()]
        torch.testing.assert_close(sums, torch.ones_like(sums))


def test_queries_keys_and_values_of_bert_match_a_manual_computation() -> None:
    encoder = tiny_models.encoder("bert")
    batch = tiny_models.batch(encoder.tokenise(tiny_models.inputs()[:3]))
    activations: list[LayerActivations] = []
    with torch.inference_mode():
        hidden = encoder.forward(batch, on_layer=activations.append, hidden=True).hidden_states
        mask = (1 - batch.attention_mask[:, None, None]) * -1e9
        for number, layer in enumerate(activations):
            module = encoder.model.encoder.layer[number].attention.self
            by_hand = {
                name: getattr(module, name)(hidden[number]).unflatten(-1, (HEADS, -1)).transpose(1, 2)
                for name in ("query", "key", "value")
            }
            for name, expected in by_hand.items():
                torch.testing.assert_close(getattr(layer, name), expected)
            scores = by_hand["query"] @ by_hand["key"].transpose(-1, -2) / (tiny_models.WIDTH / HEADS) ** 0.5
            torch.testing.assert_close(layer.attention, torch.softmax(scores + mask, -1), atol=1e-6, rtol=1e-5)
