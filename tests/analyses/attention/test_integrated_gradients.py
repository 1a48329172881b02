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


def score(batch: ModelInputs, width: int) -> Any:
    probe = torch.randn(width, generator=torch.Generator().manual_seed(1))
    real = batch.attention_mask.bool()

    def of(output: ModelOutput) -> Tensor:
        return (output.logits["mlm"].float()[real] @ probe * 0.02).tanh().sum()

    return of


def test_attributions_sum_to_the_change_from_zero_attention() -> None:
    model = encoder()
    recording = record(model, CORPUS, [])
    curve, grid = (
        integrated_gradients.function(
            recording, None, model, **integrated_gradients.resolve_options({"integration_steps": 24, "show": show})
        )
        for show in ("layers", "heads")
    )
    assert isinstance(curve, LayerCurve) and isinstance(grid, HeadGrid)
    for layer in range(model.layers):
        changes: list[float] = []
        for recorded_input in recording.inputs:
            fed, objective = build_objective(model, "mlm", TokenBatch([recorded_input]), 0)
            scale = torch.ones(model.layers, model.heads)
            scale[layer] = 0
            with torch.no_grad():
                without = objective(model.with_gates(Gates(scale=scale)).forward(fed))
                changes.append(float(objective(model.forward(fed)) - without))
        np.testing.assert_allclose(curve.measures[TOTAL].value[layer], np.mean(changes), atol=2e-3)
        np.testing.assert_allclose(grid.measures[TOTAL].value[layer].sum(), np.mean(changes), atol=2e-3)


def test_attributions_equal_those_of_an_independent_implementation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eager attention of transformers in a second model, with its attention replaced by a scaled leaf."""
    model = encoder()
    pieces = model.tokenise(tiny_models.inputs()[1:3])
    batch = tiny_models.batch(pieces)
    objective = score(batch, int(model.model.config.vocab_size))
    layer, steps = 1, 6
    attention, shares = layer_integrated_gradients(model, batch, objective, layer, steps)

    reference = tiny_models.reference(model)
    calls: dict[str, Any] = {"number": 0, "scaled": None}

    def eager(module: Any, query: Any, key: Any, value: Any, mask: Any, scaling: float, **_: Any) -> Any:
        scores = query @ key.transpose(2, 3) * scaling
        weights = torch.softmax(scores if mask is None else scores + mask, -1)
        if calls["number"] == layer:
            weights = calls["scaled"] = (weights * calls["point"]).detach().requires_grad_()
        calls["number"] += 1
        return (weights @ value).transpose(1, 2).contiguous(), weights

    monkeypatch.setattr(sys.modules[type(reference).__module__], "eager_attention_forward", eager)
    points, widths = np.polynomial.legendre.leggauss(steps)
    summed: Any = 0
    for point, width in zip((points + 1) / 2, widths / 2, strict=True):
        calls |= {"number": 0, "point": float(point)}
        logits = reference(
            batch.input_ids, attention_mask=batch.attention_mask, token_type_ids=batch.token_type_ids
        ).logits
        (slope,) = torch.autograd.grad(objective(ModelOutput((), {"mlm": logits})), calls["scaled"])
        summed = summed + slope * float(width)
    real = batch.attention_mask.bool()
    pairs = (real[:, None, :, None] & real[:, None, None, :]).expand_as(shares)
    torch.testing.assert_close(shares[pairs], (attention * summed)[pairs], atol=1e-6, rtol=1e-4)
    assert float(shares.abs().max()) > 0.05


def test_without_special_tokens_their_rows_and_columns_do_not_count() -> None:
    model = encoder()
    recording = record(model, CORPUS, [])
    options: dict[str, Any] = {"integration_steps": 2, "normalise": "none", "show": "heads"}
    kept, dropped = (
        integrated_gradients.function(
            recording,
            None,
            model,
            **integrated_gradients.resolve_options({**options, "special_tokens": special_tokens}),
        )
        for special_tokens in ("include", "exclude")
    )
    assert isinstance(kept, HeadGrid) and isinstance(dropped, HeadGrid)
    assert not {"attribution for [CLS]", "attribution for [SEP]"} & set(dropped.measures)
    assert dropped.measures[TOTAL] == kept.measures[TOTAL]
    layer, means = 1, list[Any]()
    for recorded_input in recording.inputs:
        batch = TokenBatch([recorded_input])
        fed, objective = build_objective(model, "mlm", batch, 0)
        _, shares = layer_integrated_gradients(model, fed, objective, layer, 2)
        ordinary, masked = batch.non_special_mask[0], TokenBatch([recorded_input], "cpu", fed).mlm_mask[0]
        means.append(shares[0].abs()[:, ordinary][:, :, ordinary & ~masked].mean((1, 2)).numpy())
    # A sentence with all non-special tokens masked has no such target.
    expected = np.nanmean(np.stack(means), axis=0)
    np.testing.assert_allclose(
        dropped.measures["attribution for all unmasked tokens"].value[layer], expected, rtol=1e-4
    )


def test_the_untrained_model_is_a_baseline() -> None:
    model = encoder()
    untrained = model.randomised(seed=0)
    options = integrated_gradients.resolve_options({"integration_steps": 2})
    shown = integrated_gradients.function(record(model, CORPUS, []), record(untrained, CORPUS, []), model, **options)
    alone = integrated_gradients.function(record(untrained, CORPUS, []), None, untrained, **options)
    assert isinstance(shown, LayerCurve) and isinstance(alone, LayerCurve)
    assert TOTAL in alone.measures
    for name, estimates in alone.measures.items():
        assert shown.baselines["untrained model"][name] == estimates
