"""A planted [SEP] no-op has index 1 and no effect; an informative [SEP] has neither."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import planted
import planted_vectors as vectors
import tiny_models
from bertology.analyses.attention.sinks.analysis import (
    NORMS,
    SINKS,
    STATISTICS,
    sink_norm_site,
    sink_site,
    sink_tokens,
    sinks,
)
from bertology.analyses.attention.sinks.value_zeroing import sample_control_tokens
from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.encoder.token_batch import RecordedInput, TokenBatch
from bertology.encoder.tokens import SpecialToken
from bertology.errors import Refusal
from bertology.recording.objectives import masked_positions
from bertology.recording.recorder import record
from bertology.results.shapes import HeadGrid, LayerCurve

CORPUS = planted.make_corpus("The keys to the cabinet are on the table.", "A dog!", ("She walked.", "It rains."))
SITES = [sink_site, sink_norm_site]
EFFECT = "effect of removing the sink's value"


def measure(model: HuggingFaceEncoder, **options: Any) -> LayerCurve | HeadGrid:
    result = sinks(record(model, CORPUS, SITES), None, model, **options)
    assert isinstance(result, LayerCurve | HeadGrid)
    return result


def no_op_model() -> HuggingFaceEncoder:
    """A BERT whose [SEP] has a value vector of zero in the first layer.

    Without positions and types the state of [SEP] there is one vector, and the value projection maps it to zero.
    """
    model = tiny_models.model("bert", "ForMaskedLM")
    embeddings = model.bert.embeddings
    with torch.no_grad():
        embeddings.position_embeddings.weight.zero_()
        embeddings.token_type_embeddings.weight.zero_()
        sep = embeddings.LayerNorm(embeddings.word_embeddings.weight[tiny_models.BERT_SPECIAL.id("[SEP]")])
        value = model.bert.encoder.layer[0].attention.self.value
        value.weight -= torch.outer(value.weight @ sep, sep) / sep.square().sum()
        value.bias.zero_()
    return tiny_models.wrap_model(model, "bert")


@pytest.mark.parametrize("effect", ["hidden", "loss", "logits"])
def test_a_planted_no_op_has_index_one_and_no_effect(effect: str) -> None:
    curve = measure(no_op_model(), effect=effect)
    np.testing.assert_allclose(curve.measures["no-op index"].value[0], 1, atol=1e-5)
    np.testing.assert_allclose(curve.measures[EFFECT].value[0], 0, atol=1e-5)
    assert abs(float(curve.baselines["random other token"][EFFECT].value[0])) > 1e-4
    assert curve.measures["attention to the sink"].value[0] > 0.05


def test_an_informative_sep_is_not_a_no_op() -> None:
    curve = measure(tiny_models.encoder("bert", "ForMaskedLM"))
    assert (curve.measures["no-op index"].value < 0.6).all()
    assert (curve.measures[EFFECT].value > 1e-2).all()


def output_without_values(model: HuggingFaceEncoder, layer: int, batch: Any, zeroed: Tensor) -> Any:
    """The output of a second model whose value projection is zero for these tokens."""
    reference = tiny_models.reference(model)

    def zero_values(_module: Any, _inputs: Any, values: Tensor) -> Tensor:
        return values.masked_fill(zeroed.unsqueeze(-1), 0)

    if layer >= 0:
        reference.bert.encoder.layer[layer].attention.self.value.register_forward_hook(zero_values)
    with torch.inference_mode():
        return reference(
            batch.input_ids,
            attention_mask=batch.attention_mask,
            token_type_ids=batch.token_type_ids,
            output_hidden_states=True,
        )


@pytest.mark.parametrize("effect", ["hidden", "loss", "logits"])
def test_effects_equal_those_of_zeroing_values_with_a_hook(effect: str) -> None:
    model = tiny_models.encoder("bert", "ForMaskedLM")
    curve = measure(model, effect=effect)
    for layer in range(model.layers):
        changes: list[tuple[float, ...]] = []
        for recorded_input in record(model, CORPUS, []).inputs:
            batch = TokenBatch([recorded_input])
            masked = masked_positions(batch, 0) if effect == "loss" else torch.zeros_like(batch.token_mask)
            sink = sink_tokens(batch, "sep")
            (controls,) = sample_control_tokens(batch, sink, masked, 0)
            zeroed = sink, torch.from_numpy(controls)[None]
            changes.append(tuple(effect_by_hook(model, layer, batch, masked, tokens, effect) for tokens in zeroed))
        sink_effect, control_effect = np.nanmean(np.array(changes), axis=0)
        np.testing.assert_allclose(curve.measures[EFFECT].value[layer], sink_effect, atol=1e-5, rtol=1e-4)
        baseline = curve.baselines["random other token"][EFFECT].value[layer]
        np.testing.assert_allclose(baseline, control_effect, atol=1e-5, rtol=1e-4)


def effect_by_hook(
    model: HuggingFaceEncoder, layer: int, batch: TokenBatch, masked: Tensor, zeroed: Tensor, effect: str
) -> float:
    """The effect on the non-special tokens of one sentence that were not zeroed; NaN if no token was."""
    inputs = tiny_models.batch([batch.inputs[0].tokens])
    inputs = replace(inputs, input_ids=inputs.input_ids.masked_fill(masked, model.mask_token_id or 0))
    before, after = (output_without_values(model, index, inputs, zeroed) for index in (-1, layer))
    log_probs_before, log_probs_after = before.logits.log_softmax(-1), after.logits.log_softmax(-1)
    mask = batch.non_special_mask & ~zeroed
    if effect == "hidden":
        states = before.hidden_states[-1], after.hidden_states[-1]
        effect_size = ((states[1] - states[0]).norm(dim=-1) / states[0].norm(dim=-1))[mask].mean()
    elif effect == "loss":
        gold = batch.model_inputs.input_ids[masked].unsqueeze(-1)
        effect_size = (log_probs_before[masked].gather(1, gold) - log_probs_after[masked].gather(1, gold)).mean()
    else:
        divergence = torch.nn.functional.kl_div(log_probs_after, log_probs_before, log_target=True, reduction="none")
        effect_size = divergence.sum(-1)[mask].mean()
    return float(effect_size) if zeroed.any() else float("nan")


def test_both_scopes_agree_in_the_last_layer() -> None:
    model = tiny_models.encoder("bert", "ForMaskedLM")
    one_layer, layer_and_above = (
        measure(model, scope=scope).measures[EFFECT].value for scope in ("layer", "layer-and-above")
    )
    np.testing.assert_allclose(one_layer[-1], layer_and_above[-1], rtol=1e-6)
    assert abs(one_layer[0] - layer_and_above[0]) > 1e-3


def test_the_untrained_model_is_a_baseline() -> None:
    model = tiny_models.encoder("bert", "ForMaskedLM")
    untrained = model.randomised(seed=0)
    curve = sinks(record(model, CORPUS, SITES), record(untrained, CORPUS, SITES), model)
    assert isinstance(curve, LayerCurve)
    for name, estimates in measure(untrained).measures.items():
        assert curve.baselines["untrained model"][name] == estimates


@pytest.mark.parametrize("threshold", [0.05, 0.15, 0.3])
def test_the_sink_rate_is_the_proportion_of_heads_above_the_threshold(threshold: float) -> None:
    model = tiny_models.encoder("bert", "ForMaskedLM")
    max_attention = record(model, CORPUS, [sink_site]).stack(sink_site)[:, :, :, list(SINKS).index("sep"), 1]
    curve, grid = (measure(model, sink_threshold=threshold, show=show) for show in ("layers", "heads"))
    np.testing.assert_allclose(curve.measures["sink rate"].value, (max_attention > threshold).mean((0, 2)))
    np.testing.assert_allclose(grid.measures["sink rate"].value, (max_attention > threshold).mean(0))
    uniform = np.array([1 / len(recorded_input.tokens) for recorded_input in record(model, CORPUS, []).inputs])
    expected = (uniform > threshold).mean()
    np.testing.assert_allclose(curve.baselines["uniform attention"]["sink rate"].value, expected)


def test_control_tokens_are_other_unmasked_tokens() -> None:
    batch = vectors.make_batch()
    sink = sink_tokens(batch, "sep") | (torch.arange(batch.padded_length) == 1) & batch.token_mask
    masked = (torch.arange(batch.padded_length) == 2) & batch.non_special_mask
    for seed in range(5):
        for row, controls in enumerate(sample_control_tokens(batch, sink, masked, seed)):
            length = len(batch.inputs[row].tokens)
            candidates = (batch.non_special_mask & ~sink & ~masked)[row, :length].numpy()
            assert not (controls & ~candidates).any()
            assert controls.sum() == min(int(sink[row].sum()), candidates.sum())


def test_effects_differ_between_heads() -> None:
    model = tiny_models.encoder("bert", "ForMaskedLM")
    grid = measure(model, show="heads", effect="logits")
    assert isinstance(grid, HeadGrid)
    effects = grid.measures[EFFECT].value
    assert effects.shape == (model.layers, model.heads) and len(np.unique(effects.round(6))) == effects.size


def test_sink_statistics_equal_plain_loops() -> None:
    batch = vectors.make_batch()
    layer = vectors.make_layer(
        batch, [planted.random_head(1), _mostly_sep], [vectors.random_values(1), vectors.random_values(2)]
    )
    result, result_norms = (site.reduce(layer, batch, None).numpy() for site in (sink_site, sink_norm_site))
    for row, recorded_input in enumerate(batch.inputs):
        n = len(recorded_input.tokens)
        is_sink = recorded_input.tokens.special_kinds == SpecialToken.SEP
        for head in range(2):
            alpha = vectors.attention_pattern(layer, row, head, n)
            norms = np.linalg.norm(vectors.transformed_values(layer, row, head, n), axis=1)
            non_special_norm = norms[recorded_input.tokens.special_kinds == SpecialToken.NONE].mean()
            sink_attention = alpha[:, is_sink].sum(1).mean()
            expected = [sink_attention, alpha.mean(0)[is_sink].max(), is_sink.sum() / n, 1 / n]
            np.testing.assert_allclose(result[row, head, list(SINKS).index("sep")], expected, rtol=1e-5)
            expected_norms = [(alpha * norms)[:, is_sink].sum(1).mean(), sink_attention * non_special_norm]
            np.testing.assert_allclose(result_norms[row, head, list(SINKS).index("sep")], expected_norms, rtol=1e-5)
    assert result.shape[2:] == (len(SINKS), len(STATISTICS))
    assert result_norms.shape[2:] == (len(SINKS), len(NORMS))


def test_recorded_attention_gives_what_needs_neither_values_nor_the_model() -> None:
    model = no_op_model()
    recorded = record(model, CORPUS, ["attention"]).with_sites([sink_site])
    curve, whole = sinks(recorded, None, None), measure(model)
    assert isinstance(curve, LayerCurve)
    assert set(curve.measures) == {"attention to the sink", "sink rate"}
    assert set(curve.baselines) == {"uniform attention"}
    for name, estimates in curve.measures.items():
        np.testing.assert_allclose(estimates.value, whole.measures[name].value, atol=1e-6)
    assert set(curve.not_measured) == {"no-op index", EFFECT}
    assert "value vectors" in curve.not_measured["no-op index"] and "--model" in curve.not_measured[EFFECT]
    assert not whole.not_measured


def test_recorded_norms_give_the_index_without_the_model() -> None:
    model = no_op_model()
    curve = sinks(record(model, CORPUS, SITES), record(model, CORPUS, SITES), None)
    assert isinstance(curve, LayerCurve)
    np.testing.assert_allclose(curve.measures["no-op index"].value, measure(model).measures["no-op index"].value)
    assert set(curve.not_measured) == {EFFECT} and "no-op index" in curve.baselines["untrained model"]


def _mostly_sep(recorded_input: RecordedInput) -> planted.FloatArray:
    return 0.8 * planted.special_head(SpecialToken.SEP)(recorded_input) + 0.2 * planted.uniform_head(recorded_input)


def test_a_model_without_the_sink_or_the_head_is_refused() -> None:
    with pytest.raises(Refusal, match=r"No input contains both \[SEP\]"):
        measure(tiny_models.encoder("gpt2"))
    with pytest.raises(Refusal, match="no task head for --effect loss"):
        measure(tiny_models.encoder("bert"), effect="loss")
    assert np.isfinite(measure(tiny_models.encoder("gpt2"), sink="first").measures["no-op index"].value).all()


@pytest.mark.parametrize("name", tiny_models.FAMILIES)
def test_all_measures_are_finite_for_every_family(name: str) -> None:
    sink = "first" if name == "gpt2" else "special"
    curve = measure(tiny_models.encoder(name), sink=sink)
    assert all(np.isfinite(estimates.value).all() for estimates in curve.measures.values())


def test_the_effect_may_be_measured_on_a_sample() -> None:
    model = tiny_models.encoder("bert", "ForMaskedLM")
    sampled, everything = measure(model, sample_size=2), measure(model)
    assert sampled.measures[EFFECT].n.max() == 2 and sampled.sample["inputs whose value vectors were removed"] == 2
    assert everything.sample["inputs whose value vectors were removed"] == everything.sample["inputs"] > 2
    assert sampled.measures["sink rate"] == everything.measures["sink rate"]
