"""Integrated gradients are complete, and equal those of an independent implementation."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import planted
import tiny_models
from bertology.analyses.attention.integrated_gradients import TOTAL, integrated_gradients, layer_integrated_gradients
from bertology.encoder.attention_hook import Gates
from bertology.encoder.encoder import ModelInputs, ModelOutput
from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.encoder.token_batch import TokenBatch
from bertology.recording.objectives import build_objective
from bertology.recording.recorder import record
from bertology.results.shapes import HeadGrid, LayerCurve

CORPUS = planted.make_corpus("The keys to the cabinet are on the table.", "A dog!", "It rains.")


def encoder() -> HuggingFaceEncoder:
    return tiny_models.encoder("bert", "ForMaskedLM")


def score_of(batch: ModelInputs, vocab_size: int) -> Any:
    """A smooth function of the logits at all tokens."""
    weights = torch.randn(vocab_size, generator=torch.Generator().manual_seed(1))
    token_mask = batch.attention_mask.bool()

    def total(output: ModelOutput) -> Tensor:
        return (output.logits["mlm"].float()[token_mask] @ weights * 0.02).tanh().sum()

    return total


def test_attributions_sum_to_the_change_from_zero_attention() -> None:
    model = encoder()
    recording = record(model, CORPUS, [])
    curve, grid = (
        integrated_gradients(recording, None, model, integration_steps=24, show=show) for show in ("layers", "heads")
    )
    assert isinstance(curve, LayerCurve) and isinstance(grid, HeadGrid)
    for layer in range(model.layers):
        changes: list[float] = []
        for recorded_input in recording.inputs:
            inputs, objective = build_objective(model, "mlm", TokenBatch([recorded_input]), 0)
            scale = torch.ones(model.layers, model.heads)
            scale[layer] = 0
            with torch.no_grad():
                without_attention = objective(model.with_gates(Gates(scale=scale)).forward(inputs))
                changes.append(float(objective(model.forward(inputs)) - without_attention))
        np.testing.assert_allclose(curve.measures[TOTAL].value[layer], np.mean(changes), atol=2e-3)
        np.testing.assert_allclose(grid.measures[TOTAL].value[layer].sum(), np.mean(changes), atol=2e-3)


def test_attributions_equal_those_of_an_independent_implementation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eager attention of transformers in a second model, with one layer's weights replaced by a scaled leaf."""
    model = encoder()
    tokens = model.tokenise(tiny_models.inputs()[1:3])
    batch = tiny_models.batch(tokens)
    objective = score_of(batch, int(model.model.config.vocab_size))
    layer, steps = 1, 6
    attention, attributions = layer_integrated_gradients(model, batch, objective, layer, steps)

    reference = tiny_models.reference(model)
    state: dict[str, Any] = {"n_calls": 0, "scaled": None}

    def eager(module: Any, query: Any, key: Any, value: Any, mask: Any, scaling: float, **_: Any) -> Any:
        scores = query @ key.transpose(2, 3) * scaling
        weights = torch.softmax(scores if mask is None else scores + mask, -1)
        if state["n_calls"] == layer:
            weights = state["scaled"] = (weights * state["point"]).detach().requires_grad_()
        state["n_calls"] += 1
        return (weights @ value).transpose(1, 2).contiguous(), weights

    monkeypatch.setattr(sys.modules[type(reference).__module__], "eager_attention_forward", eager)
    points, widths = np.polynomial.legendre.leggauss(steps)
    integral: Any = 0
    for point, width in zip((points + 1) / 2, widths / 2, strict=True):
        state |= {"n_calls": 0, "point": float(point)}
        logits = reference(
            batch.input_ids, attention_mask=batch.attention_mask, token_type_ids=batch.token_type_ids
        ).logits
        (gradient,) = torch.autograd.grad(objective(ModelOutput((), {"mlm": logits})), state["scaled"])
        integral = integral + gradient * float(width)
    token_mask = batch.attention_mask.bool()
    pairs = (token_mask[:, None, :, None] & token_mask[:, None, None, :]).expand_as(attributions)
    torch.testing.assert_close(attributions[pairs], (attention * integral)[pairs], atol=1e-6, rtol=1e-4)
    assert float(attributions.abs().max()) > 0.05


def test_without_special_tokens_their_rows_and_columns_do_not_count() -> None:
    model = encoder()
    recording = record(model, CORPUS, [])
    included, excluded = (
        integrated_gradients(
            recording,
            None,
            model,
            integration_steps=2,
            normalise="none",
            show="heads",
            special_tokens=special_tokens,
        )
        for special_tokens in ("include", "exclude")
    )
    assert isinstance(included, HeadGrid) and isinstance(excluded, HeadGrid)
    special_targets = {"attribution for [CLS]", "attribution for [SEP]"}
    assert special_targets <= set(included.measures) and not special_targets & set(excluded.measures)
    assert excluded.measures[TOTAL] == included.measures[TOTAL]
    layer, means = 1, list[Any]()
    for recorded_input in recording.inputs:
        batch = TokenBatch([recorded_input])
        inputs, objective = build_objective(model, "mlm", batch, 0)
        _, attributions = layer_integrated_gradients(model, inputs, objective, layer, 2)
        non_special, masked = batch.non_special_mask[0], TokenBatch([recorded_input], "cpu", inputs).mlm_mask[0]
        means.append(attributions[0].abs()[:, non_special][:, :, non_special & ~masked].mean((1, 2)).numpy())
    # A sentence with all non-special tokens masked has no such target.
    expected = np.nanmean(np.stack(means), axis=0)
    np.testing.assert_allclose(
        excluded.measures["attribution for all unmasked tokens"].value[layer], expected, rtol=1e-4
    )


def test_the_untrained_model_is_a_baseline() -> None:
    model = encoder()
    untrained = model.randomised(seed=0)
    curve = integrated_gradients(record(model, CORPUS, []), record(untrained, CORPUS, []), model, integration_steps=2)
    alone = integrated_gradients(record(untrained, CORPUS, []), None, untrained, integration_steps=2)
    assert isinstance(curve, LayerCurve) and isinstance(alone, LayerCurve)
    assert TOTAL in alone.measures
    for name, estimates in alone.measures.items():
        assert curve.baselines["untrained model"][name] == estimates


def test_a_sample_of_the_inputs_is_said() -> None:
    model = encoder()
    recording = record(model, CORPUS, [])
    sampled = integrated_gradients(recording, None, model, integration_steps=1, sample_size=2)
    assert isinstance(sampled, LayerCurve)
    assert sampled.sample == {"inputs": len(recording), "sampled inputs": 2} and sampled.measures[TOTAL].n.max() == 2
    everything = integrated_gradients(recording, None, model, integration_steps=1)
    assert isinstance(everything, LayerCurve)
    assert everything.sample["sampled inputs"] == len(recording)
