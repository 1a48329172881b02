"""What a head's output cannot show is found to be hidden, and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.linalg import null_space

import models
import planted
import planted_vectors as vectors
from bertology.analyses.attention.effective import (
    ANY,
    EFFECTIVE,
    EFFECTIVE_SIMPLEX,
    EVEN,
    HIDDEN,
    ORDINARY,
    SHARES,
    WEIGHTS,
    effective,
)
from bertology.encoder.load import load
from bertology.encoder.pieces import Special
from bertology.errors import Refusal
from bertology.recording.entry import Entry
from bertology.recording.piece_kinds import KINDS, kinds_of
from bertology.recording.recorder import record

LONG = "the cat saw the dog and the dog saw the cat ."


@pytest.mark.parametrize("simplex", [False, True])
def test_the_hidden_part_is_the_projection_on_the_null_space(simplex: bool) -> None:
    shown = vectors.frame(LONG, "a b c d e f , g")
    layer = vectors.layer(shown, [planted.noise(1), planted.noise(2)], [vectors.values(1), vectors.values(2)])
    site = EFFECTIVE_SIMPLEX if simplex else EFFECTIVE
    found = site.reduce(layer, shown, kinds_of(shown)).numpy()
    for row, entry in enumerate(shown.entries):
        n = len(entry.pieces)
        kinds = kinds_of(shown)[row, :n].numpy()
        inner = entry.pieces.special == Special.NONE
        for head in range(2):
            own = dict(zip(site.labels, found[row, head].tolist(), strict=True))
            seen = vectors.transformed(layer, row, head, n)
            seen = np.hstack([seen, np.ones((n, 1))]) if simplex else seen
            alpha = vectors.weights(layer, row, head, n)
            whole = by_hand(alpha, seen, kinds)
            assert_alike(own, {HIDDEN: whole[0], **dict(zip(SHARES, whole[1], strict=True))})
            rank = vectors.SIZE + simplex
            assert_alike(own, {f"{ANY}, {HIDDEN}": 1 - rank / n, f"{ANY}, {ORDINARY[0]}": 1 - rank / inner.sum()})
            even = np.full((n, n), 1 / n)
            assert_alike(own, {f"{EVEN}, {HIDDEN}": by_hand(even, seen, kinds)[0]})
            among = alpha[np.ix_(inner, inner)]
            among /= among.sum(1, keepdims=True)
            hidden, shares = by_hand(among, seen[inner], kinds[inner])
            punctuation = kinds[inner, KINDS.index("punctuation")]
            assert_alike(own, {ORDINARY[0]: hidden, ORDINARY[1]: shares[KINDS.index("punctuation")]})
            share = among[:, punctuation].sum(1).mean() if punctuation.any() else np.nan
            assert_alike(own, {f"{WEIGHTS}, {ORDINARY[1]}": share})


def by_hand(alpha: planted.Floats, seen: planted.Floats, kinds: Any) -> tuple[float, list[float]]:
    """The hidden share of a map's squares, and the shares of what is left by kind of target."""
    basis = null_space(seen.T)
    lost = alpha @ basis @ basis.T
    kept = np.abs(alpha - lost)
    shares = [float(np.mean(kept[:, kind].sum(1) / kept.sum(1))) if kind.any() else np.nan for kind in kinds.T]
    return float(np.square(lost).sum() / np.square(alpha).sum()), shares


def assert_alike(own: dict[str, float], expected: dict[str, float]) -> None:
    for label, value in expected.items():
        np.testing.assert_allclose(own[label], value, rtol=1e-4, atol=1e-6, err_msg=label)


def test_maps_whose_rows_see_different_pieces_say_nothing() -> None:
    shown = vectors.frame(LONG)
    look = [vectors.looking_back(1), vectors.looking_back(2)]
    layer = vectors.layer(shown, look, [vectors.values(1), vectors.values(2)], causal=True)
    assert np.isnan(EFFECTIVE.reduce(layer, shown, kinds_of(shown)).numpy()).all()


def test_causal_models_are_refused() -> None:
    recording = record(models.encoder("gpt2"), planted.corpus_of(LONG), [EFFECTIVE])
    with pytest.raises(Refusal, match="sees only what is before it"):
        effective.function(recording, None, simplex=False, seed=0)


def test_attention_to_a_piece_without_a_vector_is_hidden() -> None:
    def silent_sep(entry: Entry) -> planted.Floats:
        return vectors.values(1)(entry) * (entry.pieces.special != Special.SEP)[:, None]

    shown = vectors.frame(LONG)
    found = EFFECTIVE.reduce(vectors.layer(shown, [planted.at_kind(Special.SEP)], [silent_sep]), shown, kinds_of(shown))
    np.testing.assert_allclose(found[0, 0, 0], 1, atol=1e-6)


def test_keeping_the_sums_of_rows_makes_uniform_attention_visible() -> None:
    shown = vectors.frame(LONG)
    layer = vectors.layer(shown, [planted.uniform], [vectors.values(1)])
    np.testing.assert_allclose(EFFECTIVE_SIMPLEX.reduce(layer, shown, kinds_of(shown))[0, 0, 0], 0, atol=1e-6)
    assert float(EFFECTIVE.reduce(layer, shown, kinds_of(shown))[0, 0, 0]) > 0.1


def test_special_tokens_can_be_what_makes_an_input_long_enough() -> None:
    """Three ordinary pieces are no more than a head's dimensions, five pieces are: only the whole map hides some."""
    shown = vectors.frame("a b c")
    layer = vectors.layer(shown, [planted.noise(1)], [vectors.values(1)])
    own = dict(zip(EFFECTIVE.labels, EFFECTIVE.reduce(layer, shown, kinds_of(shown))[0, 0].tolist(), strict=True))
    assert np.isfinite(own[HIDDEN]) and np.isnan(own[ORDINARY[0]])


def test_short_inputs_hide_nothing_and_are_refused() -> None:
    encoder = load("tiny")
    recording = record(encoder, planted.corpus_of("a cat", "the dog"), [EFFECTIVE])
    assert np.isnan(recording.stacked(EFFECTIVE)).all()
    with pytest.raises(Refusal, match="the longest has 4 pieces"):
        effective.function(recording, None, simplex=False, seed=0)
