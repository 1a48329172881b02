"""`geometry/contextuality`: static vectors, noise and a narrow cone have the expected values."""

from __future__ import annotations

import numpy as np
import pytest

import planted
from bertology.analyses.geometry.contextuality import contextuality
from bertology.arrays import FloatArray
from bertology.encoder.token_batch import RecordedInput
from bertology.errors import Refusal
from bertology.results.shapes import LayerCurve

WIDTH = 64
VARIANCE, ABOVE_RANDOM = "maximum explainable variance", "explainable variance above random groups"


def texts(n_sentences: int = 60, vocabulary: int = 40, length: int = 12) -> list[str]:
    generator = np.random.default_rng(0)
    return [" ".join(f"w{w}" for w in generator.choice(vocabulary, length, replace=False)) for _ in range(n_sentences)]


def random_vectors(seed: int, n_rows: int) -> FloatArray:
    return np.random.default_rng(seed).normal(size=(n_rows, WIDTH))


def states(recorded: RecordedInput) -> FloatArray:
    """Layer 0 has one vector per word; layer 1 is noise; layer 2 is noise in a narrow cone."""
    static = np.stack([random_vectors(int(token_id), 1)[0] for token_id in recorded.tokens.ids])
    seed = int(recorded.tokens.ids.sum()) * 1000 + recorded.example_index
    noise = random_vectors(seed, len(static))
    return np.stack([static, noise, noise + 10.0])


def curve(*corpus_texts: str, min_occurrences: int = 5, seed: int = 0) -> LayerCurve:
    recording = planted.make_recording(planted.make_corpus(*corpus_texts), [[planted.uniform_head]], states)
    data = contextuality(recording, None, min_occurrences=min_occurrences, seed=seed)
    assert isinstance(data, LayerCurve)
    return data


@pytest.fixture(scope="module")
def planted_curve() -> LayerCurve:
    return curve(*texts())


def test_a_static_layer_is_perfectly_self_similar(planted_curve: LayerCurve) -> None:
    anisotropy = planted_curve.measures["anisotropy"].value[0]
    assert planted_curve.measures["self-similarity"].value[0] == pytest.approx(1 - anisotropy, abs=1e-6)
    assert planted_curve.measures[VARIANCE].value[0] > 0.8


def test_noise_is_at_chance(planted_curve: LayerCurve) -> None:
    similarity = planted_curve.measures["self-similarity"]
    assert similarity.low[1] - 0.02 < 0 < similarity.high[1] + 0.02
    shuffled = planted_curve.baselines["shuffled words"][VARIANCE]
    assert planted_curve.measures[VARIANCE].value[1] == pytest.approx(shuffled.value[1], abs=0.02)


def test_explainable_variance_above_random_groups_is_zero_on_noise_and_high_for_static_vectors(
    planted_curve: LayerCurve,
) -> None:
    above = planted_curve.measures[ABOVE_RANDOM]
    assert above.low[0] > 0.7
    for layer in (1, 2):
        assert above.low[layer] < 0 < above.high[layer]
    assert above.high[1] < 0.05 < planted_curve.measures[VARIANCE].value[1]  # few occurrences: high by chance
    shuffled = planted_curve.baselines["shuffled words"][ABOVE_RANDOM]
    assert abs(shuffled.value).max() < 0.05


def test_what_is_subtracted_does_not_depend_on_the_seed(planted_curve: LayerCurve) -> None:
    other = curve(*texts(), seed=7)
    for name in ("anisotropy", "self-similarity", "intra-sentence similarity", VARIANCE):
        np.testing.assert_allclose(other.measures[name].value, planted_curve.measures[name].value, atol=1e-12)


def test_intervals_cover_the_truth_over_sentences_and_words() -> None:
    """Words, sentence effects and a common direction; truth: the mean over all draws."""
    n_draws, names = 60, ("anisotropy", "self-similarity", "intra-sentence similarity", ABOVE_RANDOM)
    curves = [_draw(seed).measures for seed in range(n_draws)]
    for name in names:
        truth = np.mean([measures[name].value[0] for measures in curves])
        covered = [measures[name].low[0] <= truth <= measures[name].high[0] for measures in curves]
        assert np.mean(covered) > 0.85, name  # 0.95 within three standard errors


def _draw(seed: int) -> LayerCurve:
    generator = np.random.default_rng(seed)
    vocabulary = generator.normal(size=(40, 16))
    corpus = [" ".join(f"w{w}" for w in generator.choice(40, 12, replace=False)) for _ in range(30)]

    def hidden(recorded: RecordedInput) -> FloatArray:
        words = np.stack([vocabulary[int(t[1:])] if t[0] == "w" else np.zeros(16) for t in recorded.tokens.tokens])
        return (words + generator.normal(size=(1, 16)) + generator.normal(size=words.shape) + 0.5)[None]

    data = contextuality(
        planted.make_recording(planted.make_corpus(*corpus), [[planted.uniform_head]], hidden), None, seed=seed
    )
    assert isinstance(data, LayerCurve)
    return data


def test_a_cone_is_anisotropic_and_similarity_is_corrected_for_it(planted_curve: LayerCurve) -> None:
    assert planted_curve.measures["anisotropy"].value[2] > 0.95
    assert abs(planted_curve.measures["anisotropy"].value[1]) < 0.05
    assert abs(planted_curve.measures["self-similarity"].value[2]) < 0.02


def test_self_similarity_is_the_mean_over_all_pairs() -> None:
    data = curve(*texts(10), min_occurrences=2)
    recording = planted.make_recording(planted.make_corpus(*texts(10)), [[planted.uniform_head]], states)
    by_word: dict[int, list[FloatArray]] = {}
    for recorded, hidden in zip(recording.inputs, recording["hidden"], strict=True):
        for position, word in enumerate(recorded.tokens.ids.tolist()):
            if recorded.tokens.special_kinds[position] == 0:
                by_word.setdefault(word, []).append(hidden[1][position].astype(np.float64))
    means: list[float] = []
    for vectors in by_word.values():
        units = [vector / np.linalg.norm(vector) for vector in vectors]
        cosines = [float(a @ b) for i, a in enumerate(units) for b in units[i + 1 :]]
        if cosines:
            means.append(float(np.mean(cosines)))
    expected = np.mean(means) - data.measures["anisotropy"].value[1]
    assert data.measures["self-similarity"].value[1] == pytest.approx(expected, abs=1e-6)


def test_a_corpus_without_recurring_words_is_refused() -> None:
    with pytest.raises(Refusal, match="different sentences"):
        curve("a b c", "d e f")
