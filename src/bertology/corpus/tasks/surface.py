"""Surface tasks: sentence length and word content (conneau2018).

A bag of words, or the length itself, solves these tasks by definition: they test whether a vector preserves them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from random import Random

from bertology.corpus.hashing import shuffle_by_hash
from bertology.corpus.probing_tasks import LabelledCandidate, probing_task
from bertology.corpus.sentence import Sentence

LENGTHS = ((5, 8), (9, 12), (13, 16), (17, 20), (21, 25), (26, 28))
N_TARGETS = 30
MIN_OCCURRENCES = 30
MIN_LETTERS = 4


@probing_task("length", description="SentEval length: number of words (5-8, 9-12, 13-16, 17-20, 21-25 or 26-28)")
def length(sentences: Sequence[Sentence], rng: Random) -> Iterator[LabelledCandidate]:
    """Count words and punctuation, as SentEval does."""
    for sentence in sentences:
        for low, high in LENGTHS:
            if low <= len(sentence) <= high:
                yield LabelledCandidate(sentence.words, f"{low}-{high}")


@probing_task("word_content", description="SentEval word content: which of 30 mid-frequency words occurs")
def word_content(sentences: Sequence[Sentence], rng: Random) -> Iterator[LabelledCandidate]:
    """Use sentences in which exactly one of the words occurs, once.

    SentEval has 1,000 words of medium frequency in millions of sentences. Here they are the rarest words of at least
    four letters that occur in 30 sentences, which a treebank contains enough of.
    """
    counts = Counter(word for sentence in sentences for word in {word.lower() for word in sentence.words})
    plain = (word for word in counts if len(word) >= MIN_LETTERS and word.isalpha())
    frequent = [word for word in shuffle_by_hash(plain, 0) if counts[word] >= MIN_OCCURRENCES]
    targets = set(sorted(frequent, key=lambda word: counts[word])[:N_TARGETS])
    for sentence in sentences:
        present = [word.lower() for word in sentence.words if word.lower() in targets]
        if len(present) == 1:
            yield LabelledCandidate(sentence.words, present[0])
