"""Planted gradients are averaged over the right weights; a model's own gradients reach the table unchanged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import planted
from bertology.analyses.attention.importance import IMPORTANCE, IMPORTANCE_ORDINARY, importance
from bertology.analyses.run import Subject, run
from bertology.encoder.attend import LayerActivations
from bertology.encoder.load import load
from bertology.encoder.pieces import Special
from bertology.errors import Refusal
from bertology.measures.attention.special_tokens import SpecialTokens
from bertology.measures.attention.weight_importance import ALL, TARGETS, targets_of
from bertology.recording.frame import Frame
from bertology.recording.objectives import masked_positions
from bertology.recording.recorder import Policy, record
from bertology.recording.recording import Recording
from bertology.results.shapes import HeadGrid, LayerCurve

TEXTS = ("the cat saw the dog , then ran .", "a bird", ("where is the cat ?", "the cat is here ."))


def masked_frame() -> Frame:
    """Every fourth ordinary piece is masked."""
    plain = Frame(planted.entries_of(planted.corpus_of(*TEXTS)))
    masked = plain.ordinary & (torch.arange(plain.width) % 4 == 2)
    fed = plain.batch.__class__(plain.batch.ids.masked_fill(masked, 3), plain.batch.types, plain.batch.mask)
    return Frame(plain.entries, "cpu", fed)


def planted_layer(frame: Frame, *, causal: bool = False) -> LayerActivations:
    generator = torch.Generator().manual_seed(0)
    shape = (len(frame.entries), 2, frame.width, frame.width)
    attention = torch.rand(shape, generator=generator) * frame.real[:, None, None, :]
    attention = attention.tril() if causal else attention
    return LayerActivations(0, attention, gradient=torch.randn(shape, generator=generator))


def recording_with(values: planted.Floats) -> Recording:
    """A recording of importance values (sentence, layer, head, label)."""
    recording = planted.recording_of(planted.corpus_of(*TEXTS), [[planted.uniform] * values.shape[2]] * values.shape[1])
    sites: dict[str, Any] = {**recording.sites, IMPORTANCE.identity: list(values)}
    return Recording(recording.encoder, recording.corpus, recording.entries, sites)


@pytest.mark.parametrize("special", ["keep", "drop"])
@pytest.mark.parametrize("causal", [False, True])
def test_means_are_those_of_plain_loops(causal: bool, special: SpecialTokens) -> None:
    frame = masked_frame()
    layer = planted_layer(frame, causal=causal)
    assert layer.gradient is not None
    site = IMPORTANCE if special == "keep" else IMPORTANCE_ORDINARY
    found = site.reduce(layer, frame, targets_of(frame, special)).numpy()
    for row, entry in enumerate(frame.entries):
        n = len(entry.pieces)
        masked = frame.masked[row, :n].numpy()
        kind_of = entry.pieces.special
        punctuation = np.array([token in ".,?" for token in entry.pieces.tokens])
        kinds = [~masked, kind_of == Special.CLS, kind_of == Special.SEP, punctuation & ~masked]
        kinds += [(kind_of == Special.NONE) & ~punctuation & ~masked, masked]
        sources = kind_of >= 0 if special == "keep" else kind_of == Special.NONE
        kinds = [kind & sources for kind in kinds]
        for head in range(2):
            slopes = np.abs(layer.gradient[row, head, :n, :n].numpy())
            alpha = layer.attention[row, head, :n, :n].numpy()
            for quantity, values in enumerate((slopes, alpha * slopes)):
                for place, kind in enumerate(kinds):
                    counted = sources[:, None] & kind & (np.tri(n, dtype=bool) if causal else True)
                    label = quantity * len(TARGETS) + place
                    if counted.any():
                        np.testing.assert_allclose(found[row, head, label], values[counted].mean(), rtol=1e-5)
                    else:
                        assert np.isnan(found[row, head, label])


def test_a_target_without_effect_has_the_ratio_zero_and_noise_one() -> None:
    values = np.random.default_rng(0).uniform(1, 2, size=(3, 2, 4, 2 * len(TARGETS)))
    values[..., TARGETS.index("[SEP]")] = 0
    values[..., TARGETS.index("other")] = 3 * values[..., 0]
    values[0, ..., TARGETS.index("punctuation")] = np.nan
    curve = importance.function(recording_with(values), None, **importance.settled({}))
    assert isinstance(curve, LayerCurve) and curve.first == 1
    np.testing.assert_allclose(curve.measures["[SEP] / all"].value, 0)
    np.testing.assert_allclose(curve.measures["other / all"].value, 3)
    there = values[1:, :, :, TARGETS.index("punctuation")].mean((0, 2)) / values[1:, :, :, 0].mean((0, 2))
    np.testing.assert_allclose(curve.measures["punctuation / all"].value, there)
    assert (curve.measures["punctuation / all"].n == 2).all()
    assert (curve.baselines["any unmasked piece"]["[SEP] / all"].value == 1).all()


def test_raw_values_and_heads_on_request() -> None:
    values = np.random.default_rng(0).uniform(1, 2, size=(3, 2, 4, 2 * len(TARGETS)))
    grid = importance.function(
        recording_with(values), None, **importance.settled({"quantity": "product", "scale": "raw", "by": "head"})
    )
    assert isinstance(grid, HeadGrid)
    for place, target in enumerate(TARGETS):
        np.testing.assert_allclose(grid.measures[target].value, values[..., len(TARGETS) + place].mean(0))
    assert grid.baselines["any unmasked piece"]["[SEP]"] == grid.measures[ALL]


def test_a_models_gradients_are_those_of_its_loss() -> None:
    """Against torch.autograd through the model's own eager attention, masked by hand."""
    encoder = load("tiny")
    corpus = planted.corpus_of("the cat saw the dog, then ran.", "a bird in the hand")
    recording = record(encoder, corpus, [IMPORTANCE], policy=Policy(seed=3))
    for index, entry in enumerate(recording.entries):
        frame = Frame([entry])
        masked = masked_positions(frame, 3)
        model: Any = encoder.model  # type: ignore[attr-defined]  # no part of the protocol
        model.config._attn_implementation = "eager"
        ids = frame.batch.ids.masked_fill(masked, encoder.mask_id or 0)
        returned = model(ids, token_type_ids=frame.batch.types, output_attentions=True)
        loss = torch.nn.functional.cross_entropy(
            returned.prediction_logits[masked], frame.batch.ids[masked], reduction="sum"
        )
        for layer, gradient in enumerate(torch.autograd.grad(loss, returned.attentions)):
            expected = gradient[0][:, :, ~masked[0]].abs().mean((1, 2))
            np.testing.assert_allclose(recording[IMPORTANCE][index][layer, :, 0], expected.numpy(), rtol=1e-4)


def test_without_special_tokens_they_are_neither_sources_nor_targets() -> None:
    corpus = planted.corpus_of("the cat saw the dog, then ran.", "a bird in the hand")
    result = run(importance, Subject(corpus, load("tiny")), {"special": "drop"})
    assert isinstance(result.data, LayerCurve)
    assert set(result.data.measures) == {ALL, "punctuation / all", "other / all", "masked / all"}
    with pytest.raises(Refusal, match="No input has a piece that counts"):
        run(importance, Subject(planted.corpus_of("", ""), load("tiny")), {"special": "drop"})


def test_a_model_without_a_loss_is_refused() -> None:
    import models

    with pytest.raises(Refusal, match="has no head for the objective"):
        run(importance, Subject(planted.corpus_of("a dog"), models.encoder("bert")))
