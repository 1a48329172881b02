"""Planted value vectors have the norms their definitions give; special pieces with short vectors are seen through."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import planted
import planted_vectors as vectors
from bertology.analyses.attention.norms import NORMS, PUNCTUATION, RANKS, SHARES, SPREAD, norms
from bertology.encoder.load import load
from bertology.encoder.pieces import Special
from bertology.errors import Refusal
from bertology.recording.entry import Entry
from bertology.recording.piece_kinds import KINDS, kinds_of
from bertology.recording.recorder import record
from bertology.results.shapes import HeadGrid


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


@pytest.mark.parametrize("causal", [False, True])
def test_shares_and_correlations_are_those_of_plain_loops(causal: bool) -> None:
    shown = vectors.frame()
    look = vectors.looking_back if causal else planted.noise
    layer = vectors.layer(shown, (look(1), look(2)), (vectors.values(1), vectors.values(2)), causal=causal)
    found = NORMS.reduce(layer, shown, kinds_of(shown)).numpy()
    for row, entry in enumerate(shown.entries):
        n = len(entry.pieces)
        kinds = kinds_of(shown)[row, :n].numpy()
        for head in range(2):
            own = dict(zip(NORMS.labels, found[row, head].tolist(), strict=True))
            lengths = np.linalg.norm(vectors.transformed(layer, row, head, n), axis=1)
            alpha = vectors.weights(layer, row, head, n)
            assert_related(own, "", alpha, lengths)
            for k, share in enumerate(SHARES):
                assert_shares(own, share, alpha, lengths, kinds[:, k])
            inner = entry.pieces.special == Special.NONE
            alpha, lengths = alpha[np.ix_(inner, inner)], lengths[inner]
            assert_related(own, ", ordinary", alpha, lengths)
            assert_shares(own, PUNCTUATION, alpha, lengths, kinds[inner, KINDS.index("punctuation")])


def assert_related(own: dict[str, float], suffix: str, alpha: planted.Floats, lengths: planted.Floats) -> None:
    """Along rows that see three pieces or more; what a piece receives is the mean over the rows that see it."""
    norms_of = alpha * lengths
    rows = [(alpha[i, seen], norms_of[i, seen]) for i, seen in enumerate(alpha > 0) if seen.sum() >= 3]
    order = float(np.mean([spearmanr(*row) for row in rows])) if rows else np.nan
    received = spearmanr(alpha.sum(0) / (alpha > 0).sum(0), lengths)
    expected = [order, received, float(lengths.std() / lengths.mean())]
    np.testing.assert_allclose([own[f"{name}{suffix}"] for name in (*RANKS, SPREAD)], expected, rtol=1e-4)


def assert_shares(own: dict[str, float], name: str, alpha: planted.Floats, lengths: planted.Floats, kind: Any) -> None:
    """Of norms, of weights, and of norms under uniform attention; none where no piece is of the kind."""
    for label, weights in (
        (name, alpha * lengths),
        (f"weights alone, {name}", alpha),
        (f"uniform attention, {name}", (alpha > 0) * lengths),
    ):
        expected = np.mean(weights[:, kind].sum(1) / weights.sum(1)) if kind.any() else np.nan
        np.testing.assert_allclose(own[label], expected, rtol=1e-5, err_msg=label)


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


def test_special_tokens_alone_make_no_order_among_ordinary_pieces() -> None:
    """Where only [CLS] and [SEP] are looked at more, with shorter vectors, the ordinary pieces show no relation."""

    def short_special(entry: Entry) -> planted.Floats:
        return alike(entry) * np.where(entry.pieces.special == Special.NONE, 1.0, 0.1)[:, None]

    def at_special(entry: Entry) -> planted.Floats:
        special = (entry.pieces.special != Special.NONE).astype(float)
        row = special / special.sum() * 0.8 + 0.2 / len(special)
        return np.tile(row, (len(special), 1))

    found = measured((at_special,), (short_special,))
    np.testing.assert_allclose(found[RANKS[1]], -1, atol=1e-6)
    assert (found[SPREAD] > 0.3).all()
    assert np.isnan(found[f"{RANKS[1]}, ordinary"]).all()  # all alike: there is no order
    np.testing.assert_allclose(found[f"{SPREAD}, ordinary"], 0, atol=1e-5)


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
    with pytest.raises(Refusal, match=r"has no site 'attention.norms.v3'"):
        norms.function(recording, None, seed=0)
