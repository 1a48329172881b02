"""The strongest word is the argmax of the attention between words, in any batch."""

from __future__ import annotations

import numpy as np
import pytest

import planted
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
        assert strongest.shape == (2, 4, 4, n_words)
        assert attention.shape == (2, 4, n_words, n_words)
        without_self = np.where(np.eye(n_words, dtype=bool), -1.0, attention)
        np.testing.assert_array_equal(strongest[:, :, 0], without_self.argmax(-1))
        np.testing.assert_array_equal(strongest[:, :, 1], without_self.argmax(-2))
        assert (strongest[:, :, 2:] == 1).all()


def test_the_batch_size_changes_nothing() -> None:
    corpus, site = load_corpus("english", limit=20), strongest_word_site()
    small, large = (
        record(load("tiny"), corpus, [site], config=RecordingConfig(tokens_per_batch=n))[site] for n in (30, 3000)
    )
    for left, right in zip(small, large, strict=True):
        np.testing.assert_array_equal(left, right)


def test_a_word_without_other_words_has_no_strongest_word() -> None:
    recording = record(load("tiny"), planted.make_corpus("Yes", "", "Yes \u200b no"), [strongest_word_site()])
    single, empty, with_dropped = recording[strongest_word_site()]
    assert (single[:, :, :2] == NO_WORD).all()
    assert (single[:, :, 2:] == 0).all()
    assert empty.shape[-1] == 0
    dropped = set(recording.inputs[2].tokens.dropped_words)
    for word in range(with_dropped.shape[-1]):
        if word in dropped:
            assert (with_dropped[:, :, :2, word] == NO_WORD).all()
        else:
            assert not np.isin(with_dropped[:, :, :2, word], [word, NO_WORD, *dropped]).any()


def test_equally_strong_words_are_counted_and_drawn_at_random() -> None:
    """Uniform attention: every other word is as strong, and each is taken about equally often."""
    texts = [" ".join(f"w{number}{word}" for word in range(6)) for number in range(3)]
    recording = planted.make_recording(planted.make_corpus(*texts), [[planted.uniform_head]])
    site = strongest_word_site()
    for strongest in recording.with_sites([site])[site]:
        assert (strongest[0, 0, 2:] == 5).all()
        for row in strongest[0, 0, :2]:
            assert len(set(row.tolist())) > 2  # not always the first word
            assert all(target != word and 0 <= target < 6 for word, target in enumerate(row))


def test_ties_between_two_words_go_to_either_alike() -> None:
    """A long input whose words attend to their two neighbours alike."""
    n_words = 400
    corpus = planted.make_corpus(" ".join(f"w{word}" for word in range(n_words)))
    site = strongest_word_site()

    def to_neighbours(recorded_input: planted.RecordedInput) -> planted.FloatArray:
        return (planted.offset_head(1)(recorded_input) + planted.offset_head(-1)(recorded_input)) / 2

    (strongest,) = planted.make_recording(corpus, [[to_neighbours]]).with_sites([site])[site]
    offsets = strongest[0, 0, 0, 1:-1] - np.arange(1, n_words - 1)
    assert set(offsets.tolist()) == {-1, 1}
    assert abs(float((offsets == 1).mean()) - 0.5) < 0.08
    assert (strongest[0, 0, 2, 1:-1] == 2).all()
