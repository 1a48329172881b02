"""Word frequencies: the built-in list, and counts of a corpus."""

from __future__ import annotations

from bertology.corpus.read import as_corpus, load_corpus
from bertology.corpus.word_frequencies import corpus_frequencies, english_frequencies, load_frequencies


def test_words_of_a_corpus_are_counted_in_lower_case() -> None:
    frequencies = corpus_frequencies(as_corpus(["The dog saw the cat.", "It’s a dog."]))
    assert [frequencies[word] for word in ("THE", "dog", "it's", "it’s", "horse")] == [2, 2, 1, 1, 0]
    assert frequencies.most_frequent(3) == {".", "dog", "the"}


def test_the_built_in_list_orders_words_by_frequency() -> None:
    frequencies = english_frequencies()
    counts = [frequencies[word] for word in ("the", "house", "gearbox", "xqzzy")]
    assert counts == sorted(counts, reverse=True) and counts[0] > 1_000_000 and counts[-1] == 0
    assert min(frequencies.counts.values()) == 2 and len(frequencies.counts) > 100_000


def test_the_built_in_list_has_the_words_of_treebanks() -> None:
    """Clitics, abbreviations and punctuation are words of their own in treebanks, and none of them is rare."""
    frequencies = english_frequencies()
    assert all(frequencies[word] > 1000 for word in ("n't", "'s", "’ll", "ca", "wo", "mr.", "...", "-", '"'))
    words = [word for sentence in load_corpus("english").sentences for word in sentence.words]
    assert sum(frequencies[word] == 0 for word in words) < 0.01 * len(words)


def test_a_corpus_can_replace_the_list() -> None:
    assert load_frequencies() is english_frequencies()
    assert load_frequencies("english")["the"] == sum(
        word.lower() == "the" for sentence in load_corpus("english").sentences for word in sentence.words
    )
