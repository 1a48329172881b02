"""Planted gradients are averaged over the weights of each target; a model's gradients equal those of autograd."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import planted
import tiny_models
from bertology.analyses.attention.gradients import gradient_site, gradients, non_special_gradient_site
from bertology.analyses.head_grids import ALL_UNMASKED, TARGETS, target_classes
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
    unmasked = TokenBatch(planted.recorded_inputs(planted.make_corpus(*TEXTS)))
    masked = unmasked.non_special_mask & (torch.arange(unmasked.padded_length) % 4 == 2)
    masked_ids = unmasked.model_inputs.input_ids.masked_fill(masked, 3)
    return TokenBatch(unmasked.inputs, "cpu", replace(unmasked.model_inputs, input_ids=masked_ids))


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
    result = site.reduce(layer, batch, target_classes(batch, special)).numpy()
    for row, recorded_input in enumerate(batch.inputs):
        n = len(recorded_input.tokens)
        masked = batch.mlm_mask[row, :n].numpy()
        special_kinds = recorded_input.tokens.special_kinds
        punctuation = np.array([token in ".,?" for token in recorded_input.tokens.tokens])
        targets = [~masked, special_kinds == SpecialToken.CLS, special_kinds == SpecialToken.SEP, punctuation & ~masked]
        targets += [(special_kinds == SpecialToken.NONE) & ~punctuation & ~masked, masked]
        sources = special_kinds >= 0 if special == "include" else special_kinds == SpecialToken.NONE
        targets = [is_target & sources for is_target in targets]
        for head in range(2):
            gradient = np.abs(layer.gradient[row, head, :n, :n].numpy())
            alpha = layer.attention[row, head, :n, :n].numpy()
            for quantity, values in enumerate((gradient, alpha * gradient)):
                for target, is_target in enumerate(targets):
                    mask = sources[:, None] & is_target & (np.tri(n, dtype=bool) if causal else True)
                    label = quantity * len(TARGETS) + target
                    if mask.any():
                        np.testing.assert_allclose(result[row, head, label], values[mask].mean(), rtol=1e-5)
                    else:
                        assert np.isnan(result[row, head, label])


def test_relative_gradients_of_targets_without_effect_are_zero() -> None:
    values = np.random.default_rng(0).uniform(1, 2, size=(3, 2, 4, 2 * len(TARGETS)))
    values[..., TARGETS.index("[SEP]")] = 0
    values[..., TARGETS.index("other tokens")] = 3 * values[..., 0]
    values[0, ..., TARGETS.index("punctuation")] = np.nan
    curve = gradients(recording_with(values), None)
    assert isinstance(curve, LayerCurve) and curve.first_layer == 1
    np.testing.assert_allclose(curve.measures["gradient for [SEP] (relative)"].value, 0)
    np.testing.assert_allclose(curve.measures["gradient for other tokens (relative)"].value, 3)
    expected = values[1:, :, :, TARGETS.index("punctuation")].mean((0, 2)) / values[1:, :, :, 0].mean((0, 2))
    np.testing.assert_allclose(curve.measures["gradient for punctuation (relative)"].value, expected)
    assert (curve.measures["gradient for punctuation (relative)"].n == 2).all()
    assert (curve.baselines["average unmasked token"]["gradient for [SEP] (relative)"].value == 1).all()


def test_values_by_head_can_be_left_unnormalised() -> None:
    values = np.random.default_rng(0).uniform(1, 2, size=(3, 2, 4, 2 * len(TARGETS)))
    grid = gradients(recording_with(values), None, attribution="gradient-x-attention", normalise="none", show="heads")
    assert isinstance(grid, HeadGrid)
    for index, target in enumerate(TARGETS):
        np.testing.assert_allclose(
            grid.measures[f"gradient x attention for {target}"].value, values[..., len(TARGETS) + index].mean(0)
        )
    assert (
        grid.baselines["average unmasked token"]["gradient x attention for [SEP]"]
        == grid.measures[f"gradient x attention for {ALL_UNMASKED}"]
    )


def test_a_models_gradients_are_those_of_its_loss() -> None:
    """Those of torch.autograd through eager attention, with the same tokens masked."""
    encoder = load("tiny")
    corpus = planted.make_corpus("the cat saw the dog, then ran.", "a bird in the hand")
    recording = record(encoder, corpus, [gradient_site], config=RecordingConfig(seed=3))
    for index, recorded_input in enumerate(recording.inputs):
        batch = TokenBatch([recorded_input])
        masked = masked_positions(batch, 3)
        model: Any = encoder.model  # type: ignore[attr-defined]  # no part of the protocol
        model.config._attn_implementation = "eager"
        ids = batch.model_inputs.input_ids.masked_fill(masked, encoder.mask_token_id or 0)
        output = model(ids, token_type_ids=batch.model_inputs.token_type_ids, output_attentions=True)
        loss = torch.nn.functional.cross_entropy(
            output.prediction_logits[masked], batch.model_inputs.input_ids[masked], reduction="sum"
        )
        for layer, gradient in enumerate(torch.autograd.grad(loss, output.attentions)):
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
    with pytest.raises(Refusal, match="has no task head for the objective"):
        run_analysis(gradients, RunInputs(planted.make_corpus("a dog"), tiny_models.encoder("bert")))
