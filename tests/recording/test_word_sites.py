"""The strongest word is what an argmax over the map between words says, whatever the batch."""

from __future__ import annotations

import numpy as np
import pytest

from bertology.corpus.builtin import corpus_named
from bertology.corpus.corpus import read_text
from bertology.encoder.load import load
from bertology.recording.policy import Policy
from bertology.recording.recorder import record
from bertology.recording.sites import ReducedSite
from bertology.recording.word_level import to_words, words_of
from bertology.recording.word_sites import NOTHING, Rows, strongest_word


def word_maps(rows: Rows) -> ReducedSite:
    """The maps between words themselves."""
    return ReducedSite(
        "maps_between_words",
        ("from_word", "to_word"),
        "attention between words",
        lambda layer, frame, words: to_words(layer.attention, words, rows=rows),
        prepare=words_of,
    )


@pytest.mark.parametrize("rows", ["mean", "first", "max"])
def test_it_is_the_argmax_of_the_map_between_words(rows: Rows) -> None:
    between = word_maps(rows)
    recording = record(load("tiny"), corpus_named("english", limit=12), [strongest_word(rows), between])
    for entry, strongest, maps in zip(
        recording.entries, recording[strongest_word(rows)], recording[between], strict=True
    ):
        words = entry.pieces.words
        assert strongest.shape == (2, 4, 2, words)
        assert maps.shape == (2, 4, words, words)
        others = np.where(np.eye(words, dtype=bool), -1.0, maps)
        np.testing.assert_array_equal(strongest[:, :, 0], others.argmax(-1))
        np.testing.assert_array_equal(strongest[:, :, 1], others.argmax(-2))


def test_batches_change_nothing() -> None:
    corpus, site = corpus_named("english", limit=20), strongest_word()
    small, large = (record(load("tiny"), corpus, [site], policy=Policy(batch_pieces=n))[site] for n in (30, 3000))
    for one, other in zip(small, large, strict=True):
        np.testing.assert_array_equal(one, other)


def test_words_without_company_have_no_strongest() -> None:
    recording = record(load("tiny"), read_text("Yes", "", "Yes \u200b no"), [strongest_word()])
    alone, nothing, vanished = recording[strongest_word()]
    assert (alone == NOTHING).all()
    assert nothing.shape[-1] == 0
    gone = set(recording.entries[2].pieces.vanished)
    for word in range(vanished.shape[-1]):
        if word in gone:
            assert (vanished[..., word] == NOTHING).all()
        else:
            assert not np.isin(vanished[..., word], [word, NOTHING, *gone]).any()
