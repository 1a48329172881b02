"""Planted heads have the confusion their definitions give; planted effects of the design are found."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import planted
from bertology.analyses.heads.confusion import CONFUSION, confusion
from bertology.corpus.builtin import corpus_named
from bertology.corpus.corpus import Corpus
from bertology.errors import Refusal
from bertology.measures.heads.stimuli import stimulus_of
from bertology.recording.recording import Recording
from bertology.results.shapes import HeadGrid, LayerCurve, Table
from shared_data import shared

AGREEMENT = corpus_named("generated:agreement@3:120")
REFLEXIVES = corpus_named("generated:reflexives@3:180")


def looking_at(role: str) -> planted.HeadMap:
    """A head whose every row falls on the words with a mark, alike; on [CLS] where there are none."""

    def head(entry: planted.Entry) -> planted.Floats:
        weights = np.zeros(len(entry.pieces))
        weights[[1 + word for word in entry.input.parts[0].marks.get(role, ())] or [0]] = 1
        return np.tile(weights / weights.sum(), (len(weights), 1))

    return head


def recorded(corpus: Corpus, *layers: list[planted.HeadMap]) -> Recording:
    return planted.recording_of(corpus, layers).with_derived([CONFUSION])


def measured(recording: Recording, by: str = "condition") -> Any:
    return confusion.function(recording, None, by=by, seed=0)


def by_name(table: Table) -> dict[str, float]:
    (estimates,) = table.measures.values()
    return dict(zip(table.rows_named, estimates.value.tolist(), strict=True))


def test_uniform_attention_gives_the_logarithm_of_the_candidates() -> None:
    found = by_name(measured(recorded(REFLEXIVES, [planted.uniform])))
    assert list(found) == [f"R{number}" for number in range(1, 9)]  # R0 has no distractor
    for name, value in found.items():
        assert value == pytest.approx(np.log2(3 if name >= "R5" else 2), abs=1e-6)
    table = measured(recorded(AGREEMENT, [planted.uniform]))
    for baseline in ("equal attention", "uniform attention"):
        estimates = table.baselines[baseline]["confusion"]
        np.testing.assert_allclose(estimates.value, table.measures["confusion"].value, atol=1e-6)


def test_a_head_that_finds_the_antecedent_has_none() -> None:
    grid = measured(recorded(AGREEMENT, [looking_at("antecedent"), looking_at("distractor")]), "head")
    assert isinstance(grid, HeadGrid)
    for estimates in grid.measures.values():
        assert estimates.value[0, 0] == 0
        assert estimates.value[0, 1] == pytest.approx(126)  # nothing on the antecedent at all


def test_heads_are_averaged_before_the_logarithm() -> None:
    curve = measured(recorded(AGREEMENT, [looking_at("antecedent"), looking_at("distractor")]), "layer")
    assert isinstance(curve, LayerCurve) and curve.first == 1
    np.testing.assert_allclose(curve.measures["A1"].value, 1, atol=1e-6)  # half on each, not the mean of 0 and 126


def test_it_equals_a_loop_over_sentences() -> None:
    heads = [[planted.noise(1), planted.noise(2)], [planted.noise(3), planted.noise(4)]]
    recording = recorded(REFLEXIVES, *heads)
    expected: dict[str, list[float]] = {}
    for item, maps in zip(REFLEXIVES, recording["attention"], strict=True):
        marks = item.parts[0].marks
        if not marks["distractor"]:
            continue
        bits: list[float] = []
        for layer in np.asarray(maps, np.float64):
            row = layer.mean(0)[1 + marks["target"][0], 1:]
            own, other = (sum(row[word] for word in marks[role]) for role in ("antecedent", "distractor"))
            bits.append(-np.log2(own / (own + other)))
        expected.setdefault(item.label or "", []).append(float(np.mean(bits)))
    for name, value in by_name(measured(recording)).items():
        assert value == pytest.approx(np.mean(expected[name]), rel=1e-5), name


def test_a_head_that_looks_elsewhere_has_no_score() -> None:
    grid = measured(recorded(AGREEMENT, [looking_at("nothing"), planted.uniform]), "head")
    assert grid.measures["A1"].n[0, 0] == 0 and np.isnan(grid.measures["A1"].value[0, 0])


def test_split_words_are_summed_to_and_averaged_from() -> None:
    corpus = replace(AGREEMENT, items=tuple(item for item in AGREEMENT if item.label == "A1")[:2])
    recording = planted.recording_of(corpus, [[planted.noise(5)]])
    before = measured(recording.with_derived([CONFUSION]), "layer").measures["A1"].value
    split = [_split(*pair) for pair in zip(recording.entries, recording["attention"], strict=True)]
    entries, maps = (tuple(side) for side in zip(*split, strict=True))
    after = measured(replace(recording, entries=entries, sites={"attention": maps}).with_derived([CONFUSION]), "layer")
    np.testing.assert_allclose(after.measures["A1"].value, before, rtol=1e-5)


def _split(entry: planted.Entry, maps: Any) -> tuple[planted.Entry, Any]:
    """The target and the antecedent's noun as two pieces each: rows a little off their mean, columns shared out."""
    marks = entry.input.parts[0].marks
    twice = sorted({1 + marks["target"][0], 1 + marks["antecedent"][-1]})
    places = np.sort([*range(len(entry.pieces)), *twice])
    second = np.concatenate([[False], places[1:] == places[:-1]])
    first = np.concatenate([places[1:] == places[:-1], [False]])
    wide = np.array(maps[:, :, places][..., places])
    wide[..., first] *= 0.3
    wide[..., second] *= 0.7
    wide[:, :, first] *= 1.5
    wide[:, :, second] *= 0.5
    fields = {name: getattr(entry.pieces, name)[places] for name in ("ids", "types", "part", "word", "special")}
    tokens = tuple(entry.pieces.tokens[place] for place in places)
    return replace(entry, pieces=replace(entry.pieces, tokens=tokens, **fields)), wide


