"""Planted heads have the distance of their definition."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import planted
from bertology.analyses.attention.distance import distance, distance_site
from bertology.analyses.attention.entropy import entropy, entropy_site
from bertology.analyses.head_grids import Average
from bertology.encoder.tokens import SpecialToken
from bertology.recording.recording import Recording
from bertology.results.shapes import HeadGrid

TEXTS = ("a b c", "d e f g h", ("i j", "k l m n"), "o", "p q r s t u v")


def recording_of(*heads: planted.HeadAttention) -> Recording:
    return planted.make_recording(planted.make_corpus(*TEXTS), [list(heads)])


def with_split_words(recording: Recording) -> Recording:
    """The same attention, with pairs of neighbouring words as two tokens of one word."""
    return replace(recording, inputs=tuple(planted.merge_words(recorded_input) for recorded_input in recording.inputs))


def measure(recording: Recording, average: Average = "micro") -> HeadGrid:
    grid = distance(recording.with_sites([distance_site]), None, average=average, seed=0)
    assert isinstance(grid, HeadGrid)
    return grid


LENGTHS = np.array(
    [len(recorded_input.tokens) for recorded_input in planted.recorded_inputs(planted.make_corpus(*TEXTS))]
)


def test_a_head_that_attends_two_tokens_back_has_distance_two() -> None:
    grid = measure(recording_of(planted.offset_head(-2), planted.offset_head(0)))
    # The first two tokens have no token two positions back and attend to themselves.
    expected = 2 * (LENGTHS - 2).sum() / LENGTHS.sum()
    assert grid.measures["distance in tokens"].value[0, 0] == pytest.approx(expected)
    for estimates in grid.measures.values():
        assert estimates.value[0, 1] == 0


def test_special_tokens_can_be_excluded() -> None:
    grid = measure(recording_of(planted.special_head(SpecialToken.CLS), planted.offset_head(1)))
    assert grid.measures["distance in tokens"].value[0, 0] == pytest.approx(
        (LENGTHS * (LENGTHS - 1) / 2).sum() / LENGTHS.sum()
    )
    assert grid.measures["distance in tokens (no special tokens)"].n[0, 0] == 0  # no attention among non-special tokens
    assert grid.measures["distance in tokens (no special tokens)"].value[0, 1] == pytest.approx(1)


@pytest.mark.parametrize("average", ["micro", "macro"])
def test_uniform_attention_has_a_closed_form(average: Average) -> None:
    grid = measure(recording_of(planted.uniform_head), average)
    by_sentence = (LENGTHS**2 - 1) / (3 * LENGTHS)
    expected = np.average(by_sentence, weights=LENGTHS if average == "micro" else None)
    assert grid.measures["distance in tokens"].value[0, 0] == pytest.approx(expected)
    for name, estimates in grid.measures.items():
        assert grid.baselines["uniform attention"][name].value[0, 0] == pytest.approx(estimates.value[0, 0]), name


def test_a_sentence_without_attention_among_non_special_tokens_does_not_count() -> None:
    """A head that attends to the next token, but to [CLS] in one sentence, has distance 1 without special tokens."""

    def head(recorded_input: planted.RecordedInput) -> planted.FloatArray:
        return (planted.special_head(SpecialToken.CLS) if "a" in recorded_input.text.words else planted.offset_head(1))(
            recorded_input
        )

    grid = measure(recording_of(head), "macro")
    values = grid.measures["distance in tokens (no special tokens)"]
    # The last token of the first sentence of the pair attends to [SEP], as does the only token of "o".
    assert values.n[0, 0] == len(TEXTS) - 2
    assert values.value[0, 0] == pytest.approx(1)


def test_distance_in_words_counts_the_tokens_of_a_word_once() -> None:
    unsplit = measure(recording_of(planted.offset_head(-2), planted.random_head(4)))
    np.testing.assert_allclose(
        unsplit.measures["distance in words"].value, unsplit.measures["distance in tokens"].value, rtol=1e-6
    )
    split = measure(with_split_words(recording_of(planted.offset_head(-2), planted.random_head(4))))
    np.testing.assert_allclose(
        split.measures["distance in tokens"].value, unsplit.measures["distance in tokens"].value, rtol=1e-6
    )
    assert (
        split.measures["distance in words (no special tokens)"].value[0, 0]
        < unsplit.measures["distance in words (no special tokens)"].value[0, 0]
    )


def test_uniform_attention_of_a_causal_model_is_to_preceding_tokens() -> None:
    def causal_head(recorded_input: planted.RecordedInput) -> planted.FloatArray:
        visible = np.tri(len(recorded_input.tokens))
        return visible / visible.sum(1, keepdims=True)

    recording = recording_of(causal_head)
    recording = replace(recording, encoder=replace(recording.encoder, causal=True))
    recording = recording.with_sites([distance_site, entropy_site])
    for grid in (distance(recording, None), entropy(recording, None)):
        assert isinstance(grid, HeadGrid)
        for name, estimates in grid.measures.items():
            uniform = grid.baselines["uniform attention"][name].value
            np.testing.assert_allclose(uniform, estimates.value, rtol=1e-5, atol=1e-7, err_msg=name)


def test_sums_equal_a_loop_over_pairs() -> None:
    recording = with_split_words(recording_of(planted.random_head(3)))
    derived = recording.with_sites([distance_site])
    for recorded_input, attention, values in zip(
        recording.inputs, recording["attention"], derived[distance_site], strict=True
    ):
        tokens, n = recorded_input.tokens, len(recorded_input.tokens)
        positions, position = [], -1
        for i in range(n):
            position += i == 0 or tokens.word_ids[i] < 0 or tokens.word_ids[i] != tokens.word_ids[i - 1]
            positions.append(position)
        expected = np.zeros((2, 4))
        for i in range(n):
            row_weight = 1 / positions.count(positions[i])
            for j in range(n):
                weight = float(attention[0, 0, i, j])
                is_non_special = (
                    tokens.special_kinds[i] == SpecialToken.NONE and tokens.special_kinds[j] == SpecialToken.NONE
                )
                expected[:, 0] += weight * abs(i - j), weight
                expected[:, 1] += weight * abs(i - j) * is_non_special, weight * is_non_special
                expected[:, 2] += weight * row_weight * abs(positions[i] - positions[j]), weight * row_weight
                expected[:, 3] += (
                    weight * row_weight * abs(positions[i] - positions[j]) * is_non_special,
                    weight * row_weight * is_non_special,
                )
        np.testing.assert_allclose(values[0, 0], expected, rtol=1e-5, atol=1e-5)


def test_attention_that_does_not_sum_to_one_is_divided_by_its_sum() -> None:
    """Rows of rounded attention do not sum to 1; scaling all weights does not change the mean distance."""
    recording = recording_of(planted.random_head(1), planted.offset_head(-1))
    halved = replace(recording, sites={"attention": [weights / 2 for weights in recording["attention"]]})
    for complete, incomplete in ((recording, halved), (with_split_words(recording), with_split_words(halved))):
        expected = measure(complete).measures
        for name, estimates in measure(incomplete).measures.items():
            np.testing.assert_allclose(estimates.value, expected[name].value, rtol=1e-5, err_msg=name)
