"""Planted heads have the entropies their definitions give."""

from __future__ import annotations

import numpy as np
from scipy.stats import entropy as scipy_entropy

import planted
from bertology.analyses.attention.entropy import ENTROPY, entropy
from bertology.encoder.pieces import Special
from bertology.results.shapes import HeadGrid

TEXTS = ("a b c", "d e f g h", ("i j", "k l m n"), "o", "p q r s t u v")


def measured(*heads: planted.HeadMap) -> HeadGrid:
    recording = planted.recording_of(planted.corpus_of(*TEXTS), [list(heads)]).with_derived([ENTROPY])
    found = entropy.function(recording, None, seed=0)
    assert isinstance(found, HeadGrid)
    return found


def test_uniform_heads_have_log_n() -> None:
    grid = measured(planted.uniform)
    lengths = [len(entry.pieces) for entry in planted.entries_of(planted.corpus_of(*TEXTS))]
    np.testing.assert_allclose(grid.measures["all"].value, np.mean(np.log(lengths)), rtol=1e-6)
    for measure in ("all", "cls", "ordinary"):
        expected = grid.baselines["uniform attention"][measure]
        np.testing.assert_allclose(grid.measures[measure].value, expected.value, rtol=1e-5)


def test_a_head_that_looks_at_one_piece_has_none() -> None:
    grid = measured(planted.looking_at(-1), planted.at_kind(Special.CLS))
    np.testing.assert_allclose(grid.measures["all"].value, 0, atol=1e-6)
    np.testing.assert_allclose(grid.measures["cls"].value, 0, atol=1e-6)


def test_it_equals_the_mean_of_the_rows_entropies() -> None:
    head = planted.noise(1)
    grid = measured(head)
    entries = planted.entries_of(planted.corpus_of(*TEXTS))
    rows = [np.asarray(scipy_entropy(head(entry), axis=1)) for entry in entries]
    np.testing.assert_allclose(grid.measures["all"].value[0, 0], np.mean([r.mean() for r in rows]), rtol=1e-5)
    np.testing.assert_allclose(grid.measures["cls"].value[0, 0], np.mean([r[0] for r in rows]), rtol=1e-5)
    ordinary: list[float] = []
    for entry in entries:
        kept = entry.pieces.special == Special.NONE
        ordinary.append(float(np.mean(scipy_entropy(head(entry)[kept][:, kept], axis=1))))
    np.testing.assert_allclose(grid.measures["ordinary"].value[0, 0], np.mean(ordinary), rtol=1e-5)


def test_rows_on_special_tokens_alone_have_no_ordinary_entropy() -> None:
    grid = measured(planted.at_kind(Special.SEP), planted.looking_at(-1))
    assert grid.measures["ordinary"].n[0, 0] == 0
    assert np.isnan(grid.measures["ordinary"].value[0, 0])
    # The first ordinary piece looks at [CLS] only and does not count; the others look at one ordinary piece.
    np.testing.assert_allclose(grid.measures["ordinary"].value[0, 1], 0, atol=1e-6)
    assert grid.measures["ordinary"].n[0, 1] == len([text for text in TEXTS if text != "o"])
