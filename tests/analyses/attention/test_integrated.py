"""Integrated gradients along a scaled map: complete, and those of an independent path through transformers."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import models
import planted
from bertology.analyses.attention.integrated import TOTAL, integrated, integrated_gradients
from bertology.encoder.attend import Gates
from bertology.encoder.encoder import Batch, Output
from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.recording.frame import Frame
from bertology.recording.objectives import objective_for
from bertology.recording.recorder import record
from bertology.results.shapes import HeadGrid, LayerCurve

CORPUS = planted.corpus_of("The keys to the cabinet are on the table.", "A dog!", "It rains.")


def encoder() -> HuggingFaceEncoder:
    return models.encoder("bert", "ForMaskedLM")


def score(batch: Batch, width: int) -> Any:
    probe = torch.randn(width, generator=torch.Generator().manual_seed(1))
    real = batch.mask.bool()

    def of(output: Output) -> Tensor:
        return (output.logits["mlm"].float()[real] @ probe * 0.02).tanh().sum()

    return of


def test_shares_sum_to_the_change_from_no_attention() -> None:
    model = encoder()
    recording = record(model, CORPUS, [])
    curve, grid = (
        integrated.function(recording, None, model, **integrated.settled({"steps": 24, "by": by}))
        for by in ("layer", "head")
    )
    assert isinstance(curve, LayerCurve) and isinstance(grid, HeadGrid)
    for layer in range(model.layers):
        changes: list[float] = []
        for entry in recording.entries:
            fed, objective = objective_for(model, "mlm", Frame([entry]), 0)
            scale = torch.ones(model.layers, model.heads)
            scale[layer] = 0
            with torch.no_grad():
                without = objective(model.gated(Gates(scale=scale)).run(fed))
                changes.append(float(objective(model.run(fed)) - without))
        np.testing.assert_allclose(curve.measures[TOTAL].value[layer], np.mean(changes), atol=2e-3)
        np.testing.assert_allclose(grid.measures[TOTAL].value[layer].sum(), np.mean(changes), atol=2e-3)


def test_each_weight_has_its_share_by_an_independent_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """transformers' own eager attention in a second model, its map replaced by a leaf that is scaled by hand."""
    model = encoder()
    pieces = model.tokenise(models.inputs()[1:3])
    batch = models.batch(pieces)
    objective = score(batch, int(model.model.config.vocab_size))
    layer, steps = 1, 6
    attention, shares = integrated_gradients(model, batch, objective, layer, steps)

    reference = models.reference(model)
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
        logits = reference(batch.ids, attention_mask=batch.mask, token_type_ids=batch.types).logits
        (slope,) = torch.autograd.grad(objective(Output((), {"mlm": logits})), calls["scaled"])
        summed = summed + slope * float(width)
    real = batch.mask.bool()
    pairs = (real[:, None, :, None] & real[:, None, None, :]).expand_as(shares)
    torch.testing.assert_close(shares[pairs], (attention * summed)[pairs], atol=1e-6, rtol=1e-4)
    assert float(shares.abs().max()) > 0.05


def test_without_special_tokens_their_rows_and_columns_do_not_count() -> None:
    model = encoder()
    recording = record(model, CORPUS, [])
    options: dict[str, Any] = {"steps": 2, "scale": "raw", "by": "head"}
    kept, dropped = (
        integrated.function(recording, None, model, **integrated.settled({**options, "special": special}))
        for special in ("keep", "drop")
    )
    assert isinstance(kept, HeadGrid) and isinstance(dropped, HeadGrid)
    assert not {"[CLS]", "[SEP]"} & set(dropped.measures)
    assert dropped.measures[TOTAL] == kept.measures[TOTAL]
    layer, means = 1, list[Any]()
    for entry in recording.entries:
        frame = Frame([entry])
        fed, objective = objective_for(model, "mlm", frame, 0)
        _, shares = integrated_gradients(model, fed, objective, layer, 2)
        ordinary, masked = frame.ordinary[0], Frame([entry], "cpu", fed).masked[0]
        means.append(shares[0].abs()[:, ordinary][:, :, ordinary & ~masked].mean((1, 2)).numpy())
    # A sentence of which every ordinary piece is masked has no such target.
    expected = np.nanmean(np.stack(means), axis=0)
    np.testing.assert_allclose(dropped.measures["all unmasked"].value[layer], expected, rtol=1e-4)


def test_random_weights_stand_beside() -> None:
    model = encoder()
    fresh = model.randomised(seed=0)
    options = integrated.settled({"steps": 2})
    shown = integrated.function(record(model, CORPUS, []), record(fresh, CORPUS, []), model, **options)
    alone = integrated.function(record(fresh, CORPUS, []), None, fresh, **options)
    assert isinstance(shown, LayerCurve) and isinstance(alone, LayerCurve)
    assert TOTAL in alone.measures
    for name, estimates in alone.measures.items():
        assert shown.baselines["random weights"][name] == estimates
