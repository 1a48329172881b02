"""Heads that depend on position do not vary between sentences; heads that depend on content do."""

from __future__ import annotations

import numpy as np
import pytest

import planted
from bertology.analyses.attention.variability import deviation_ratio, first_positions_site, variability
from bertology.arrays import FloatArray
from bertology.errors import Refusal
from bertology.estimates.resampling import bootstrap_ratio
from bertology.recording.recording import Recording
from bertology.results.shapes import HeadGrid

N = 6
RANDOM = np.random.default_rng(0)
LONG = [" ".join(f"w{RANDOM.integers(900)}" for _ in range(N + 3)) for _ in range(60)]
TEXTS = (*LONG, "too short", ("also short", "with a second part that is long enough"))


def recording_of(*heads: planted.HeadAttention, texts: tuple[str | tuple[str, str], ...] = TEXTS) -> Recording:
    return planted.make_recording(planted.make_corpus(*texts), [list(heads)]).with_sites([first_positions_site(N)])


def measure(recording: Recording) -> HeadGrid:
    grid = variability(recording, None, n_positions=N)
    assert isinstance(grid, HeadGrid)
    return grid


def by_content(recorded_input: planted.RecordedInput) -> planted.FloatArray:
    """Every row attends to one random token, seeded by the sentence."""
    n = len(recorded_input.tokens)
    return np.eye(n)[np.random.default_rng(recorded_input.tokens.ids.tolist()).integers(n, size=n)]


def test_positional_heads_have_no_variability() -> None:
    grid = measure(recording_of(planted.offset_head(-1), planted.offset_head(0)))
    for estimates in grid.measures.values():
        np.testing.assert_allclose(estimates.value, 0, atol=1e-7)


def test_content_dependent_heads_have_the_variability_of_chance() -> None:
    grid = measure(recording_of(by_content))
    n = N + 5
    # A row with one random target of n is at a distance of 2 (1 - 1/n) from the mean, weighted by its attention inside.
    assert grid.measures["variability"].value[0, 0] == pytest.approx(1 - 1 / n, abs=0.03)
    assert grid.measures["variability (no special tokens)"].value[0, 0] == pytest.approx(1 - 1 / n, abs=0.03)


def test_variability_equals_its_definition() -> None:
    recording = recording_of(planted.random_head(2))
    grid = measure(recording)
    for name, start in (("variability", 0), ("variability (no special tokens)", 1)):
        patterns = [
            attention[0, 0, start : start + N, start : start + N].astype(np.float64)
            for recorded_input, attention in zip(recording.inputs, recording["attention"], strict=True)
            if (
                len(recorded_input.tokens)
                if name == "variability"
                else int((recorded_input.tokens.segment_ids == 0).sum())
            )
            >= N
        ]
        mean = sum(patterns) / len(patterns)
        expected = sum(np.abs(m - mean).sum() for m in patterns) / (2 * sum(m.sum() for m in patterns))
        assert grid.measures[name].value[0, 0] == pytest.approx(expected, rel=1e-5)
        assert grid.measures[name].n[0, 0] == len(patterns)
    assert grid.measures["variability"].n[0, 0] == len(LONG) + 1
    assert grid.measures["variability (no special tokens)"].n[0, 0] == len(LONG)


def test_uniform_attention_varies_only_with_length() -> None:
    texts = ("a b c d e f g", "h i j k l m n o p q", "r s t u v w x y")
    grid = measure(recording_of(planted.uniform_head, texts=texts))
    weights = np.array([1 / (len(text.split()) + 2) for text in texts])
    expected = np.abs(weights - weights.mean()).sum() / (2 * weights.sum())
    assert grid.measures["variability"].value[0, 0] == pytest.approx(expected, rel=1e-5)
    assert grid.baselines["uniform attention"]["variability"].value[0, 0] == pytest.approx(expected, rel=1e-5)


def test_too_few_sentences_are_refused() -> None:
    for texts in (("too short", "this too"), ("but this one is long enough for it",)):
        with pytest.raises(Refusal, match="n-positions"):
            measure(recording_of(planted.uniform_head, texts=texts))


GENERATOR = np.random.default_rng(0)


def mean_deviation(rows: FloatArray) -> float:
    return float(np.abs(rows - rows.mean(0)).sum() / (2 * rows.sum()))


def test_the_deviation_ratio_follows_its_definition() -> None:
    rows = GENERATOR.dirichlet(np.ones(5), size=(7, 3, 4))
    numerators, denominators = deviation_ratio(list(rows))
    for column in range(3):
        ratio = numerators[:, column].sum() / denominators[:, column].sum()
        assert ratio == pytest.approx(mean_deviation(rows[:, column]))


def test_the_deviation_ratio_of_equal_and_of_disjoint_rows() -> None:
    equal = [np.full((2, 2), 0.5)] * 4
    assert deviation_ratio(equal)[0].sum() == pytest.approx(0)
    disjoint = list(np.eye(6)[:, None, :])
    numerators, denominators = deviation_ratio(disjoint)
    assert numerators.sum() / denominators.sum() == pytest.approx(1 - 1 / 6)


def test_missing_rows_and_single_rows_do_not_count() -> None:
    rows = [*GENERATOR.random((3, 2, 2)), np.full((2, 2), np.nan)]
    numerators, denominators = deviation_ratio(rows)
    assert numerators[3] == denominators[3] == 0
    assert numerators.sum() / denominators.sum() == pytest.approx(mean_deviation(np.array(rows[:3])))
    single = deviation_ratio(rows[2:])
    assert single[0].sum() == single[1].sum() == 0


@pytest.mark.parametrize("heavy", [False, True])
def test_the_interval_equals_that_of_recomputing_the_mean(heavy: bool) -> None:
    rows = GENERATOR.dirichlet(np.ones(4), size=(80, 1))
    if heavy:  # a few rows have nearly all of the weight
        rows *= GENERATOR.pareto(1.2, size=(80, 1, 1))
    estimate = bootstrap_ratio(*deviation_ratio(list(rows)), seed=0)
    resampled = [mean_deviation(rows[GENERATOR.integers(80, size=80)]) for _ in range(1000)]
    expected = np.percentile(resampled, [2.5, 97.5])
    tolerance = 0.15 * (expected[1] - expected[0]) + 0.02
    np.testing.assert_allclose([estimate.low, estimate.high], expected, atol=tolerance)
