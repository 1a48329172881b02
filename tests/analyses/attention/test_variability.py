"""Heads that go by position vary nothing from sentence to sentence, heads that go by content all they can."""

from __future__ import annotations

import numpy as np
import pytest

import planted
from bertology.analyses.attention.variability import opening, variability
from bertology.errors import Refusal
from bertology.recording.recording import Recording
from bertology.results.shapes import HeadGrid

N = 6
RANDOM = np.random.default_rng(0)
LONG = [" ".join(f"w{RANDOM.integers(900)}" for _ in range(N + 3)) for _ in range(60)]
TEXTS = (*LONG, "too short", ("also short", "with a second part that is long enough"))


def recording_of(*heads: planted.HeadMap, texts: tuple[str | tuple[str, str], ...] = TEXTS) -> Recording:
    return planted.recording_of(planted.corpus_of(*texts), [list(heads)]).with_derived([opening(N)])


def measured(recording: Recording) -> HeadGrid:
    found = variability.function(recording, None, positions=N, seed=0)
    assert isinstance(found, HeadGrid)
    return found


def by_content(entry: planted.Entry) -> planted.Floats:
    """Every row looks at one piece, drawn by what is said."""
    n = len(entry.pieces)
    return np.eye(n)[np.random.default_rng(entry.pieces.ids.tolist()).integers(n, size=n)]


def test_position_alone_is_nought() -> None:
    grid = measured(recording_of(planted.looking_at(-1), planted.looking_at(0)))
    for estimates in grid.measures.values():
        np.testing.assert_allclose(estimates.value, 0, atol=1e-7)


def test_content_is_what_chance_leaves() -> None:
    grid = measured(recording_of(by_content))
    n = N + 5
    # A row on one of n pieces at random is at a distance of 2 (1 - 1/n) from the mean, weighted by its being inside.
    assert grid.measures["all"].value[0, 0] == pytest.approx(1 - 1 / n, abs=0.03)
    assert grid.measures["ordinary"].value[0, 0] == pytest.approx(1 - 1 / n, abs=0.03)


def test_every_sum_by_hand() -> None:
    recording = recording_of(planted.noise(2))
    grid = measured(recording)
    for name, start in (("all", 0), ("ordinary", 1)):
        maps = [
            attention[0, 0, start : start + N, start : start + N].astype(np.float64)
            for entry, attention in zip(recording.entries, recording["attention"], strict=True)
            if (len(entry.pieces) if name == "all" else int((entry.pieces.part == 0).sum())) >= N
        ]
        mean = sum(maps) / len(maps)
        expected = sum(np.abs(m - mean).sum() for m in maps) / (2 * sum(m.sum() for m in maps))
        assert grid.measures[name].value[0, 0] == pytest.approx(expected, rel=1e-5)
        assert grid.measures[name].n[0, 0] == len(maps)
    assert grid.measures["all"].n[0, 0] == len(LONG) + 1
    assert grid.measures["ordinary"].n[0, 0] == len(LONG)


def test_uniform_attention_differs_by_length_alone() -> None:
    texts = ("a b c d e f g", "h i j k l m n o p q", "r s t u v w x y")
    grid = measured(recording_of(planted.uniform, texts=texts))
    weights = np.array([1 / (len(text.split()) + 2) for text in texts])
    expected = np.abs(weights - weights.mean()).sum() / (2 * weights.sum())
    assert grid.measures["all"].value[0, 0] == pytest.approx(expected, rel=1e-5)
    assert grid.baselines["uniform attention"]["all"].value[0, 0] == pytest.approx(expected, rel=1e-5)


def test_nothing_to_compare_is_refused() -> None:
    for texts in (("too short", "this too"), ("but this one is long enough for it",)):
        with pytest.raises(Refusal, match="positions"):
            measured(recording_of(planted.uniform, texts=texts))
