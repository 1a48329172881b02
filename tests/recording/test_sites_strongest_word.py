"""The strongest word is the argmax of the attention between words, in any batch."""

from __future__ import annotations

import numpy as np
import pytest

from bertology.corpus.corpus import corpus_from_texts
from bertology.corpus.read import load_corpus
from bertology.encoder.load import load
from bertology.recording.plan import RecordingConfig
from bertology.recording.recorder import record
from bertology.recording.sites import ReducedSite, strongest_word_site
from bertology.statistics.words import NO_WORD, RowPooling, word_attention, word_slots


def word_attention_site(pooling: RowPooling) -> ReducedSite:
    return ReducedSite(
        "word_attention",
        ("from_word", "to_word"),
        "attention between words",
        lambda layer, batch, words: word_attention(layer.attention, words, pooling=pooling),
        prepare=word_slots,
    )


@pytest.mark.parametrize("pooling", ["mean", "first", "max"])
def test_the_strongest_word_is_the_argmax_of_the_attention_between_words(pooling: RowPooling) -> None:
    site, attention_site = strongest_word_site(pooling), word_attention_site(pooling)
    recording = record(load("tiny"), load_corpus("english", limit=12), [site, attention_site])
    for recorded, strongest, attention in zip(
        recording.inputs, recording[site], recording[attention_site], strict=True
    ):
        n_words = recorded.tokens.n_words
        assert strongest.shape == (2, 4, 2, n_words)
        assert attention.shape == (2, 4, n_words, n_words)
        without_self = np.where(np.eye(n_words, dtype=bool), -1.0, attention)
        np.testing.assert_array_equal(strongest[:, :, 0], without_self.argmax(-1))
        np.testing.assert_array_equal(strongest[:, :, 1], without_self.argmax(-2))


def test_the_batch_size_changes_nothing() -> None:
    corpus, site = load_corpus("english", limit=20), strongest_word_site()
    small, large = (
        record(load("tiny"), corpus, [site], config=RecordingConfig(tokens_per_batch=n))[site] for n in (30, 3000)
    )
    for left, right in zip(small, large, strict=True):
        np.testing.assert_array_equal(left, right)


def test_a_word_without_other_words_has_no_strongest_word() -> None:
    recording = record(load("tiny"), corpus_from_texts("Yes", "", "Yes \u200b no"), [strongest_word_site()])
    single, empty, with_dropped = recording[strongest_word_site()]
    assert (single == NO_WORD).all()
    assert empty.shape[-1] == 0
    dropped = set(recording.inputs[2].tokens.dropped_words)
    for word in range(with_dropped.shape[-1]):
        if word in dropped:
            assert (with_dropped[..., word] == NO_WORD).all()
        else:
            assert not np.isin(with_dropped[..., word], [word, NO_WORD, *dropped]).any()
