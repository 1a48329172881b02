"""Planted heads have the confusion of their definition; planted effects of the design are estimated."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import planted
from bertology.analyses.heads.antecedent_confusion.analysis import antecedent_confusion, confusion_site
from bertology.analyses.heads.antecedent_confusion.stimuli import CONDITION_LABELS, parse_stimulus
from bertology.corpus.corpus import Corpus
from bertology.corpus.read import load_corpus
from bertology.errors import Refusal
from bertology.recording.recording import Recording
from bertology.results.shapes import HeadGrid, LayerCurve, Table
from shared_data import shared

AGREEMENT = load_corpus("generated:agreement@3:120")
REFLEXIVES = load_corpus("generated:reflexives@3:180")


def attending_to(role: str) -> planted.HeadAttention:
    """A head that attends to the words marked with the role, or to [CLS] if there are none."""

    def head(recorded_input: planted.RecordedInput) -> planted.FloatArray:
        weights = np.zeros(len(recorded_input.tokens))
        weights[[1 + word for word in recorded_input.text.segments[0].marked_words.get(role, ())] or [0]] = 1
        return np.tile(weights / weights.sum(), (len(weights), 1))

    return head


def recording_of(corpus: Corpus, *layers: list[planted.HeadAttention]) -> Recording:
    return planted.make_recording(corpus, layers).with_sites([confusion_site])


def measure(recording: Recording, show: str = "conditions") -> Any:
    return antecedent_confusion(recording, None, show=show)


def by_name(table: Table) -> dict[str, float]:
    (estimates,) = table.measures.values()
    return dict(zip(table.row_names, estimates.value.tolist(), strict=True))


def test_uniform_attention_gives_the_logarithm_of_the_candidates() -> None:
    result = by_name(measure(recording_of(REFLEXIVES, [planted.uniform_head])))
    assert [name.split()[0] for name in result] == [f"R{number}" for number in range(1, 9)]  # R0 has no distractor
    for name, value in result.items():
        assert value == pytest.approx(np.log2(3 if name >= "R5" else 2), abs=1e-6)
    table = measure(recording_of(AGREEMENT, [planted.uniform_head]))
    for baseline in ("equal over candidates", "uniform attention"):
        estimates = table.baselines[baseline]["confusion"]
        np.testing.assert_allclose(estimates.value, table.measures["confusion"].value, atol=1e-6)


def test_a_head_that_attends_to_the_antecedent_has_no_confusion() -> None:
    grid = measure(recording_of(AGREEMENT, [attending_to("antecedent"), attending_to("distractor")]), "heads")
    assert isinstance(grid, HeadGrid)
    for estimates in grid.measures.values():
        assert estimates.value[0, 0] == 0
        assert estimates.value[0, 1] == pytest.approx(126)  # no attention to the antecedent


def test_heads_are_averaged_before_the_logarithm() -> None:
    curve = measure(recording_of(AGREEMENT, [attending_to("antecedent"), attending_to("distractor")]), "layers")
    assert isinstance(curve, LayerCurve) and curve.first_layer == 1
    # Half of the attention is on each candidate; the mean of both heads' confusion would be 63.
    np.testing.assert_allclose(curve.measures["A1 same-number distractor"].value, 1, atol=1e-6)


def test_confusion_equals_a_loop_over_sentences() -> None:
    heads = [[planted.random_head(1), planted.random_head(2)], [planted.random_head(3), planted.random_head(4)]]
    recording = recording_of(REFLEXIVES, *heads)
    expected: dict[str, list[float]] = {}
    for example, attention in zip(REFLEXIVES, recording["attention"], strict=True):
        marked_words = example.segments[0].marked_words
        if not marked_words["distractor"]:
            continue
        bits: list[float] = []
        for layer in np.asarray(attention, np.float64):
            row = layer.mean(0)[1 + marked_words["target"][0], 1:]
            to_antecedent, to_distractor = (
                sum(row[word] for word in marked_words[role]) for role in ("antecedent", "distractor")
            )
            bits.append(-np.log2(to_antecedent / (to_antecedent + to_distractor)))
        expected.setdefault(example.label or "", []).append(float(np.mean(bits)))
    for name, value in by_name(measure(recording)).items():
        assert value == pytest.approx(np.mean(expected[name.split()[0]]), rel=1e-5), name


def test_a_head_that_attends_to_no_candidate_has_no_score() -> None:
    grid = measure(recording_of(AGREEMENT, [attending_to("nothing"), planted.uniform_head]), "heads")
    assert grid.measures["A1 same-number distractor"].n[0, 0] == 0 and np.isnan(
        grid.measures["A1 same-number distractor"].value[0, 0]
    )


def test_attention_to_tokens_of_a_word_is_summed_and_from_them_averaged() -> None:
    corpus = replace(AGREEMENT, examples=tuple(example for example in AGREEMENT if example.label == "A1")[:2])
    recording = planted.make_recording(corpus, [[planted.random_head(5)]])
    before = measure(recording.with_sites([confusion_site]), "layers").measures["A1 same-number distractor"].value
    split = [_split(*pair) for pair in zip(recording.inputs, recording["attention"], strict=True)]
    recorded_inputs, attention = (tuple(column) for column in zip(*split, strict=True))
    after = measure(
        replace(recording, inputs=recorded_inputs, sites={"attention": attention}).with_sites([confusion_site]),
        "layers",
    )
    np.testing.assert_allclose(after.measures["A1 same-number distractor"].value, before, rtol=1e-5)


def _split(recorded_input: planted.RecordedInput, attention: Any) -> tuple[planted.RecordedInput, Any]:
    """The target and the noun of the antecedent with two tokens each, with the same mean row and summed column."""
    marked_words = recorded_input.text.segments[0].marked_words
    split = sorted({1 + marked_words["target"][0], 1 + marked_words["antecedent"][-1]})
    positions = np.sort([*range(len(recorded_input.tokens)), *split])
    second = np.concatenate([[False], positions[1:] == positions[:-1]])
    first = np.concatenate([positions[1:] == positions[:-1], [False]])
    split_attention = np.array(attention[:, :, positions][..., positions])
    split_attention[..., first] *= 0.3
    split_attention[..., second] *= 0.7
    split_attention[:, :, first] *= 1.5
    split_attention[:, :, second] *= 0.5
    fields = {
        name: getattr(recorded_input.tokens, name)[positions]
        for name in ("ids", "type_ids", "segment_ids", "word_ids", "special_kinds")
    }
    tokens = tuple(recorded_input.tokens.tokens[position] for position in positions)
    return replace(recorded_input, tokens=replace(recorded_input.tokens, tokens=tokens, **fields)), split_attention


def test_the_regression_recovers_planted_effects() -> None:
    def head(recorded_input: planted.RecordedInput) -> planted.FloatArray:
        """Confusion 1 + 0.25 with a relative clause + 0.5 if the distractor matches, and a little noise."""
        stimulus = stimuli[recorded_input.example_index]
        assert stimulus is not None
        noise = np.random.default_rng(recorded_input.example_index).normal(0, 0.01)
        design = stimulus.design()
        bits = 1 + 0.25 * design.get("relative clause", 0) + 0.5 * design.get("distractor matches", 0) + noise
        weights = np.zeros(len(recorded_input.tokens))
        for number, words in enumerate(stimulus.candidates):
            weights[1 + words[0]] = (1 - 2**-bits) if number else 2**-bits
        return np.tile(weights / weights.sum(), (len(weights), 1))

    stimuli = [parse_stimulus(recorded_input, AGREEMENT) for recorded_input in planted.recorded_inputs(AGREEMENT)]
    table = measure(recording_of(AGREEMENT, [head], [head]), "regression")
    result = by_name(table)
    assert result["agreement: intercept"] == pytest.approx(1, abs=0.01)
    assert result["agreement: relative clause"] == pytest.approx(0.25, abs=0.01)
    assert result["agreement: distractor matches"] == pytest.approx(0.5, abs=0.01)
    assert result["agreement: layer"] == pytest.approx(0, abs=1e-6)
    # A relative clause is two words longer than a prepositional phrase.
    assert result["agreement by distance: distance"] == pytest.approx(0.125, abs=0.01)
    low, high = (getattr(table.measures["coefficient"], side)[2] for side in ("low", "high"))
    assert low < 0.25 < high and high - low < 0.02 and table.measures["coefficient"].interval == "t"


def test_factors_of_reflexives_follow_from_the_sentence() -> None:
    for recorded_input, example in zip(planted.recorded_inputs(REFLEXIVES), REFLEXIVES, strict=True):
        stimulus = parse_stimulus(recorded_input, REFLEXIVES)
        assert stimulus is not None
        factors = example.factors
        assert len(stimulus.candidates) - 1 == int(factors["distractors"])
        assert stimulus.distance == int(factors["distance"])
        if stimulus.has_distractor:
            design = stimulus.design()
            assert design["object"] == (factors["object"] != "none")
            assert design["object matches"] == (factors["object"] == "match")
            assert design["distractor matches"] == (factors["clause"] == "match")
            assert design["relative clause"] == factors["structure"].endswith("relative")


def test_published_files_and_generated_stimuli_are_treated_alike() -> None:
    folder = shared("data/opensesame")
    for name, condition, kind in (("agr.7", "A2", "inflected"), ("agr.12", "A3", "modal"), ("refl.5", "R5", "")):
        corpus = load_corpus(str(folder / name), limit=20)
        table = measure(recording_of(corpus, [planted.uniform_head]))
        label = f"{condition} {CONDITION_LABELS[condition]}"
        assert table.row_names == ((label, f"{label} ({kind})") if kind else (label,))
        assert table.measures["confusion"].n[0] == 20
        np.testing.assert_allclose(table.measures["confusion"].value, np.log2(3 if condition == "R5" else 2), atol=1e-6)


def test_stimuli_without_distractors_are_refused() -> None:
    without_distractors = replace(
        REFLEXIVES, examples=tuple(example for example in REFLEXIVES if example.label == "R0")
    )
    with pytest.raises(Refusal, match="distractor"):
        measure(recording_of(without_distractors, [planted.uniform_head]))
