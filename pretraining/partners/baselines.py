"""Baselines without a model: majority class and bag of words; for NER no entities and a lookup."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from bertology.corpus.corpus import Example
from bertology.estimates.metrics import Counts, bootstrap_score
from bertology.training.encoded_examples import EncodedDataset
from bertology.training.tasks.token_classification import count_correct_spans

Texts = Callable[[EncodedDataset], list[str]]


def baselines(train: EncodedDataset, dev: Mapping[str, EncodedDataset], *, tags: bool) -> dict[str, Any]:
    """A figure of each baseline for each development part."""
    judged = {part: seen.examples for part, seen in dev.items()}
    if tags:
        found = {
            "no names": {part: count_correct_spans(tags_of(items), [["O"] * len(i.segments[0]) for i in items])
                         for part, items in judged.items()},
            "lookup": {part: by_lookup(train.examples, items) for part, items in judged.items()},
        }  # fmt: skip
    else:
        usual = majority(train.examples)
        found = {
            "commonest class": {part: _right([usual] * len(items), items) for part, items in judged.items()},
            "words": by_words(train, dev, last_texts),
            "pieces seen": by_words(train, dev, last_pieces),
        }
    return {part: {name: asdict(bootstrap_score(counts[part])) for name, counts in found.items()} for part in dev}


def majority(items: Sequence[Example]) -> str:
    """The commonest class."""
    return Counter(str(item.label) for item in items).most_common(1)[0][0]


def last_texts(seen: EncodedDataset) -> list[str]:
    """The words of the whole text, of a pair the hypothesis."""
    return [" ".join(item.segments[-1].words) for item in seen.examples]


def last_pieces(seen: EncodedDataset) -> list[str]:
    """What of it the model is shown, as numbers of pieces."""
    return [
        " ".join(map(str, some.input_ids[some.token_type_ids == some.token_type_ids.max()])) for some in seen.encoded
    ]


def by_words(train: EncodedDataset, dev: Mapping[str, EncodedDataset], texts: Texts) -> dict[str, Counts]:
    """What a logistic regression on the words and word pairs of these texts gets right."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    words = CountVectorizer(ngram_range=(1, 2), binary=True, min_df=2, token_pattern=r"\S+")
    model = make_pipeline(words, LogisticRegression(C=0.05, max_iter=200))
    model.fit(texts(train), [str(item.label) for item in train.examples])
    return {part: _right(model.predict(texts(seen)), seen.examples) for part, seen in dev.items()}


def by_lookup(train: Sequence[Example], items: Sequence[Example]) -> Counts:
    """Names found by giving each word the tag it had most often in training, O where it was never seen."""
    seen: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for item in train:
        for word, tag in zip(item.segments[0].words, item.segments[0].tags or (), strict=True):
            seen[word.lower()]["O" if tag.endswith("?") else tag] += 1
    usual = {word: tags.most_common(1)[0][0] for word, tags in seen.items()}
    found = [[usual.get(word.lower(), "O") for word in item.segments[0].words] for item in items]
    return count_correct_spans(tags_of(items), found)


def tags_of(items: Sequence[Example]) -> list[Sequence[str]]:
    """The tag of every word."""
    return [item.segments[0].tags or () for item in items]


def _right(answers: Sequence[str], items: Sequence[Example]) -> Counts:
    right = [float(answer == item.label) for answer, item in zip(answers, items, strict=True)]
    return Counts(np.array(right), np.ones(len(right)))
