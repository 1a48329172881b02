"""`geometry/representation_similarity`: equal models, rotations, invertible maps, noise and other vocabularies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from scipy.stats import ortho_group, pearsonr

import planted
from bertology.analyses.geometry.representation_similarity.analysis import representation_similarity
from bertology.arrays import FloatArray
from bertology.encoder.token_batch import RecordedInput
from bertology.encoder.tokens import SpecialToken
from bertology.errors import Refusal
from bertology.recording.recording import Recording
from bertology.results.shapes import LayerCurve, Matrix, Shape

WIDTH, N_LAYERS = 12, 4
ALL_MEASURES = "rsa,cka,unbiased-cka,rbf-cka,unbiased-rbf-cka,svcca,pwcca,procrustes"
ROTATION = ortho_group.rvs(WIDTH, random_state=0)
INVERTIBLE = np.random.default_rng(3).normal(size=(WIDTH, WIDTH))


def texts(n_sentences: int = 60, length: int = 8) -> list[str]:
    generator = np.random.default_rng(0)
    return [" ".join(f"w{w}" for w in generator.choice(40, length, replace=False)) for _ in range(n_sentences)]


def random_states(recorded: RecordedInput, seed: int = 0) -> FloatArray:
    """(layer, token, width) noise that depends on the sentence; special tokens are far from all others."""
    generator = np.random.default_rng([seed, *recorded.tokens.ids.tolist()])
    states = generator.normal(size=(N_LAYERS, len(recorded.tokens), WIDTH)) * np.arange(1, WIDTH + 1)
    states[:, recorded.tokens.special_kinds != SpecialToken.NONE] = generator.normal(size=WIDTH) * 1000
    return states


def changed_states(recorded: RecordedInput) -> FloatArray:
    """Layer 0 unchanged, layer 1 rotated and scaled, layer 2 mapped linearly, layer 3 independent noise."""
    states = random_states(recorded)
    independent = random_states(recorded, seed=1)
    return np.stack([states[0], 5 * states[1] @ ROTATION, states[2] @ INVERTIBLE, independent[3]])


def make_recording(hidden: Callable[[RecordedInput], FloatArray], n_sentences: int = 60) -> Recording:
    heads = [[planted.uniform_head]] * (N_LAYERS - 1)
    return planted.make_recording(planted.make_corpus(*texts(n_sentences)), heads, hidden)


def compare(first: Recording, second: Recording, **options: object) -> Shape:
    return representation_similarity(first, second, None, **options)


def curve(second: Recording, **options: object) -> LayerCurve:
    """The comparison of random states with a second recording, by all measures."""
    data = compare(make_recording(random_states), second, **{"measures": ALL_MEASURES, **options})
    assert isinstance(data, LayerCurve)
    return data


def test_equal_models_have_similarity_one() -> None:
    for name, estimates in curve(make_recording(random_states)).measures.items():
        assert estimates.interval == "t", name  # of a jackknife, not of a bootstrap
        np.testing.assert_allclose(estimates.value, 1, atol=1e-6, err_msg=name)


def test_all_measures_are_invariant_to_rotation_and_only_pwcca_to_invertible_maps() -> None:
    measures = curve(make_recording(changed_states)).measures
    for name, estimates in measures.items():
        np.testing.assert_allclose(estimates.value[:2], 1, atol=1e-6, err_msg=name)
    assert measures["PWCCA"].value[2] == pytest.approx(1, abs=1e-6)
    for name in ("RSA", "CKA", "unbiased CKA", "RBF CKA", "Procrustes similarity"):
        assert measures[name].high[2] < 0.99, name


def test_noise_is_as_similar_as_shuffled_stimuli() -> None:
    data = curve(make_recording(changed_states))
    for name, estimates in data.measures.items():
        chance = data.baselines["shuffled stimuli"][name].value
        assert estimates.value[3] == pytest.approx(chance[3], abs=0.04), name
        assert (chance < 0.75).all(), name
    for name in ("RSA", "unbiased CKA", "unbiased RBF CKA"):
        assert data.measures[name].low[3] < 0.02 and abs(data.measures[name].value[3]) < 0.02, name


def test_special_tokens_are_excluded_and_rsa_equals_scipy() -> None:
    recordings = make_recording(random_states), make_recording(changed_states)
    rows = [
        np.concatenate(
            [
                states[2][recorded.tokens.special_kinds == SpecialToken.NONE]
                for states, recorded in zip(recording["hidden"], recording.inputs, strict=True)
            ]
        )
        for recording in recordings
    ]
    expected = pearsonr(pdist(rows[0], "cosine"), pdist(rows[1], "cosine"))[0]
    rsa = curve(recordings[1], measures="rsa").measures["RSA"]
    assert rsa.value[2] == pytest.approx(expected, abs=1e-6)
    assert (rsa.n == 60 * 8).all()


@pytest.mark.parametrize(
    "options", [{"rsa_similarity": "euclidean"}, {"rsa_correlation": "spearman"}, {"rsa_similarity": "dot"}]
)
def test_other_similarities_and_correlations_are_invariant_to_rotation_too(options: dict[str, object]) -> None:
    rsa = curve(make_recording(changed_states), measures="rsa", **options).measures["RSA"]
    np.testing.assert_allclose(rsa.value[:2], 1, atol=1e-4)
    assert rsa.value[2] < 0.98 and abs(rsa.value[3]) < 0.03


def test_the_matrix_finds_shifted_layers() -> None:
    shifted = make_recording(lambda recorded: np.roll(random_states(recorded), 1, axis=0))
    data = compare(make_recording(random_states), shifted, show="matrix")
    assert isinstance(data, Matrix)
    rsa = data.measures["RSA"].value
    np.testing.assert_array_equal(rsa.argmax(1), (np.arange(N_LAYERS) + 1) % N_LAYERS)
    np.testing.assert_allclose(rsa.max(1), 1, atol=1e-6)


def test_the_sample_depends_on_the_seed() -> None:
    second = make_recording(changed_states)
    values = [curve(second, measures="rsa", sample_size=50, seed=seed).measures["RSA"] for seed in (0, 0, 1)]
    assert (values[0].n == 50).all()
    np.testing.assert_array_equal(values[0].value, values[1].value)
    assert abs(values[0].value[2] - values[2].value[2]) > 1e-4


def test_words_are_compared_if_tokens_differ() -> None:
    first = make_recording(random_states)
    inputs = [
        replace(recorded, tokens=replace(recorded.tokens, ids=recorded.tokens.ids + 1)) for recorded in first.inputs
    ]
    second = replace(first, inputs=tuple(inputs))
    with pytest.raises(Refusal, match="--unit words"):
        curve(second, unit="tokens")
    by_default = curve(second)
    np.testing.assert_allclose(by_default.measures["RSA"].value, 1, atol=1e-6)
    assert by_default.sample == {"words compared": by_default.measures["RSA"].n[0]} and curve(first).sample == {}
    sites = {"hidden.words": [np.asarray(states)[:, 1:-1] for states in first["hidden"]]}
    data = compare(replace(first, sites=sites), replace(second, sites=sites), unit="words")
    assert isinstance(data, LayerCurve)
    np.testing.assert_allclose(data.measures["RSA"].value, 1, atol=1e-6)


def test_too_few_stimuli_different_depths_and_unknown_measures_are_refused() -> None:
    with pytest.raises(Refusal, match="at least 10"):
        compare(make_recording(random_states, 1), make_recording(random_states, 1))
    corpus = planted.make_corpus(*texts())
    shallow = planted.make_recording(corpus, [[planted.uniform_head]], lambda recorded: random_states(recorded)[:2])
    with pytest.raises(Refusal, match="--show matrix"):
        curve(shallow)
    with pytest.raises(Refusal, match="procrustes"):
        curve(make_recording(random_states), measures="procrustis")
