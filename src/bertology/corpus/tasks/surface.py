"""What can be read off the words alone: how many there are, and which of some words is among them (conneau2018).

A bag of words, or the length itself, solves these tasks by definition: they ask whether a vector still holds them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from random import Random

from bertology.corpus.sentence import Sentence
from bertology.corpus.sentence_tasks import Candidate, shuffled_by_text, task

LENGTHS = ((5, 8), (9, 12), (13, 16), (17, 20), (21, 25), (26, 28))
TARGETS = 30
OCCURRENCES = 30


@task("length", about="how many words: 5-8, 9-12, 13-16, 17-20, 21-25 or 26-28")
def length(sentences: Sequence[Sentence], random: Random) -> Iterator[Candidate]:
    """Words and punctuation are counted, as in SentEval."""
    for own in sentences:
        for low, high in LENGTHS:
            if low <= len(own) <= high:
                yield Candidate(own.words, f"{low}-{high}")


@task("word_content", about="which of 30 words of middling frequency is there")
def word_content(sentences: Sequence[Sentence], random: Random) -> Iterator[Candidate]:
    """Exactly one of the words occurs, and once.

    SentEval has 1,000 words from the middle of a frequency list of millions of sentences; here they are the rarest
    words of four letters or more that still occur in 30 sentences, which a treebank has enough of.
    """
    counts = Counter(word for own in sentences for word in {word.lower() for word in own.words} if _is_plain(word))
    enough = [word for word in shuffled_by_text(counts, 0) if counts[word] >= OCCURRENCES]
    targets = set(sorted(enough, key=lambda word: counts[word])[:TARGETS])
    for own in sentences:
        there = [word.lower() for word in own.words if word.lower() in targets]
        if len(there) == 1:
            yield Candidate(own.words, there[0])


def _is_plain(word: str) -> bool:
    return len(word) >= 4 and word.isalpha()
