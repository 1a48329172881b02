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
from bertology.analyses.attention.sinks.analysis import SINKS, STATISTICS, sink_site, sink_tokens, sinks
from bertology.analyses.attention.sinks.value_zeroing import sample_control_tokens
from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.encoder.token_batch import RecordedInput, TokenBatch
from bertology.encoder.tokens import SpecialToken
from bertology.errors import Refusal
from bertology.recording.objectives import masked_positions
from bertology.recording.recorder import record
from bertology.results.shapes import HeadGrid, LayerCurve

CORPUS = planted.make_corpus("The keys to the cabinet are on the table.", "A dog!", ("She walked.", "It rains."))
DROP = "effect of removing the sink's value"


def measure(model: HuggingFaceEncoder, **options: Any) -> LayerCurve | HeadGrid:
    given: dict[str, Any] = {name: option.default for name, option in sinks.options.items()}
    shape = sinks.function(record(model, CORPUS, [sink_site]), None, model, **{**given, **options})
    assert isinstance(shape, LayerCurve | HeadGrid)
    return shape


def no_op_model() -> HuggingFaceEncoder:
    """A BERT whose [SEP] has a value vector of zero in the first layer.

    Without positions and types the state of [SEP] there is one vector, which the value projection is made blind to.
    """
    made = tiny_models.model("bert", "ForMaskedLM")
    embeddings = made.bert.embeddings
    with torch.no_grad():
        embeddings.position_embeddings.weight.zero_()
        embeddings.token_type_embeddings.weight.zero_()
        sep = embeddings.LayerNorm(embeddings.word_embeddings.weight[tiny_models.BERT_SPECIAL.id("[SEP]")])
        value = made.bert.encoder.layer[0].attention.self.value
        value.weight -= torch.outer(value.weight @ sep, sep) / sep.square().sum()
        value.bias.zero_()
    return tiny_models.wrap_model(made, "bert")


@pytest.mark.parametrize("effect", ["hidden", "loss", "logits"])
def test_a_planted_no_op_has_index_one_and_no_effect(effect: str) -> None:
    curve = measure(no_op_model(), effect=effect)
    np.testing.assert_allclose(curve.measures["no-op index"].value[0], 1, atol=1e-5)
    np.testing.assert_allclose(curve.measures[DROP].value[0], 0, atol=1e-5)
    assert abs(float(curve.baselines["random other token"][DROP].value[0])) > 1e-4
    assert curve.measures["attention to the sink"].value[0] > 0.05


def test_an_informative_sep_is_not_a_no_op() -> None:
    curve = measure(tiny_models.encoder("bert", "ForMaskedLM"))
    assert (curve.measures["no-op index"].value < 0.6).all()
    assert (curve.measures[DROP].value > 1e-2).all()


def values_without(model: HuggingFaceEncoder, layer: int, batch: Any, pieces: Tensor) -> Any:
    """The output of a second model whose value projection is zero for these tokens."""
    reference = tiny_models.reference(model)

    def silence(_module: Any, _given: Any, returned: Tensor) -> Tensor:
        return returned.masked_fill(pieces.unsqueeze(-1), 0)

    if layer >= 0:
        reference.bert.encoder.layer[layer].attention.self.value.register_forward_hook(silence)
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
            (others,) = sample_control_tokens(batch, sink, masked, 0)
            dropped = sink, torch.from_numpy(others)[None]
            changes.append(tuple(changed_by_hand(model, layer, batch, masked, pieces, effect) for pieces in dropped))
        sinks_dropped, others_dropped = np.nanmean(np.array(changes), axis=0)
        np.testing.assert_allclose(curve.measures[DROP].value[layer], sinks_dropped, atol=1e-5, rtol=1e-4)
        beside = curve.baselines["random other token"][DROP].value[layer]
        np.testing.assert_allclose(beside, others_dropped, atol=1e-5, rtol=1e-4)


def changed_by_hand(
    model: HuggingFaceEncoder, layer: int, batch: TokenBatch, masked: Tensor, dropped: Tensor, effect: str
) -> float:
    """The effect on the non-special tokens of one sentence that were not zeroed; NaN if no token was."""
    inputs = tiny_models.batch([batch.inputs[0].tokens])
    inputs = replace(inputs, input_ids=inputs.input_ids.masked_fill(masked, model.mask_token_id or 0))
    before, after = (values_without(model, index, inputs, dropped) for index in (-1, layer))
    old, new = before.logits.log_softmax(-1), after.logits.log_softmax(-1)
    counted = batch.non_special_mask & ~dropped
    if effect == "hidden":
        states = before.hidden_states[-1], after.hidden_states[-1]
        change = ((states[1] - states[0]).norm(dim=-1) / states[0].norm(dim=-1))[counted].mean()
    elif effect == "loss":
        right = batch.model_inputs.input_ids[masked].unsqueeze(-1)
        change = (old[masked].gather(1, right) - new[masked].gather(1, right)).mean()
    else:
        change = torch.nn.functional.kl_div(new, old, log_target=True, reduction="none").sum(-1)[counted].mean()
    return float(change) if dropped.any() else float("nan")


