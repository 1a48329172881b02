"""Word frequencies: how often each word occurs in a large English text, or in a corpus of the user.

The built-in list has the words that occur at least twice in 30.9 million words of English (docs/data-card.md).
"""

from __future__ import annotations

import lzma
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from bertology.corpus.corpus import Corpus
from bertology.corpus.read import load_corpus

BUILT_IN_LIST = "word-frequencies.txt.xz"


def word_form(word: str) -> str:
    """The form under which a word is counted: lower case, with a straight apostrophe."""
    return word.lower().replace("’", "'")


@dataclass(frozen=True, eq=False)
class WordFrequencies:
    """The count of each word form; forms that were not counted have frequency 0."""

    counts: Mapping[str, int]

    def __getitem__(self, word: str) -> int:
        return self.counts.get(word_form(word), 0)

    def most_frequent(self, n: int) -> frozenset[str]:
        """The `n` most frequent forms."""
        return frozenset(sorted(self.counts, key=lambda form: (-self.counts[form], form))[:n])


def corpus_frequencies(corpus: Corpus) -> WordFrequencies:
    """The frequencies of the words of a corpus."""
    return WordFrequencies(Counter(word_form(word) for sentence in corpus.sentences for word in sentence.words))


@cache
def english_frequencies() -> WordFrequencies:
    """The built-in list: each line has a count and the forms that occur so often."""
    data = (resources.files("bertology.corpus") / "data" / BUILT_IN_LIST).read_bytes()
    counts: dict[str, int] = {}
    for line in lzma.decompress(data).decode().splitlines():
        count, *forms = line.split(" ")
        counts |= dict.fromkeys(forms, int(count))
    return WordFrequencies(counts)


def load_frequencies(corpus_name: str = "") -> WordFrequencies:
    """The frequencies in the corpus of that name or path; without one, the built-in list."""
    return corpus_frequencies(load_corpus(corpus_name)) if corpus_name else english_frequencies()