def test_planted_effects_are_found_by_the_regression() -> None:
    def head(entry: planted.Entry) -> planted.Floats:
        """Confusion 1 + 0.25 with a relative clause + 0.5 where the distractor matches, and a little noise."""
        stimulus = stimuli[entry.item]
        assert stimulus is not None
        noise = np.random.default_rng(entry.item).normal(0, 0.01)
        design = stimulus.design()
        bits = 1 + 0.25 * design.get("relative clause", 0) + 0.5 * design.get("distractor matches", 0) + noise
        weights = np.zeros(len(entry.pieces))
        for number, words in enumerate(stimulus.candidates):
            weights[1 + words[0]] = (1 - 2**-bits) if number else 2**-bits
        return np.tile(weights / weights.sum(), (len(weights), 1))

    stimuli = [stimulus_of(entry, AGREEMENT) for entry in planted.entries_of(AGREEMENT)]
    table = measured(recorded(AGREEMENT, [head], [head]), "factors")
    found = by_name(table)
    assert found["agreement: intercept"] == pytest.approx(1, abs=0.01)
    assert found["agreement: relative clause"] == pytest.approx(0.25, abs=0.01)
    assert found["agreement: distractor matches"] == pytest.approx(0.5, abs=0.01)
    assert found["agreement: layer"] == pytest.approx(0, abs=1e-6)
    # A relative clause is two words longer than a prepositional phrase.
    assert found["agreement by distance: distance"] == pytest.approx(0.125, abs=0.01)
    low, high = (getattr(table.measures["effect"], side)[2] for side in ("low", "high"))
    assert low < 0.25 < high and high - low < 0.02


def test_factors_of_reflexives_follow_from_the_sentence() -> None:
    for entry, item in zip(planted.entries_of(REFLEXIVES), REFLEXIVES, strict=True):
        stimulus = stimulus_of(entry, REFLEXIVES)
        assert stimulus is not None
        known = dict(pair.split("=") for pair in item.source.split(";"))
        assert len(stimulus.candidates) - 1 == int(known["distractors"])
        assert stimulus.distance == int(known["distance"])
        if stimulus.distracted:
            design = stimulus.design()
            assert design["object"] == (known["object"] != "none")
            assert design["object matches"] == (known["object"] == "match")
            assert design["it matches"] == (known["clause"] == "match")
            assert design["relative clause"] == known["structure"].endswith("relative")


def test_published_files_and_generated_stimuli_are_treated_alike() -> None:
    folder = shared("data/opensesame")
    for name, condition, kind in (("agr.7", "A2", "inflected"), ("agr.12", "A3", "modal"), ("refl.5", "R5", "")):
        corpus = corpus_named(str(folder / name), limit=20)
        table = measured(recorded(corpus, [planted.uniform]))
        assert table.rows_named == ((condition, f"{condition} {kind}") if kind else (condition,))
        assert table.measures["confusion"].n[0] == 20
        np.testing.assert_allclose(table.measures["confusion"].value, np.log2(3 if condition == "R5" else 2), atol=1e-6)


def test_stimuli_without_distractors_are_refused() -> None:
    plain = replace(REFLEXIVES, items=tuple(item for item in REFLEXIVES if item.label == "R0"))
    with pytest.raises(Refusal, match="distractor"):
        measured(recorded(plain, [planted.uniform]))
