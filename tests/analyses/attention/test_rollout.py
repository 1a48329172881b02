"""A planted chain of heads leads to its planted source; heads that attend to themselves give the identity."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import planted
import tiny_models
from bertology.analyses.attention.rollout import rollout, rollout_site
from bertology.encoder.token_batch import RecordedInput
from bertology.encoder.tokens import SpecialToken
from bertology.errors import Refusal
from bertology.recording.plan import RecordingConfig
from bertology.recording.recorder import record
from bertology.recording.recording import Recording
from bertology.recording.sites import resolve_sites
from bertology.results.shapes import LayerCurve

CORPUS = planted.make_corpus("the cat saw the dog .", "one two three", ("where is it ?", "it is here ."))
ITSELF, PREVIOUS = planted.offset_head(0), planted.offset_head(-1)
EFFECTIVE_NUMBER = "effective number of tokens (of n)"
MEASURES = (
    *(f"rollout to {name}" for name in ("itself", "[CLS]", "[SEP]", "neighbours", "other tokens")),
    EFFECTIVE_NUMBER,
)


def measure(layers: list[list[planted.HeadAttention]], **options: Any) -> LayerCurve:
    return measure_recording(planted.make_recording(CORPUS, layers), **options)


def measure_recording(recording: Recording, **options: Any) -> LayerCurve:
    sites = resolve_sites(rollout.sites(rollout.resolve_options(options)))
    curve = rollout(recording.with_sites(sites), None, **options)
    assert isinstance(curve, LayerCurve)
    return curve


@pytest.mark.parametrize("source", ["cls", "all", "non-special"])
def test_the_rollout_of_heads_that_attend_to_themselves_is_the_identity(source: str) -> None:
    curve = measure([[ITSELF, ITSELF]] * 3, source=source)
    np.testing.assert_allclose(curve.measures["rollout to itself"].value, 1, atol=1e-6)
    for name in set(curve.measures) - {"rollout to itself", EFFECTIVE_NUMBER}:
        np.testing.assert_allclose(curve.measures[name].value, 0, atol=1e-6)


def test_without_residual_a_chain_of_heads_leads_to_one_token() -> None:
    """All tokens attend to [SEP] in the upper layer and to [CLS] in the lower one: all comes from [CLS]."""
    curve = measure(
        [[planted.special_head(SpecialToken.CLS)], [planted.special_head(SpecialToken.SEP)]],
        source="all",
        residual_weight=0.0,
    )
    n = np.array([len(recorded_input.tokens) for recorded_input in planted.recorded_inputs(CORPUS)])
    np.testing.assert_allclose(curve.measures["rollout to [CLS]"].value, np.mean(1 - 1 / n), rtol=1e-5)
    np.testing.assert_allclose(curve.measures["rollout to itself"].value, np.mean(1 / n), rtol=1e-5)  # [CLS] itself
    assert curve.baselines["raw attention"]["rollout to [SEP]"].value[1] > 0.5


def test_two_layers_of_previous_token_heads_reach_beyond_neighbours() -> None:
    curve = measure([[PREVIOUS], [PREVIOUS]], source="non-special", residual_weight=0.0)
    neighbours, others = (curve.measures[f"rollout to {name}"].value for name in ("neighbours", "other tokens"))
    assert neighbours[0] > 0.7 and others[0] == 0
    assert others[1] > 0.4 and neighbours[1] < 0.3


def test_rollout_equals_plain_loops() -> None:
    layers = [
        [planted.random_head(1), planted.random_head(2)],
        [planted.random_head(3), PREVIOUS],
        [planted.random_head(4), ITSELF],
    ]
    recorded_inputs = planted.recorded_inputs(CORPUS)
    curves = {source: measure(layers, source=source, residual_weight=0.4) for source in ("cls", "all", "non-special")}
    for source, curve in curves.items():
        expected = np.mean(
            [_rollout_by_loops(recorded_input, layers, source) for recorded_input in recorded_inputs], axis=0
        )
        for name, estimates in curve.measures.items():
            np.testing.assert_allclose(estimates.value, expected[:, MEASURES.index(name)], rtol=1e-4, err_msg=name)
        total = sum(estimates.value for name, estimates in curve.measures.items() if name != EFFECTIVE_NUMBER)
        np.testing.assert_allclose(total, 1, rtol=1e-5)
    assert "rollout to [CLS]" not in curves["cls"].measures and "rollout to [SEP]" not in curves["non-special"].measures


def _rollout_by_loops(
    recorded_input: RecordedInput, layers: list[list[planted.HeadAttention]], source: str
) -> planted.FloatArray:
    special_kinds, n = recorded_input.tokens.special_kinds, len(recorded_input.tokens)
    product = np.eye(n)
    by_layer: list[planted.FloatArray] = []
    for layer in layers:
        product = (0.6 * np.mean([head(recorded_input) for head in layer], axis=0) + 0.4 * np.eye(n)) @ product
        rows: list[list[float]] = []
        for i in range(n):
            if (source == "cls" and special_kinds[i] != SpecialToken.CLS) or (
                source == "non-special" and special_kinds[i] != SpecialToken.NONE
            ):
                continue
            targets = [j for j in range(n) if source != "non-special" or special_kinds[j] == SpecialToken.NONE]
            total = sum(product[i, j] for j in targets)
            row = [0.0] * 5
            for j in targets:
                kind = (
                    0
                    if i == j
                    else 1
                    if special_kinds[j] == SpecialToken.CLS
                    else 2
                    if special_kinds[j] == SpecialToken.SEP
                    else 4
                )
                row[3 if kind == 4 and abs(i - j) == 1 else kind] += product[i, j] / total
            entropy = -sum(product[i, j] / total * np.log(product[i, j] / total) for j in targets)
            rows.append([*row, float(np.exp(entropy)) / len(targets)])
        by_layer.append(np.mean(rows, axis=0))
    return np.stack(by_layer)


def test_uniform_attention_equals_its_baseline() -> None:
    curve = measure([[planted.uniform_head] * 2] * 3, source="all")
    for name, estimates in curve.measures.items():
        np.testing.assert_allclose(estimates.value, curve.baselines["uniform attention"][name].value, rtol=1e-5)


def test_weights_rounded_to_zero_are_still_visible() -> None:
    """Recorded attention has zeros for small weights; uniform attention still covers all tokens."""
    curve = measure([[planted.special_head(SpecialToken.SEP), _ends_only]] * 12, source="all")
    np.testing.assert_allclose(curve.baselines["uniform attention"][EFFECTIVE_NUMBER].value[-1], 1, rtol=1e-3)


def _ends_only(recorded_input: RecordedInput) -> planted.FloatArray:
    """Every offset occurs, but most pairs have no weight."""
    ends = np.zeros(len(recorded_input.tokens))
    ends[[0, -1]] = 0.5
    return np.tile(ends, (len(ends), 1))


def test_uniform_attention_of_a_causal_model_is_to_preceding_tokens() -> None:
    model = tiny_models.encoder("gpt2")
    recording = record(model, planted.make_corpus("A dog barks!"), [rollout_site(residual_weight=0.0)])
    n = len(recording.inputs[0].tokens)
    uniform = np.tril(np.ones((n, n))) / np.arange(1, n + 1)[:, None]
    curve = measure_recording(recording, source="all", residual_weight=0.0)
    expected = [np.diag(np.linalg.matrix_power(uniform, layer + 1)).mean() for layer in range(model.layers)]
    np.testing.assert_allclose(curve.baselines["uniform attention"]["rollout to itself"].value, expected, rtol=1e-5)


def test_heads_can_be_combined_by_their_maximum() -> None:
    layers = [[ITSELF, PREVIOUS]]
    mean, maximum = (
        measure(layers, source="all", head_fusion=fusion).measures["rollout to itself"].value
        for fusion in ("mean", "max")
    )
    np.testing.assert_allclose(mean, maximum, atol=1e-6)  # both weights are 1, renormalised to a half
    skewed: list[list[planted.HeadAttention]] = [[planted.uniform_head, planted.uniform_head, ITSELF]]
    mean, maximum = (
        measure(skewed, source="all", head_fusion=fusion).measures["rollout to itself"].value
        for fusion in ("mean", "max")
    )
    assert maximum > mean + 0.05


@pytest.mark.parametrize("name", ["bert", "modernbert", "gpt2", "deberta-v2"])
def test_a_pass_and_recorded_attention_agree_for_any_batch_size(name: str) -> None:
    model = tiny_models.encoder(name)
    corpus = planted.make_corpus(*tiny_models.TEXTS)
    site = rollout_site()
    expected = measure_recording(record(model, corpus, ["attention"]), source="all")
    for tokens_per_batch in (30, 2000):
        recording = record(model, corpus, [site], config=RecordingConfig(tokens_per_batch=tokens_per_batch))
        curve = measure_recording(recording, source="all")
        assert all(array.shape == (model.layers, 1, 3, 3, 6) for array in recording[site])
        for measure_name, estimates in curve.measures.items():
            np.testing.assert_allclose(
                estimates.value, expected.measures[measure_name].value, atol=1e-5, err_msg=measure_name
            )


def test_inputs_without_cls_are_refused() -> None:
    recording = record(tiny_models.encoder("gpt2"), CORPUS, [rollout_site()])
    with pytest.raises(Refusal, match=r"No input contains \[CLS\]"):
        measure_recording(recording)
    assert np.isfinite(measure_recording(recording, source="all").measures["rollout to itself"].value).all()
