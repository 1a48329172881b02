"""Flow on planted heads equals cuts by hand and the flows of networkx, and layer 1 limits it where expected."""

from __future__ import annotations

from typing import Any

import networkx
import numpy as np
import pytest

import planted
import tiny_models
from bertology.analyses.attention.flow import LAYER_1_BOUND, flow, flow_site
from bertology.encoder.token_batch import RecordedInput
from bertology.encoder.tokens import SpecialToken
from bertology.errors import Refusal
from bertology.recording.plan import RecordingConfig
from bertology.recording.recorder import record
from bertology.recording.recording import Recording
from bertology.recording.sites import resolve_sites
from bertology.results.shapes import LayerCurve

CORPUS = planted.make_corpus("a b c", "a cat", ("a b", "c"))
ITSELF = planted.offset_head(0)


def measure(layers: list[list[planted.HeadAttention]], **options: Any) -> LayerCurve:
    return measure_recording(planted.make_recording(CORPUS, layers), **options)


def measure_recording(recording: Recording, **options: Any) -> LayerCurve:
    sites = resolve_sites(flow.sites(flow.resolve_options(options)))
    curve = flow(recording.with_sites(sites), None, **options)
    assert isinstance(curve, LayerCurve)
    return curve


@pytest.mark.parametrize("source", ["cls", "all", "non-special"])
def test_heads_that_attend_to_themselves_keep_all_flow(source: str) -> None:
    curve = measure([[ITSELF]] * 4, source=source)
    np.testing.assert_allclose(curve.measures["flow to itself"].value, 1, atol=1e-6)
    np.testing.assert_allclose(curve.measures["flow to other tokens"].value, 0, atol=1e-6)


def test_a_chain_of_heads_leads_to_one_token() -> None:
    chain = [[planted.special_head(SpecialToken.CLS)], [ITSELF], [ITSELF], [planted.offset_head(-1)]]
    measures = measure(chain, source="all", residual_weight=0.0).measures
    n = np.array([len(recorded_input.tokens) for recorded_input in planted.recorded_inputs(CORPUS)])
    np.testing.assert_allclose(measures["flow to [CLS]"].value[-1], np.mean(1 - 1 / n), rtol=1e-5)
    with pytest.raises(Refusal, match="non-special"):  # no attention to non-special tokens is left
        measure(chain, source="non-special", residual_weight=0.0)


def test_the_flow_equals_a_minimum_cut_by_hand() -> None:
    """[CLS] attends to [SEP] in layer 2, [SEP] to [CLS] in layer 1; the residual weight is 0.5.

    To itself: 0.5 by staying, and 0.5 by [SEP] and back. To a single [SEP]: 0.5 by going and staying. No other way out.
    """
    recording = planted.make_recording(
        planted.make_corpus("a b c"),
        [[planted.special_head(SpecialToken.CLS)], [planted.special_head(SpecialToken.SEP)]],
    )
    curve = measure_recording(recording)
    np.testing.assert_allclose(curve.measures["flow to itself"].value[1], 1.0 / 1.5, rtol=1e-6)
    np.testing.assert_allclose(curve.measures["flow to [SEP]"].value[1], 0.5 / 1.5, rtol=1e-6)
    # The flow to [CLS] is limited by the source, that to [SEP] by layer 1; the other three tokens get none.
    np.testing.assert_allclose(curve.measures[LAYER_1_BOUND].value[1], 2 / 5)


def test_flows_equal_those_of_networkx() -> None:
    layers = [[planted.random_head(seed), planted.random_head(seed + 9)] for seed in range(4)]
    curve = measure(layers)
    for depth in range(1, 5):
        itself = [_cls_to_itself(recorded_input, layers[:depth]) for recorded_input in planted.recorded_inputs(CORPUS)]
        np.testing.assert_allclose(curve.measures["flow to itself"].value[depth - 1], np.mean(itself), atol=1e-5)


def _cls_to_itself(recorded_input: RecordedInput, layers: list[list[planted.HeadAttention]]) -> float:
    n = len(recorded_input.tokens)
    graph: Any = networkx.DiGraph()
    for depth, layer in enumerate(layers):
        capacities = 0.5 * np.mean([head(recorded_input) for head in layer], axis=0) + 0.5 * np.eye(n)
        for i, j in np.ndindex(n, n):
            graph.add_edge((depth + 1, i), (depth, j), capacity=float(capacities[i, j]))
    flows = [float(networkx.maximum_flow_value(graph, (len(layers), 0), (0, j))) for j in range(n)]
    return flows[0] / sum(flows)


def test_uniform_flow_equals_its_baseline_and_is_soon_limited_by_layer_1() -> None:
    curve = measure([[planted.uniform_head]] * 6, source="all")
    for name, estimates in curve.baselines["uniform attention"].items():
        np.testing.assert_allclose(estimates.value, curve.measures[name].value, rtol=1e-5, err_msg=name)
    assert curve.measures[LAYER_1_BOUND].value[0] == 0 and curve.measures[LAYER_1_BOUND].value[-1] == 1


def test_a_bottleneck_in_an_upper_layer_is_not_a_limit_of_layer_1() -> None:
    """[CLS] of the upper layers attends mostly to itself, so that layer 1 is not the bottleneck."""
    layers: list[list[planted.HeadAttention]] = [[planted.uniform_head], *([[_nearly_itself]] * 3)]
    assert measure(layers).measures[LAYER_1_BOUND].value[-1] < 0.3
    assert measure([[planted.uniform_head]] * 5).measures[LAYER_1_BOUND].value[-1] == 1


def _nearly_itself(recorded_input: RecordedInput) -> planted.FloatArray:
    return 0.98 * ITSELF(recorded_input) + 0.02 * planted.uniform_head(recorded_input)


@pytest.mark.parametrize("name", ["bert", "modernbert", "gpt2"])
def test_a_pass_and_recorded_attention_agree_for_any_batch_size(name: str) -> None:
    model = tiny_models.encoder(name)
    corpus = planted.make_corpus(*tiny_models.TEXTS[:3])
    site = flow_site(all_sources=True)
    expected = measure_recording(record(model, corpus, ["attention"]), source="all")
    for tokens_per_batch in (30, 2000):
        recording = record(model, corpus, [site], config=RecordingConfig(tokens_per_batch=tokens_per_batch))
        for measure_name, estimates in measure_recording(recording, source="all").measures.items():
            np.testing.assert_allclose(
                estimates.value, expected.measures[measure_name].value, atol=1e-4, err_msg=measure_name
            )


def test_flow_from_cls_is_the_cls_row_of_all_sources() -> None:
    layers = [[planted.random_head(seed)] for seed in range(3)]
    recording = planted.make_recording(CORPUS, layers)
    cls_only, all_tokens = (recording.with_sites([flow_site(all_sources=all_sources)]) for all_sources in (False, True))
    for from_cls, from_all in zip(cls_only[flow_site()], all_tokens[flow_site(all_sources=True)], strict=True):
        np.testing.assert_array_equal(from_cls[:, :, :, 0], from_all[:, :, :, 0])


def test_inputs_without_cls_are_refused() -> None:
    with pytest.raises(Refusal, match=r"No input contains \[CLS\]"):
        measure_recording(record(tiny_models.encoder("gpt2"), CORPUS, [flow_site()]))
