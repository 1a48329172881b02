"""Planted value vectors have the norms their definitions give; special pieces with short vectors are seen through."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import planted
import planted_vectors as vectors
from bertology.analyses.attention.norms import NORMS, RANKS, SHARES, SPREAD, norms
from bertology.encoder.load import load
from bertology.encoder.pieces import Special
from bertology.errors import Refusal
from bertology.recording.entry import Entry
from bertology.recording.piece_kinds import KINDS, kinds_of
from bertology.recording.recorder import record
from bertology.results.shapes import HeadGrid

MAPS = (planted.noise(1), planted.noise(2))


def spearmanr(first: Any, second: Any) -> float:
    result: Any = stats.spearmanr(first, second)
    return float(result.statistic)


def measured(maps: tuple[planted.HeadMap, ...], values: tuple[vectors.Values, ...]) -> dict[str, planted.Floats]:
    """(sentence, head) for each label."""
    shown = vectors.frame()
    found = NORMS.reduce(vectors.layer(shown, maps, values), shown, kinds_of(shown)).double().numpy()
    return {label: found[..., place] for place, label in enumerate(NORMS.labels)}


def silent_sep(entry: Entry) -> planted.Floats:
    return vectors.values(1)(entry) * (entry.pieces.special != Special.SEP)[:, None]


def alike(entry: Entry) -> planted.Floats:
    return np.ones((len(entry.pieces), vectors.SIZE))


def test_shares_and_correlations_are_those_of_plain_loops() -> None:
    shown = vectors.frame()
    layer = vectors.layer(shown, MAPS, (vectors.values(1), vectors.values(2)))
    found = NORMS.reduce(layer, shown, kinds_of(shown)).numpy()
    for row, entry in enumerate(shown.entries):
        n = len(entry.pieces)
        kinds = kinds_of(shown)[row, :n].numpy()
        for head in range(2):
            lengths = np.linalg.norm(vectors.transformed(layer, row, head, n), axis=1)
            alpha = vectors.weights(layer, row, head, n)
            sums = alpha * lengths
            shares = [np.mean(sums[:, kinds[:, k]].sum(1) / sums.sum(1)) for k in range(len(KINDS))]
            order = float(np.mean([spearmanr(alpha[i], sums[i]) for i in range(n)]))
            received = spearmanr(alpha.mean(0), lengths)
            np.testing.assert_allclose(found[row, head, :4], shares, rtol=1e-5)
            np.testing.assert_allclose(
                found[row, head, 4:7], [order, received, lengths.std() / lengths.mean()], rtol=1e-4
            )
            np.testing.assert_allclose(found[row, head, 11:15], lengths @ kinds / lengths.sum(), rtol=1e-5)


def test_a_head_on_pieces_without_vectors_takes_nothing_from_them() -> None:
    found = measured((planted.noise(1),), (silent_sep,))
    np.testing.assert_allclose(found["norm to [SEP]"], 0, atol=1e-6)
    assert (found["weights alone, norm to [SEP]"] > 0.05).all()
    np.testing.assert_allclose(sum(found[share] for share in SHARES), 1, atol=1e-5)


def test_with_equal_vectors_norms_are_attention() -> None:
    found = measured((planted.noise(1),), (alike,))
    for share in SHARES:
        np.testing.assert_allclose(found[share], found[f"weights alone, {share}"], atol=1e-6)
    np.testing.assert_allclose(found[RANKS[0]], 1, atol=1e-6)
    np.testing.assert_allclose(found[SPREAD], 0, atol=1e-5)


def test_a_head_that_takes_nothing_at_all_has_no_shares() -> None:
    found = measured((planted.uniform,), (lambda entry: np.zeros((len(entry.pieces), vectors.SIZE)),))
    assert all(np.isnan(found[name]).all() for name in (*SHARES, SPREAD))


def test_it_shows_every_measure_beside_weights_alone() -> None:
    encoder = load("tiny")
    corpus = planted.corpus_of("the cat saw the dog.", "a bird, a fish")
    grid = norms.function(record(encoder, corpus, [NORMS]), None, seed=0)
    assert isinstance(grid, HeadGrid)
    shares = sum(grid.measures[share].value for share in SHARES)
    np.testing.assert_allclose(shares, 1, atol=1e-5)
    alone = sum(grid.baselines["weights alone"][share].value for share in SHARES)
    np.testing.assert_allclose(alone, 1, atol=1e-5)


def test_a_recording_of_attention_alone_is_refused() -> None:
    recording = planted.recording_of(planted.corpus_of("a b c"), [[planted.uniform]]).with_derived([NORMS])
    with pytest.raises(Refusal, match=r"has no site 'attention.norms.v1'"):
        norms.function(recording, None, seed=0)
