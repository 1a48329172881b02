"""Planted geometry: the same model twice, a rotation, an invertible map, noise, another vocabulary."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from scipy.stats import ortho_group, pearsonr

import planted
from bertology.analyses.geometry.similarity import similarity
from bertology.encoder.pieces import Special
from bertology.errors import Refusal
from bertology.recording.entry import Entry
from bertology.recording.recording import Recording
from bertology.results.shapes import LayerCurve, Matrix

WIDTH, LAYERS = 12, 4
ALL = "rsa,cka,unbiased-cka,rbf-cka,unbiased-rbf-cka,svcca,pwcca,procrustes"


def texts(sentences: int = 60, length: int = 8) -> list[str]:
    generator = np.random.default_rng(0)
    return [" ".join(f"w{w}" for w in generator.choice(40, length, replace=False)) for _ in range(sentences)]


def states(entry: Entry, seed: int = 0) -> planted.Floats:
    """(LAYERS, piece, WIDTH) noise that depends on the sentence; special tokens far away from all others."""
    generator = np.random.default_rng([seed, *entry.pieces.ids.tolist()])
    found = generator.normal(size=(LAYERS, len(entry.pieces), WIDTH)) * np.arange(1, WIDTH + 1)
    found[:, entry.pieces.special != Special.NONE] = generator.normal(size=WIDTH) * 1000
    return found


ROTATION = ortho_group.rvs(WIDTH, random_state=0)
SKEWED = np.random.default_rng(3).normal(size=(WIDTH, WIDTH))


def changed(entry: Entry) -> planted.Floats:
    """Layer 0 as it was, layer 1 turned and scaled, layer 2 through an invertible map, layer 3 noise of its own."""
    own = states(entry)
    return np.stack([own[0], 5 * own[1] @ ROTATION, own[2] @ SKEWED, states(entry, seed=1)[3]])


def recorded(hidden: planted.Callable[[Entry], planted.Floats], sentences: int = 60) -> Recording:
    heads = [[planted.uniform]] * (LAYERS - 1)
    return planted.recording_of(planted.corpus_of(*texts(sentences)), heads, hidden)


def compared(second: Recording, **options: object) -> LayerCurve:
    given = {name: option.default for name, option in similarity.options.items()} | {"measures": ALL} | options
    found = similarity.function(recorded(states), second, None, **given)
    assert isinstance(found, LayerCurve)
    return found


def test_the_same_model_twice_is_one_everywhere() -> None:
    for name, estimates in compared(recorded(states)).measures.items():
        np.testing.assert_allclose(estimates.value, 1, atol=1e-6, err_msg=name)


def test_rotation_leaves_all_at_one_and_an_invertible_map_only_canonical_correlation() -> None:
    found = compared(recorded(changed)).measures
    for name, estimates in found.items():
        np.testing.assert_allclose(estimates.value[:2], 1, atol=1e-6, err_msg=name)
    assert found["pwcca"].value[2] == pytest.approx(1, abs=1e-6)
    for name in ("rsa", "cka", "unbiased-cka", "rbf-cka", "procrustes"):
        assert found[name].high[2] < 0.99, name


def test_noise_is_where_shuffled_stimuli_are() -> None:
    curve = compared(recorded(changed))
    for name, estimates in curve.measures.items():
        chance = curve.baselines["shuffled stimuli"][name].value
        assert estimates.value[3] == pytest.approx(chance[3], abs=0.04), name
        assert (chance < 0.75).all(), name
    for name in ("rsa", "unbiased-cka", "unbiased-rbf-cka"):
        assert curve.measures[name].low[3] < 0.02 and abs(curve.measures[name].value[3]) < 0.02, name


def test_special_tokens_are_left_out_and_rsa_is_that_of_scipy() -> None:
    first, second = recorded(states), recorded(changed)
    rows = [
        np.concatenate(
            [kept[2][e.pieces.special == Special.NONE] for kept, e in zip(one["hidden"], one.entries, strict=True)]
        )
        for one in (first, second)
    ]
    expected = pearsonr(pdist(rows[0], "cosine"), pdist(rows[1], "cosine"))[0]
    found = compared(second, measures="rsa").measures["rsa"]
    assert found.value[2] == pytest.approx(expected, abs=1e-6)
    assert (found.n == 60 * 8).all()


@pytest.mark.parametrize("options", [{"kernel": "euclidean"}, {"correlation": "spearman"}, {"kernel": "dot"}])
def test_other_kernels_and_ranks_find_the_rotation_too(options: dict[str, object]) -> None:
    found = compared(recorded(changed), measures="rsa", **options).measures["rsa"]
    np.testing.assert_allclose(found.value[:2], 1, atol=1e-4)
    assert found.value[2] < 0.98 and abs(found.value[3]) < 0.03


def test_the_matrix_finds_layers_that_have_moved() -> None:
    def moved(entry: Entry) -> planted.Floats:
        return np.roll(states(entry), 1, axis=0)

    given = {name: option.default for name, option in similarity.options.items()} | {"show": "matrix"}
    found = similarity.function(recorded(states), recorded(moved), None, **given)
    assert isinstance(found, Matrix)
    np.testing.assert_array_equal(found.measures["rsa"].value.argmax(1), (np.arange(LAYERS) + 1) % LAYERS)
    np.testing.assert_allclose(found.measures["rsa"].value.max(1), 1, atol=1e-6)


def test_a_sample_is_drawn_and_the_seed_decides_which() -> None:
    values = [compared(recorded(changed), measures="rsa", stimuli=50, seed=seed).measures["rsa"] for seed in (0, 0, 1)]
    assert (values[0].n == 50).all()
    np.testing.assert_array_equal(values[0].value, values[1].value)
    assert abs(values[0].value[2] - values[2].value[2]) > 1e-4


def test_other_pieces_are_refused_and_words_compared() -> None:
    second = recorded(states)
    pieces = [replace(entry, pieces=replace(entry.pieces, ids=entry.pieces.ids + 1)) for entry in second.entries]
    other = replace(second, entries=tuple(pieces))
    with pytest.raises(Refusal, match="--unit words"):
        compared(other)
    words = [np.asarray(kept)[:, 1:-1] for kept in second["hidden"]]
    first = replace(recorded(states), sites={"hidden.words": words})
    given = {name: option.default for name, option in similarity.options.items()} | {"unit": "words"}
    found = similarity.function(first, replace(other, sites={"hidden.words": words}), None, **given)
    assert isinstance(found, LayerCurve)
    np.testing.assert_allclose(found.measures["rsa"].value, 1, atol=1e-6)


def test_too_few_stimuli_other_depth_and_unknown_measures_are_refused() -> None:
    with pytest.raises(Refusal, match="at least 10"):
        given = {name: option.default for name, option in similarity.options.items()}
        similarity.function(recorded(states, 1), recorded(states, 1), None, **given)
    shallow = planted.recording_of(planted.corpus_of(*texts()), [[planted.uniform]], lambda e: states(e)[:2])
    with pytest.raises(Refusal, match="--show matrix"):
        compared(shallow)
    with pytest.raises(Refusal, match="procrustes"):
        compared(recorded(states), measures="procrustis")