def test_both_scopes_agree_in_the_last_layer() -> None:
    model = tiny_models.encoder("bert", "ForMaskedLM")
    alone, onwards = (measure(model, scope=scope).measures[DROP].value for scope in ("layer", "layer-and-above"))
    np.testing.assert_allclose(alone[-1], onwards[-1], rtol=1e-6)
    assert abs(alone[0] - onwards[0]) > 1e-3


def test_the_untrained_model_is_a_baseline() -> None:
    model = tiny_models.encoder("bert", "ForMaskedLM")
    untrained = model.randomised(seed=0)
    options = sinks.resolve_options({})
    shown = sinks.function(record(model, CORPUS, [sink_site]), record(untrained, CORPUS, [sink_site]), model, **options)
    assert isinstance(shown, LayerCurve)
    for name, estimates in measure(untrained).measures.items():
        assert shown.baselines["untrained model"][name] == estimates


@pytest.mark.parametrize("threshold", [0.05, 0.15, 0.3])
def test_the_sink_rate_is_the_proportion_of_heads_above_the_threshold(threshold: float) -> None:
    model = tiny_models.encoder("bert", "ForMaskedLM")
    peaks = record(model, CORPUS, [sink_site]).stack(sink_site)[:, :, :, list(SINKS).index("sep"), 1]
    curve, grid = (measure(model, sink_threshold=threshold, show=show) for show in ("layers", "heads"))
    np.testing.assert_allclose(curve.measures["sink rate"].value, (peaks > threshold).mean((0, 2)))
    np.testing.assert_allclose(grid.measures["sink rate"].value, (peaks > threshold).mean(0))
    uniform = np.array([1 / len(recorded_input.tokens) for recorded_input in record(model, CORPUS, []).inputs])
    expected = (uniform > threshold).mean()
    np.testing.assert_allclose(curve.baselines["uniform attention"]["sink rate"].value, expected)


def test_control_tokens_are_other_unmasked_tokens() -> None:
    shown = vectors.make_batch()
    sink = sink_tokens(shown, "sep") | (torch.arange(shown.padded_length) == 1) & shown.token_mask
    masked = (torch.arange(shown.padded_length) == 2) & shown.non_special_mask
    for seed in range(5):
        for row, flags in enumerate(sample_control_tokens(shown, sink, masked, seed)):
            length = len(shown.inputs[row].tokens)
            usable = (shown.non_special_mask & ~sink & ~masked)[row, :length].numpy()
            assert not (flags & ~usable).any()
            assert flags.sum() == min(int(sink[row].sum()), usable.sum())


def test_every_head_has_its_own_effect() -> None:
    model = tiny_models.encoder("bert", "ForMaskedLM")
    grid = measure(model, show="heads", effect="logits")
    assert isinstance(grid, HeadGrid)
    effects = grid.measures[DROP].value
    assert effects.shape == (model.layers, model.heads) and len(np.unique(effects.round(6))) == effects.size


def test_sink_statistics_equal_plain_loops() -> None:
    shown = vectors.make_batch()
    layer = vectors.make_layer(
        shown, [planted.random_head(1), _mostly_sep], [vectors.random_values(1), vectors.random_values(2)]
    )
    numbers = sink_site.reduce(layer, shown, None).numpy()
    for row, recorded_input in enumerate(shown.inputs):
        n = len(recorded_input.tokens)
        pieces = recorded_input.tokens.special_kinds == SpecialToken.SEP
        for head in range(2):
            alpha = vectors.attention_pattern(layer, row, head, n)
            lengths = np.linalg.norm(vectors.transformed_values(layer, row, head, n), axis=1)
            ordinary = lengths[recorded_input.tokens.special_kinds == SpecialToken.NONE].mean()
            share = alpha[:, pieces].sum(1).mean()
            expected = [
                share,
                alpha.mean(0)[pieces].max(),
                (alpha * lengths)[:, pieces].sum(1).mean(),
                share * ordinary,
            ]
            expected += [pieces.sum() / n, 1 / n]
            np.testing.assert_allclose(numbers[row, head, list(SINKS).index("sep")], expected, rtol=1e-5)
    assert numbers.shape[2:] == (len(SINKS), len(STATISTICS))


def _mostly_sep(recorded_input: RecordedInput) -> planted.FloatArray:
    return 0.8 * planted.special_head(SpecialToken.SEP)(recorded_input) + 0.2 * planted.uniform_head(recorded_input)


def test_a_model_without_the_sink_or_the_head_is_refused() -> None:
    with pytest.raises(Refusal, match=r"No input contains both \[SEP\]"):
        measure(tiny_models.encoder("gpt2"))
    with pytest.raises(Refusal, match="no task head for --effect loss"):
        measure(tiny_models.encoder("bert"), effect="loss")
    assert np.isfinite(measure(tiny_models.encoder("gpt2"), sink="first").measures["no-op index"].value).all()


@pytest.mark.parametrize("name", tiny_models.FAMILIES)
def test_it_runs_on_every_family(name: str) -> None:
    sink = "first" if name == "gpt2" else "special"
    curve = measure(tiny_models.encoder(name), sink=sink)
    assert all(np.isfinite(estimates.value).all() for estimates in curve.measures.values())
