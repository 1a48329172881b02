"""Flow equals cuts by hand and networkx's on planted heads, and says where layer 1 alone decides it."""

from __future__ import annotations

from typing import Any

import networkx
import numpy as np
import pytest

import models
import planted
from bertology.analyses.attention.flow import BOUND, flow, flows
from bertology.encoder.pieces import Special
from bertology.errors import Refusal
from bertology.recording.entry import Entry
from bertology.recording.recorder import Policy, record
from bertology.recording.recording import Recording
from bertology.results.shapes import LayerCurve

CORPUS = planted.corpus_of("a b c", "a cat", ("a b", "c"))
ITSELF = planted.looking_at(0)


def found(layers: list[list[planted.HeadMap]], **options: Any) -> LayerCurve:
    return of(planted.recording_of(CORPUS, layers), **options)


def of(recording: Recording, **options: Any) -> LayerCurve:
    settled = flow.settled(options)
    site = flows(settled["residual"], settled["fusion"], settled["source"] != "cls")
    curve = flow.function(recording.with_derived([site]), None, **settled)
    assert isinstance(curve, LayerCurve)
    return curve


@pytest.mark.parametrize("source", ["cls", "all", "ordinary"])
def test_heads_that_look_at_themselves_keep_all_flow(source: str) -> None:
    curve = found([[ITSELF]] * 4, source=source)
    np.testing.assert_allclose(curve.measures["itself"].value, 1, atol=1e-6)
    np.testing.assert_allclose(curve.measures["other"].value, 0, atol=1e-6)


def test_a_chain_leads_to_one_piece() -> None:
    chain = [[planted.at_kind(Special.CLS)], [ITSELF], [ITSELF], [planted.looking_at(-1)]]
    shares = found(chain, source="all", residual=0.0).measures
    n = np.array([len(entry.pieces) for entry in planted.entries_of(CORPUS)])
    np.testing.assert_allclose(shares["[CLS]"].value[-1], np.mean(1 - 1 / n), rtol=1e-5)
    with pytest.raises(Refusal, match="ordinary"):  # nothing of it is left on ordinary pieces
        found(chain, source="ordinary", residual=0.0)


def test_a_cut_by_hand() -> None:
    """[CLS] looks at [SEP] above, [SEP] at [CLS] below; half stays in place in each layer.

    To itself: 0.5 by staying, and 0.5 by [SEP] and back. To a single [SEP]: 0.5 by going and staying. No other way out.
    """
    recording = planted.recording_of(
        planted.corpus_of("a b c"), [[planted.at_kind(Special.CLS)], [planted.at_kind(Special.SEP)]]
    )
    curve = of(recording)
    np.testing.assert_allclose(curve.measures["itself"].value[1], 1.0 / 1.5, rtol=1e-6)
    np.testing.assert_allclose(curve.measures["[SEP]"].value[1], 0.5 / 1.5, rtol=1e-6)
    # All that leaves the source gets to [CLS], all that layer 1 lets in to [SEP]; the other three get nothing.
    np.testing.assert_allclose(curve.measures[BOUND].value[1], 2 / 5)


def test_shares_are_those_of_networkx() -> None:
    layers = [[planted.noise(seed), planted.noise(seed + 9)] for seed in range(4)]
    curve = found(layers)
    for depth in range(1, 5):
        itself = [_cls_to_itself(entry, layers[:depth]) for entry in planted.entries_of(CORPUS)]
        np.testing.assert_allclose(curve.measures["itself"].value[depth - 1], np.mean(itself), atol=1e-5)


def _cls_to_itself(entry: Entry, layers: list[list[planted.HeadMap]]) -> float:
    n = len(entry.pieces)
    graph: Any = networkx.DiGraph()
    for number, layer in enumerate(layers):
        shares = 0.5 * np.mean([head(entry) for head in layer], axis=0) + 0.5 * np.eye(n)
        for i, j in np.ndindex(n, n):
            graph.add_edge((number + 1, i), (number, j), capacity=float(shares[i, j]))
    to = [float(networkx.maximum_flow_value(graph, (len(layers), 0), (0, j))) for j in range(n)]
    return to[0] / sum(to)


def test_uniform_attention_is_its_own_baseline_and_soon_set_by_the_first_layer() -> None:
    curve = found([[planted.uniform]] * 6, source="all")
    for name, estimates in curve.baselines["uniform attention"].items():
        np.testing.assert_allclose(estimates.value, curve.measures[name].value, rtol=1e-5, err_msg=name)
    assert curve.measures[BOUND].value[0] == 0 and curve.measures[BOUND].value[-1] == 1


def test_a_narrow_place_above_is_not_set_by_the_first_layer() -> None:
    """[CLS] of the upper layers hardly looks elsewhere, so that layer 1 is wider than what comes down to it."""
    layers: list[list[planted.HeadMap]] = [[planted.uniform], *([[_nearly_itself]] * 3)]
    assert found(layers).measures[BOUND].value[-1] < 0.3
    assert found([[planted.uniform]] * 5).measures[BOUND].value[-1] == 1


def _nearly_itself(entry: Entry) -> planted.Floats:
    return 0.98 * ITSELF(entry) + 0.02 * planted.uniform(entry)


@pytest.mark.parametrize("name", ["bert", "modernbert", "gpt2"])
def test_a_pass_and_a_recording_of_maps_say_the_same_whatever_the_batch(name: str) -> None:
    model = models.encoder(name)
    corpus = planted.corpus_of(*models.TEXTS[:3])
    site = flows(every=True)
    kept = of(record(model, corpus, ["attention"]), source="all")
    for pieces in (30, 2000):
        recording = record(model, corpus, [site], policy=Policy(batch_pieces=pieces))
        for measure, estimates in of(recording, source="all").measures.items():
            np.testing.assert_allclose(estimates.value, kept.measures[measure].value, atol=1e-4, err_msg=measure)


def test_from_cls_alone_is_the_cls_row_of_all() -> None:
    layers = [[planted.noise(seed)] for seed in range(3)]
    recording = planted.recording_of(CORPUS, layers)
    alone, every = (recording.with_derived([flows(every=every)]) for every in (False, True))
    for one, other in zip(alone[flows()], every[flows(every=True)], strict=True):
        np.testing.assert_array_equal(one[:, :, :, 0], other[:, :, :, 0])


def test_inputs_without_cls_are_refused() -> None:
    with pytest.raises(Refusal, match=r"No input has \[CLS\]"):
        of(record(models.encoder("gpt2"), CORPUS, [flows()]))
