"""How good is it, against what, and how sure is that? One number an item, so that every interval is a bootstrap."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from bertology.corpus.bio import decode
from bertology.corpus.corpus import Item
from bertology.maths.resampling import bootstrap_ratio
from pretraining.partners.examples import Example, batches
from pretraining.partners.loop import logits_of

Logits = NDArray[np.float32]


@dataclass(frozen=True)
class Counts:
    """For each item what was right, and of how much: 1 of 1 for a class, 2 TP of TP + FP and TP + FN for names."""

    right: NDArray[np.float64]
    of: NDArray[np.float64]

    @property
    def value(self) -> float:
        """Accuracy, or micro F1 of names; 0 where there is nothing to be right about."""
        return float(self.right.sum() / self.of.sum()) if self.of.sum() else 0.0


@dataclass(frozen=True)
class Figure:
    """A share between 0 and 1 with the 95 % interval of a bootstrap over n items."""

    value: float
    low: float
    high: float
    n: int


def figure(counts: Counts) -> Figure:
    """The value of these counts with its interval."""
    value, low, high, _ = bootstrap_ratio(counts.right, counts.of, seed=0)
    return Figure(float(value), float(low), float(high), len(counts.right))


@torch.inference_mode()
def predict(model: nn.Module, examples: Sequence[Example], size: int = 32) -> list[Logits]:
    """The logits of each example: (class) of a classifier, (word, class) of a tagger at each word's first piece."""
    model.eval()
    found: list[Logits] = [np.empty(0, np.float32)] * len(examples)
    for batch in batches(examples, size):
        logits = logits_of(model, batch).float().cpu().numpy()
        for row, place in enumerate(batch.places):
            words = examples[place].words
            found[place] = logits[row, list(words)] if words else logits[row]
    return found


def count(examples: Sequence[Example], logits: Sequence[Logits], labels: Sequence[str]) -> Counts:
    """Right classes of a classifier, or right names (same words, same kind) of a tagger."""
    if not (examples and examples[0].words):
        right = [float(int(np.argmax(one)) == example.labels[0]) for example, one in zip(examples, logits, strict=True)]
        return Counts(np.array(right), np.ones(len(right)))
    tags = [[labels[int(place)] for place in one.argmax(-1)] for one in logits]
    return count_names([example.item for example in examples], tags)


def count_names(items: Sequence[Item], tags: Sequence[Sequence[str]]) -> Counts:
    """Names found by tags; an I that continues nothing begins a name, as the CoNLL script has it."""
    right: list[float] = []
    of: list[float] = []
    for item, given in zip(items, tags, strict=True):
        gold = set(item.parts[0].entities or ())
        found = set(decode(given, scheme="iob1"))
        right.append(2.0 * len(gold & found))
        of.append(float(len(gold) + len(found)))
    return Counts(np.array(right), np.array(of))


def constant(items: Sequence[Item], label: str) -> Counts:
    """What always answering `label` gets right."""
    return Counts(np.array([float(item.label == label) for item in items]), np.ones(len(items)))


def by_words(train: Sequence[Item], items: Sequence[Item]) -> Counts:
    """What a logistic regression on the words of the last text gets right: of a pair, the hypothesis alone."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    model = make_pipeline(CountVectorizer(ngram_range=(1, 2), binary=True), LogisticRegression(C=0.3, max_iter=300))
    model.fit([item.parts[-1].text for item in train], [str(item.label) for item in train])
    answers = model.predict([item.parts[-1].text for item in items])
    right = [float(answer == item.label) for answer, item in zip(answers, items, strict=True)]
    return Counts(np.array(right), np.ones(len(right)))


def by_lookup(train: Sequence[Item], items: Sequence[Item]) -> Counts:
    """Names found by giving each word the tag it had most often in training, O where it was never seen."""
    seen: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for item in train:
        for word, tag in zip(item.parts[0].words, item.parts[0].tags or (), strict=True):
            seen[word.lower()]["O" if tag.endswith("?") else tag] += 1
    usual = {word: tags.most_common(1)[0][0] for word, tags in seen.items()}
    return count_names(items, [[usual.get(word.lower(), "O") for word in item.parts[0].words] for item in items])
