"""What a head's output cannot show is found to be hidden, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import null_space

import planted
import planted_vectors as vectors
from bertology.analyses.attention.effective import EFFECTIVE, EFFECTIVE_SIMPLEX, effective
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
        for head in range(2):
            seen = vectors.transformed(layer, row, head, n)
            seen = np.hstack([seen, np.ones((n, 1))]) if simplex else seen
            alpha = vectors.weights(layer, row, head, n)
            basis = null_space(seen.T)
            lost = alpha @ basis @ basis.T
            np.testing.assert_allclose(found[row, head, 0], np.square(lost).sum() / np.square(alpha).sum(), rtol=1e-4)
            kept = np.abs(alpha - lost)
            shares = [
                np.mean(kept[:, kinds[:, k]].sum(1) / kept.sum(1)) for k in range(len(KINDS)) if kinds[:, k].any()
            ]
            np.testing.assert_allclose(found[row, head, 1:5][kinds.any(0)], shares, rtol=1e-4)
            np.testing.assert_allclose(found[row, head, 6], 1 - (vectors.SIZE + simplex) / n, rtol=1e-5)


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


def test_short_inputs_hide_nothing_and_are_refused() -> None:
    encoder = load("tiny")
    recording = record(encoder, planted.corpus_of("a cat", "the dog"), [EFFECTIVE])
    assert np.isnan(recording.stacked(EFFECTIVE)).all()
    with pytest.raises(Refusal, match="the longest has 4 pieces"):
        effective.function(recording, None, simplex=False, seed=0)
