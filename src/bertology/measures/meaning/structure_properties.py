"""What makes context worth having, counted in the text alone: complexity, ambiguity, unseen words (arora2020).

| property | of a name (NER) | of a text with a class |
|---|---|---|
| complexity | words that it spans | mean distance between a word and its head in the tree, punctuation apart |
| ambiguity | labels (kinds, and none) each of its words has in training | entropy of the class by its words, bits |
| unseen words | mean of 1 / (1 + times seen in training) over its words | share of its words that training lacks |

Of a word with a tag, which the paper does not have: as of a name, and for complexity how far its head is.

The entropy is that of the mean over words of p(class | word), which with two classes is the H of the paper; p is
counted in training, and words that training lacks have none. The paper's 1 / count puts names in the same order as
1 / (1 + count), which has a value for what was never seen: 1. Upper and lower case count alike.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertology.corpus.corpus import Item
from bertology.corpus.sentence import ROOT, Sentence

Floats = NDArray[np.float64]

COMPLEXITY, AMBIGUITY, UNSEEN = "complexity", "ambiguity", "unseen words"
PROPERTIES = (COMPLEXITY, AMBIGUITY, UNSEEN)
NO_NAME = "O"


@dataclass(frozen=True)
class Counted:
    """How often each word of training had each label: the kind of its name, or the class of its text."""

    labels: dict[str, Counter[str]]

    def times(self, word: str) -> int:
        """How often training has the word."""
        return self.labels[word.lower()].total() if word.lower() in self.labels else 0

    def chances(self, word: str, classes: Sequence[str]) -> Floats | None:
        """p(class | word), or None for a word that training lacks."""
        counts = self.labels.get(word.lower())
        return None if counts is None else np.array([counts[name] for name in classes]) / counts.total()


def counted(words: Iterable[tuple[str, str]]) -> Counted:
    """Words of training, each with its label."""
    labels: dict[str, Counter[str]] = defaultdict(Counter)
    for word, label in words:
        labels[word.lower()][label] += 1
    return Counted(dict(labels))


def kind_of(tag: str) -> str:
    """The kind of name that a tag such as B-PER marks, or that it marks none."""
    return tag.partition("-")[2] or NO_NAME


def of_name(words: Sequence[str], training: Counted) -> Floats:
    """(property,) of one name."""
    labels = [len(training.labels[word.lower()]) for word in words if training.times(word)]
    rarity = [1 / (1 + training.times(word)) for word in words]
    return np.array([len(words), np.mean(labels) if labels else np.nan, np.mean(rarity)], np.float64)


def of_word(sentence: Sentence, place: int, training: Counted) -> Floats:
    """(property,) of one word: how far its head is (NaN for a root, or without a tree), and as for a name."""
    head = ROOT if sentence.heads is None else sentence.heads[place]
    _, ambiguity, rarity = of_name(sentence.words[place : place + 1], training)
    return np.array([np.nan if head == ROOT else abs(place - head), ambiguity, rarity])


def of_text(item: Item, training: Counted, classes: Sequence[str]) -> Floats:
    """(property,) of one text, or of both texts of a pair together."""
    words = [word for part in item.parts for word in part.words]
    unseen = np.mean([training.times(word) == 0 for word in words]) if words else np.nan
    return np.array([arc_length(item.parts), class_entropy(words, training, classes), unseen], np.float64)


def arc_length(parts: Sequence[Sentence]) -> float:
    """Words from a word to its head, the mean over all that have one and are no punctuation; NaN without trees."""
    lengths = [
        abs(word - head)
        for part in parts
        for word, (head, relation) in enumerate(zip(part.heads or (), part.relations or (), strict=True))
        if head != ROOT and relation.split(":")[0] != "punct"
    ]
    return float(np.mean(lengths)) if lengths else np.nan


def class_entropy(words: Sequence[str], training: Counted, classes: Sequence[str]) -> float:
    """Bits, from 0 (every word is of one class) to log2 of the classes; NaN where training lacks every word."""
    known = [chances for word in words if (chances := training.chances(word, classes)) is not None]
    if not known:
        return np.nan
    mean = np.mean(known, 0)
    return float(-(mean[mean > 0] * np.log2(mean[mean > 0])).sum() + 0.0)


def halves(values: Floats) -> NDArray[np.bool_] | None:
    """Which items lie in the upper half, or None where no cut leaves some on either side.

    Above the median, or from it on where that divides them more evenly, as counts often tie. NaN is never above.
    """
    defined = values[np.isfinite(values)]
    if not len(defined):
        return None
    middle = np.median(defined)
    cuts = [upper for upper in (values > middle, values >= middle) if 0 < upper.sum() < len(defined)]
    return min(cuts, key=lambda upper: abs(2 * int(upper.sum()) - len(defined)), default=None)
