"""Baselines without a model: majority class and bag of words; for NER no entities and the most frequent tag."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from bertology.corpus.example import Example
from bertology.estimates.metrics import Counts, bootstrap_score
from bertology.training.encoded_examples import EncodedDataset
from bertology.training.tasks.token_classification import count_correct_spans

ExtractTexts = Callable[[EncodedDataset], list[str]]


def baselines(train: EncodedDataset, test: Mapping[str, EncodedDataset], *, tags: bool) -> dict[str, Any]:
    """The score of each baseline on each test set."""
    test_examples = {name: dataset.examples for name, dataset in test.items()}
    if tags:
        counts = {
            "no entities": {
                name: count_correct_spans(gold_tags(examples), [["O"] * len(gold) for gold in gold_tags(examples)])
                for name, examples in test_examples.items()
            },
            "most frequent label of the word": {
                name: most_frequent_tags(train.examples, examples) for name, examples in test_examples.items()
            },
        }
    else:
        majority = majority_class(train.examples)
        counts = {
            "majority class": {
                name: _count_correct([majority] * len(examples), examples) for name, examples in test_examples.items()
            },
            "bag of words": bag_of_words(train, test, last_texts),
            "bag of tokens": bag_of_words(train, test, last_tokens),
        }
    return {
        name: {baseline: asdict(bootstrap_score(by_test_set[name])) for baseline, by_test_set in counts.items()}
        for name in test
    }


def majority_class(examples: Sequence[Example]) -> str:
    """The most frequent class."""
    return Counter(str(example.label) for example in examples).most_common(1)[0][0]


def last_texts(dataset: EncodedDataset) -> list[str]:
    """The words of each text before truncation; of a pair, the hypothesis."""
    return [" ".join(example.segments[-1].words) for example in dataset.examples]


def last_tokens(dataset: EncodedDataset) -> list[str]:
    """The token ids of each text as the model sees it; of a pair, the hypothesis."""
    return [
        " ".join(map(str, example.input_ids[example.token_type_ids == example.token_type_ids.max()]))
        for example in dataset.encoded
    ]


def bag_of_words(
    train: EncodedDataset, test: Mapping[str, EncodedDataset], extract_texts: ExtractTexts
) -> dict[str, Counts]:
    """Correct predictions of a logistic regression on unigrams and bigrams."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    vectorizer = CountVectorizer(ngram_range=(1, 2), binary=True, min_df=2, token_pattern=r"\S+")
    classifier = make_pipeline(vectorizer, LogisticRegression(C=0.05, max_iter=200))
    classifier.fit(extract_texts(train), [str(example.label) for example in train.examples])
    return {
        name: _count_correct(classifier.predict(extract_texts(dataset)), dataset.examples)
        for name, dataset in test.items()
    }


def most_frequent_tags(train: Sequence[Example], examples: Sequence[Example]) -> Counts:
    """Correct entities if each word gets its most frequent tag in training, O if it did not occur there."""
    tag_counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for example in train:
        for word, tag in zip(example.segments[0].words, example.segments[0].tags or (), strict=True):
            tag_counts[word.lower()]["O" if tag.endswith("?") else tag] += 1
    frequent_tag = {word: counts.most_common(1)[0][0] for word, counts in tag_counts.items()}
    predictions = [[frequent_tag.get(word.lower(), "O") for word in example.segments[0].words] for example in examples]
    return count_correct_spans(gold_tags(examples), predictions)


def gold_tags(examples: Sequence[Example]) -> list[Sequence[str]]:
    """The tag of every word."""
    return [example.segments[0].tags or () for example in examples]


def _count_correct(predictions: Sequence[str], examples: Sequence[Example]) -> Counts:
    correct = [float(label == example.label) for label, example in zip(predictions, examples, strict=True)]
    return Counts(np.array(correct), np.ones(len(correct)))
