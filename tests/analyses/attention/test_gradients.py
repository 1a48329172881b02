"""Planted gradients are averaged over the right weights; a model's gradients equal those of autograd."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import planted
from bertology.analyses.attention.gradients import gradient_site, gradients, non_special_gradient_site
from bertology.analyses.importance_by_target import ALL_UNMASKED, TARGETS, target_classes
from bertology.analyses.run import RunInputs, run_analysis
from bertology.encoder.attention_hook import LayerActivations
from bertology.encoder.load import load
from bertology.encoder.token_batch import TokenBatch
from bertology.encoder.tokens import SpecialToken
from bertology.errors import Refusal
from bertology.recording.objectives import masked_positions
from bertology.recording.plan import RecordingConfig
from bertology.recording.recorder import record
from bertology.recording.recording import Recording
from bertology.results.shapes import HeadGrid, LayerCurve
from bertology.statistics.batch_features import SpecialTokens

TEXTS = ("the cat saw the dog , then ran .", "a bird", ("where is the cat ?", "the cat is here ."))


def masked_batch() -> TokenBatch:
    """Every fourth non-special token is masked."""
    plain = TokenBatch(planted.recorded_inputs(planted.make_corpus(*TEXTS)))
    masked = plain.non_special_mask & (torch.arange(plain.padded_length) % 4 == 2)
    fed = plain.model_inputs.__class__(
        plain.model_inputs.input_ids.masked_fill(masked, 3),
        plain.model_inputs.token_type_ids,
        plain.model_inputs.attention_mask,
    )
    return TokenBatch(plain.inputs, "cpu", fed)


def planted_layer(batch: TokenBatch, *, causal: bool = False) -> LayerActivations:
    generator = torch.Generator().manual_seed(0)
    shape = (len(batch.inputs), 2, batch.padded_length, batch.padded_length)
    attention = torch.rand(shape, generator=generator) * batch.token_mask[:, None, None, :]
    attention = attention.tril() if causal else attention
    return LayerActivations(0, attention, gradient=torch.randn(shape, generator=generator))


def recording_with(values: planted.FloatArray) -> Recording:
    """A recording of importance values (sentence, layer, head, label)."""
    recording = planted.make_recording(
        planted.make_corpus(*TEXTS), [[planted.uniform_head] * values.shape[2]] * values.shape[1]
    )
    sites: dict[str, Any] = {**recording.sites, gradient_site.storage_key: list(values)}
    return Recording(recording.encoder, recording.corpus, recording.inputs, sites)


@pytest.mark.parametrize("special", ["include", "exclude"])
@pytest.mark.parametrize("causal", [False, True])
def test_means_equal_plain_loops(causal: bool, special: SpecialTokens) -> None:
    batch = masked_batch()
    layer = planted_layer(batch, causal=causal)
    assert layer.gradient is not None
    site = gradient_site if special == "include" else non_special_gradient_site
    outcome = site.reduce(layer, batch, target_classes(batch, special)).numpy()
    for row, recorded_input in enumerate(batch.inputs):
        n = len(recorded_input.tokens)
        masked = batch.mlm_mask[row, :n].numpy()
        kind_of = recorded_input.tokens.special_kinds
        punctuation = np.array([token in ".,?" for token in recorded_input.tokens.tokens])
        kinds = [~masked, kind_of == SpecialToken.CLS, kind_of == SpecialToken.SEP, punctuation & ~masked]
        kinds += [(kind_of == SpecialToken.NONE) & ~punctuation & ~masked, masked]
        sources = kind_of >= 0 if special == "include" else kind_of == SpecialToken.NONE
        kinds = [kind & sources for kind in kinds]
        for head in range(2):
            slopes = np.abs(layer.gradient[row, head, :n, :n].numpy())
            alpha = layer.attention[row, head, :n, :n].numpy()
            for quantity, values in enumerate((slopes, alpha * slopes)):
                for place, kind in enumerate(kinds):
                    counted = sources[:, None] & kind & (np.tri(n, dtype=bool) if causal else True)
                    label = quantity * len(TARGETS) + place
                    if counted.any():
                        np.testing.assert_allclose(outcome[row, head, label], values[counted].mean(), rtol=1e-5)
                    else:
                        assert np.isnan(outcome[row, head, label])


def test_relative_gradients_of_targets_without_effect_are_zero() -> None:
    values = np.random.default_rng(0).uniform(1, 2, size=(3, 2, 4, 2 * len(TARGETS)))
    values[..., TARGETS.index("[SEP]")] = 0
    values[..., TARGETS.index("other tokens")] = 3 * values[..., 0]
    values[0, ..., TARGETS.index("punctuation")] = np.nan
    curve = gradients.function(recording_with(values), None, **gradients.resolve_options({}))
    assert isinstance(curve, LayerCurve) and curve.first_layer == 1
    np.testing.assert_allclose(curve.measures["gradient for [SEP] (relative)"].value, 0)
    np.testing.assert_allclose(curve.measures["gradient for other tokens (relative)"].value, 3)
    there = values[1:, :, :, TARGETS.index("punctuation")].mean((0, 2)) / values[1:, :, :, 0].mean((0, 2))
    np.testing.assert_allclose(curve.measures["gradient for punctuation (relative)"].value, there)
    assert (curve.measures["gradient for punctuation (relative)"].n == 2).all()
    assert (curve.baselines["average unmasked token"]["gradient for [SEP] (relative)"].value == 1).all()


def test_raw_values_per_head() -> None:
    values = np.random.default_rng(0).uniform(1, 2, size=(3, 2, 4, 2 * len(TARGETS)))
    grid = gradients.function(
        recording_with(values),
        None,
        **gradients.resolve_options({"attribution": "gradient-x-attention", "normalise": "none", "show": "heads"}),
    )
    assert isinstance(grid, HeadGrid)
    for place, target in enumerate(TARGETS):
        np.testing.assert_allclose(
            grid.measures[f"gradient x attention for {target}"].value, values[..., len(TARGETS) + place].mean(0)
        )
    assert (
        grid.baselines["average unmasked token"]["gradient x attention for [SEP]"]
        == grid.measures[f"gradient x attention for {ALL_UNMASKED}"]
    )


def test_a_models_gradients_are_those_of_its_loss() -> None:
    """Parity with torch.autograd through eager attention, with the same tokens masked."""
    encoder = load("tiny")
    corpus = planted.make_corpus("the cat saw the dog, then ran.", "a bird in the hand")
    recording = record(encoder, corpus, [gradient_site], config=RecordingConfig(seed=3))
    for index, recorded_input in enumerate(recording.inputs):
        batch = TokenBatch([recorded_input])
        masked = masked_positions(batch, 3)
        model: Any = encoder.model  # type: ignore[attr-defined]  # no part of the protocol
        model.config._attn_implementation = "eager"
        ids = batch.model_inputs.input_ids.masked_fill(masked, encoder.mask_token_id or 0)
        returned = model(ids, token_type_ids=batch.model_inputs.token_type_ids, output_attentions=True)
        loss = torch.nn.functional.cross_entropy(
            returned.prediction_logits[masked], batch.model_inputs.input_ids[masked], reduction="sum"
        )
        for layer, gradient in enumerate(torch.autograd.grad(loss, returned.attentions)):
            expected = gradient[0][:, :, ~masked[0]].abs().mean((1, 2))
            np.testing.assert_allclose(recording[gradient_site][index][layer, :, 0], expected.numpy(), rtol=1e-4)


def test_without_special_tokens_they_are_neither_sources_nor_targets() -> None:
    corpus = planted.make_corpus("the cat saw the dog, then ran.", "a bird in the hand")
    result = run_analysis(gradients, RunInputs(corpus, load("tiny")), {"special_tokens": "exclude"})
    assert isinstance(result.data, LayerCurve)
    assert set(result.data.measures) == {
        f"gradient for {ALL_UNMASKED}",
        "gradient for punctuation (relative)",
        "gradient for other tokens (relative)",
        "gradient for masked tokens (relative)",
    }
    with pytest.raises(Refusal, match="No input contains a non-special token"):
        run_analysis(gradients, RunInputs(planted.make_corpus("", ""), load("tiny")), {"special_tokens": "exclude"})


def test_a_model_without_a_loss_is_refused() -> None:
    import tiny_models

    with pytest.raises(Refusal, match="has no task head for the objective"):
        run_analysis(gradients, RunInputs(planted.make_corpus("a dog"), tiny_models.encoder("bert")))
