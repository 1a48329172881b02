"""Planted geometry: words that never change, words that are all context, a cone, and noise."""

from __future__ import annotations

import numpy as np
import pytest

import planted
from bertology.analyses.geometry.anisotropy import anisotropy
from bertology.errors import Refusal
from bertology.recording.entry import Entry
from bertology.results.shapes import LayerCurve

WIDTH = 64


def texts(sentences: int = 60, words: int = 40, length: int = 12) -> list[str]:
    generator = np.random.default_rng(0)
    return [" ".join(f"w{w}" for w in generator.choice(words, length, replace=False)) for _ in range(sentences)]


def vectors(seed: int, rows: int) -> planted.Floats:
    return np.random.default_rng(seed).normal(size=(rows, WIDTH))


def word_only(entry: Entry) -> planted.Floats:
    """Layer 0 holds one vector a word; layer 1 fresh noise; layer 2 noise in a narrow cone."""
    static = np.stack([vectors(int(i), 1)[0] for i in entry.pieces.ids])
    seed = int(entry.pieces.ids.sum()) * 1000 + entry.item
    fresh = vectors(seed, len(static))
    return np.stack([static, fresh, fresh + 10.0])


def measured() -> LayerCurve:
    recording = planted.recording_of(planted.corpus_of(*texts()), [[planted.uniform]], word_only)
    found = anisotropy.function(recording, None, minimum=5, pairs=2000, centred=False, seed=0)
    assert isinstance(found, LayerCurve)
    return found


def test_a_static_layer_is_perfectly_self_similar() -> None:
    curve = measured()
    chance = curve.measures["anisotropy"].value[0]
    assert curve.measures["self-similarity"].value[0] == pytest.approx(1 - chance, abs=1e-6)
    assert curve.measures["explainable variance"].value[0] > 0.8


def test_noise_is_at_chance() -> None:
    curve = measured()
    similar = curve.measures["self-similarity"]
    assert similar.low[1] - 0.02 < 0 < similar.high[1] + 0.02
    shuffled = curve.baselines["shuffled words"]["explainable variance"]
    assert curve.measures["explainable variance"].value[1] == pytest.approx(shuffled.value[1], abs=0.02)


def test_a_cone_is_anisotropic_and_the_adjustment_takes_it_out() -> None:
    curve = measured()
    assert curve.measures["anisotropy"].value[2] > 0.95
    assert abs(curve.measures["anisotropy"].value[1]) < 0.05
    assert abs(curve.measures["self-similarity"].value[2]) < 0.02


def test_self_similarity_is_the_mean_over_all_pairs() -> None:
    recording = planted.recording_of(planted.corpus_of(*texts(10)), [[planted.uniform]], word_only)
    curve = anisotropy.function(recording, None, minimum=2, pairs=2000, centred=False, seed=0)
    assert isinstance(curve, LayerCurve)
    by_word: dict[int, list[planted.Floats]] = {}
    for entry, hidden in zip(recording.entries, recording["hidden"], strict=True):
        for place, word in enumerate(entry.pieces.ids.tolist()):
            if entry.pieces.special[place] == 0:
                by_word.setdefault(word, []).append(hidden[1][place].astype(np.float64))
    means: list[float] = []
    for found in by_word.values():
        unit = [v / np.linalg.norm(v) for v in found]
        cosines = [float(a @ b) for i, a in enumerate(unit) for b in unit[i + 1 :]]
        if cosines:
            means.append(float(np.mean(cosines)))
    expected = np.mean(means) - curve.measures["anisotropy"].value[1]
    assert curve.measures["self-similarity"].value[1] == pytest.approx(expected, abs=1e-6)


def test_a_corpus_without_repeated_words_is_refused() -> None:
    recording = planted.recording_of(planted.corpus_of("a b c", "d e f"), [[planted.uniform]], word_only)
    with pytest.raises(Refusal, match="different sentences"):
        anisotropy.function(recording, None, minimum=5, pairs=10, centred=False, seed=0)
