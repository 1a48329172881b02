"""A planted chain of heads leads where it was planted to lead; heads that look at themselves lead nowhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import models
import planted
from bertology.analyses.attention.rollout import rollout, rollouts
from bertology.encoder.pieces import Special
from bertology.errors import Refusal
from bertology.recording.entry import Entry
from bertology.recording.recorder import Policy, record
from bertology.recording.recording import Recording
from bertology.results.shapes import LayerCurve

CORPUS = planted.corpus_of("the cat saw the dog .", "one two three", ("where is it ?", "it is here ."))
ITSELF, BACK = planted.looking_at(0), planted.looking_at(-1)


def found(layers: list[list[planted.HeadMap]], **options: Any) -> LayerCurve:
    return of(planted.recording_of(CORPUS, layers), **options)


def of(recording: Recording, **options: Any) -> LayerCurve:
    settled = rollout.settled(options)
    recording = recording.with_derived([rollouts(settled["residual"], settled["fusion"])])
    curve = rollout.function(recording, None, **settled)
    assert isinstance(curve, LayerCurve)
    return curve


@pytest.mark.parametrize("source", ["cls", "all", "ordinary"])
def test_heads_that_look_at_themselves_roll_out_to_the_identity(source: str) -> None:
    curve = found([[ITSELF, ITSELF]] * 3, source=source)
    np.testing.assert_allclose(curve.measures["itself"].value, 1, atol=1e-6)
    for name in set(curve.measures) - {"itself", "spread"}:
        np.testing.assert_allclose(curve.measures[name].value, 0, atol=1e-6)


def test_without_residual_a_chain_leads_to_one_piece() -> None:
    """All look at [SEP] in the upper layer, and [SEP] of the lower layer at [CLS]: everything comes from [CLS]."""
    curve = found([[planted.at_kind(Special.CLS)], [planted.at_kind(Special.SEP)]], source="all", residual=0.0)
    n = np.array([len(entry.pieces) for entry in planted.entries_of(CORPUS)])
    np.testing.assert_allclose(curve.measures["[CLS]"].value, np.mean(1 - 1 / n), rtol=1e-5)
    np.testing.assert_allclose(curve.measures["itself"].value, np.mean(1 / n), rtol=1e-5)  # [CLS] itself
    assert curve.baselines["raw attention"]["[SEP]"].value[1] > 0.5


def test_looking_back_twice_is_no_longer_beside() -> None:
    curve = found([[BACK], [BACK]], source="ordinary", residual=0.0)
    share = [curve.measures[name].value for name in ("neighbours", "other")]
    assert share[0][0] > 0.7 and share[1][0] == 0
    assert share[1][1] > 0.4 and share[0][1] < 0.3


def test_shares_are_those_of_plain_loops() -> None:
    layers = [[planted.noise(1), planted.noise(2)], [planted.noise(3), BACK], [planted.noise(4), ITSELF]]
    entries = planted.entries_of(CORPUS)
    curves = {source: found(layers, source=source, residual=0.4) for source in ("cls", "all", "ordinary")}
    for source, curve in curves.items():
        expected = np.mean([_loops(entry, layers, source) for entry in entries], axis=0)
        for place, name in enumerate(("itself", "[CLS]", "[SEP]", "neighbours", "other", "spread")):
            if name in curve.measures:
                np.testing.assert_allclose(curve.measures[name].value, expected[:, place], rtol=1e-4, err_msg=name)
        five = sum(curve.measures[name].value for name in curve.measures if name != "spread")
        np.testing.assert_allclose(five, 1, rtol=1e-5)
    assert "[CLS]" not in curves["cls"].measures and "[SEP]" not in curves["ordinary"].measures


def _loops(entry: Entry, layers: list[list[planted.HeadMap]], source: str) -> planted.Floats:
    special, n = entry.pieces.special, len(entry.pieces)
    rolled = np.eye(n)
    found: list[planted.Floats] = []
    for layer in layers:
        rolled = (0.6 * np.mean([head(entry) for head in layer], axis=0) + 0.4 * np.eye(n)) @ rolled
        rows: list[list[float]] = []
        for i in range(n):
            if (source == "cls" and special[i] != Special.CLS) or (source == "ordinary" and special[i] != Special.NONE):
                continue
            targets = [j for j in range(n) if source != "ordinary" or special[j] == Special.NONE]
            whole = sum(rolled[i, j] for j in targets)
            row = [0.0] * 5
            for j in targets:
                kind = 0 if i == j else 1 if special[j] == Special.CLS else 2 if special[j] == Special.SEP else 4
                row[3 if kind == 4 and abs(i - j) == 1 else kind] += rolled[i, j] / whole
            entropy = -sum(rolled[i, j] / whole * np.log(rolled[i, j] / whole) for j in targets)
            rows.append([*row, float(np.exp(entropy)) / len(targets)])
        found.append(np.mean(rows, axis=0))
    return np.stack(found)


def test_uniform_attention_is_its_own_baseline() -> None:
    curve = found([[planted.uniform] * 2] * 3, source="all")
    for name, estimates in curve.measures.items():
        np.testing.assert_allclose(estimates.value, curve.baselines["uniform attention"][name].value, rtol=1e-5)


def test_weights_rounded_to_nothing_are_still_seen() -> None:
    """Recorded maps have zeros where a weight was small; uniform attention is over all pieces nevertheless."""
    curve = found([[planted.at_kind(Special.SEP), _ends_only]] * 12, source="all")
    np.testing.assert_allclose(curve.baselines["uniform attention"]["spread"].value[-1], 1, rtol=1e-3)


def _ends_only(entry: Entry) -> planted.Floats:
    """Every offset occurs, but most pairs have no weight."""
    ends = np.zeros(len(entry.pieces))
    ends[[0, -1]] = 0.5
    return np.tile(ends, (len(ends), 1))


def test_uniform_attention_of_a_causal_model_looks_back_only() -> None:
    model = models.encoder("gpt2")
    recording = record(model, planted.corpus_of("A dog barks!"), [rollouts(residual=0.0)])
    n = len(recording.entries[0].pieces)
    even = np.tril(np.ones((n, n))) / np.arange(1, n + 1)[:, None]
    curve = of(recording, source="all", residual=0.0)
    expected = [np.diag(np.linalg.matrix_power(even, layer + 1)).mean() for layer in range(model.layers)]
    np.testing.assert_allclose(curve.baselines["uniform attention"]["itself"].value, expected, rtol=1e-5)


def test_the_largest_head_counts_when_asked() -> None:
    layers = [[ITSELF, BACK]]
    mean, largest = (found(layers, source="all", fusion=fusion).measures["itself"].value for fusion in ("mean", "max"))
    np.testing.assert_allclose(mean, largest, atol=1e-6)  # both weights are 1, renormalised to a half
    skewed: list[list[planted.HeadMap]] = [[planted.uniform, planted.uniform, ITSELF]]
    mean, largest = (found(skewed, source="all", fusion=fusion).measures["itself"].value for fusion in ("mean", "max"))
    assert largest > mean + 0.05


@pytest.mark.parametrize("name", ["bert", "modernbert", "gpt2", "deberta-v2"])
def test_a_pass_and_a_recording_of_maps_say_the_same_whatever_the_batch(name: str) -> None:
    model = models.encoder(name)
    corpus = planted.corpus_of(*models.TEXTS)
    site = rollouts()
    kept = of(record(model, corpus, ["attention"]), source="all")
    for pieces in (30, 2000):
        recording = record(model, corpus, [site], policy=Policy(batch_pieces=pieces))
        passed = of(recording, source="all")
        assert all(array.shape == (model.layers, 1, 3, 3, 6) for array in recording[site])
        for measure, estimates in passed.measures.items():
            np.testing.assert_allclose(estimates.value, kept.measures[measure].value, atol=1e-5, err_msg=measure)


def test_inputs_without_cls_are_refused() -> None:
    recording = record(models.encoder("gpt2"), CORPUS, [rollouts()])
    with pytest.raises(Refusal, match=r"No input has \[CLS\]"):
        of(recording)
    assert np.isfinite(of(recording, source="all").measures["itself"].value).all()
