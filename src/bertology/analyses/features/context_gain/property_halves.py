"""Properties of test units that may make context useful, and scores on the lower and upper half by each (arora2020).

| property | of an entity (NER) | of a labelled text |
|---|---|---|
| structural complexity | number of words | mean distance between a word and its governor, without punctuation |
| ambiguity | training labels (types, and none), mean over words | entropy of the class given its words, bits |
| rarity | 1 / (1 + training count), mean over words | proportion of words that are not in the training data |

Words with tags, which the paper does not analyse: as entities, and the complexity is the distance to the governor.

The entropy is that of the mean over words of p(class | word), which for two classes is the H of the paper; p is counted
in the training data, and unseen words are left out. The paper's 1 / count ranks entities as 1 / (1 + count) does, which
is defined for unseen words: 1. Letter case is ignored.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from bertology.analyses.frozen_features.dataset import FrozenFeatureDataset, example_labels
from bertology.analyses.frozen_features.predictions import SeedPredictions
from bertology.arrays import BoolArray, FloatArray, IntArray
from bertology.corpus.bio import decode
from bertology.corpus.example import Example
from bertology.corpus.sentence import ROOT, Sentence, Span
from bertology.estimates.estimate import Estimates
from bertology.estimates.resampling import bootstrap_sentences_and_seeds, exact_where_unanimous, ratio

COMPLEXITY, AMBIGUITY, RARITY = "structural complexity", "ambiguity", "rarity"
PROPERTIES = (COMPLEXITY, AMBIGUITY, RARITY)
HALF_NAMES = ("lower half", "upper half", "upper - lower half")
NO_ENTITY = "O"


@dataclass(frozen=True)
class WordLabelCounts:
    """How often each training word had each label: its tag, the type of its entity, or the class of its text."""

    counts: dict[str, Counter[str]]

    def frequency(self, word: str) -> int:
        """The training count of the word."""
        return self.counts[word.lower()].total() if word.lower() in self.counts else 0

    def label_probabilities(self, word: str, classes: Sequence[str]) -> FloatArray | None:
        """p(class | word), or None for an unseen word."""
        counts = self.counts.get(word.lower())
        return None if counts is None else np.array([counts[name] for name in classes]) / counts.total()


def count_word_labels(words: Iterable[tuple[str, str]]) -> WordLabelCounts:
    """Count (word, label) pairs."""
    labels: dict[str, Counter[str]] = defaultdict(Counter)
    for word, label in words:
        labels[word.lower()][label] += 1
    return WordLabelCounts(dict(labels))


def entity_type(tag: str) -> str:
    """The entity type of a tag such as B-PER, or `NO_ENTITY`."""
    return tag.partition("-")[2] or NO_ENTITY


def entity_properties(words: Sequence[str], train_counts: WordLabelCounts) -> FloatArray:
    """(property,) of one entity."""
    labels = [len(train_counts.counts[word.lower()]) for word in words if train_counts.frequency(word)]
    rarity = [1 / (1 + train_counts.frequency(word)) for word in words]
    return np.array([len(words), np.mean(labels) if labels else np.nan, np.mean(rarity)], np.float64)


def word_properties(sentence: Sentence, index: int, train_counts: WordLabelCounts) -> FloatArray:
    """(property,) of one word; the complexity is NaN for a root, or without a tree."""
    governor = ROOT if sentence.governors is None else sentence.governors[index]
    _, ambiguity, rarity = entity_properties(sentence.words[index : index + 1], train_counts)
    return np.array([np.nan if governor == ROOT else abs(index - governor), ambiguity, rarity])


def text_properties(example: Example, train_counts: WordLabelCounts, classes: Sequence[str]) -> FloatArray:
    """(property,) of one text, or of both texts of a pair together."""
    words = [word for segment in example.segments for word in segment.words]
    unseen = np.mean([train_counts.frequency(word) == 0 for word in words]) if words else np.nan
    return np.array([arc_length(example.segments), class_entropy(words, train_counts, classes), unseen], np.float64)


def arc_length(segments: Sequence[Sentence]) -> float:
    """Mean distance in words between a word and its governor, without roots and punctuation; NaN without trees."""
    lengths = [
        abs(word - governor)
        for segment in segments
        for word, (governor, relation) in enumerate(zip(segment.governors or (), segment.relations or (), strict=True))
        if governor != ROOT and relation.split(":")[0] != "punct"
    ]
    return float(np.mean(lengths)) if lengths else np.nan


def class_entropy(words: Sequence[str], train_counts: WordLabelCounts, classes: Sequence[str]) -> float:
    """Entropy in bits of the mean of p(class | word), from 0 to log2 of the classes; NaN if no word was seen."""
    by_word = [train_counts.label_probabilities(word, classes) for word in words]
    seen = [probabilities for probabilities in by_word if probabilities is not None]
    if not seen:
        return np.nan
    mean = np.mean(seen, 0)
    return float(-(mean[mean > 0] * np.log2(mean[mean > 0])).sum() + 0.0)


def upper_half(values: FloatArray) -> BoolArray | None:
    """The mask of the values in the upper half, or None if no cut leaves values on both sides.

    Values above the median, or from the median on if this is the more even split: counts are often tied. NaN is in
    neither half.
    """
    defined = values[np.isfinite(values)]
    if not len(defined):
        return None
    median = np.median(defined)
    cuts = [upper for upper in (values > median, values >= median) if 0 < upper.sum() < len(defined)]
    return min(cuts, key=lambda upper: abs(2 * int(upper.sum()) - len(defined)), default=None)


@dataclass(frozen=True)
class ScoredUnits:
    """The units that are scored one by one, with the index of their text, gold label and (unit, property) values.

    The gold label is the span and type of an entity, the position and tag of a word, or the class of a text.
    """

    unit_name: str
    text_index: IntArray
    gold: tuple[Hashable, ...]
    properties: FloatArray
    n_texts: int


def scored_units(dataset: FrozenFeatureDataset, max_entity_words: int = 0) -> ScoredUnits:
    """All entities of the test examples, all words if tags mark no entities, else all texts or pairs.

    `max_entity_words` leaves out longer entities (0: none).
    """
    task, train_counts = dataset.task, word_label_counts(dataset)
    text_index: list[int] = []
    gold: list[Hashable] = []
    values: list[FloatArray] = []
    for index, example in enumerate(dataset.test):
        for label in _scorable_labels(dataset, example_labels(task, example)):
            if max_entity_words and isinstance(label, Span) and label.end - label.start > max_entity_words:
                continue
            text_index.append(index)
            gold.append(label)
            values.append(_properties(example, label, train_counts, task.labels))
    token_unit = "entity" if _marks_spans(dataset) else "word"
    unit_name = {"sentence": "text", "pair": "pair"}.get(task.name, token_unit)
    rows = np.stack(values) if values else np.zeros((0, len(PROPERTIES)))
    return ScoredUnits(unit_name, np.array(text_index, np.int64), tuple(gold), rows, len(dataset.test))


def word_label_counts(dataset: FrozenFeatureDataset) -> WordLabelCounts:
    """The training words with the type of their entity, their tag, or the class of their text."""
    task = dataset.task
    if task.name != "token":
        return count_word_labels(
            (word, str(example.label))
            for example in dataset.train
            for segment in example.segments
            for word in segment.words
        )
    return count_word_labels(
        (word, entity_type(tag) if _marks_spans(dataset) else tag)
        for example in dataset.train
        for word, tag in zip(example.segments[0].words, example_labels(task, example), strict=True)
    )


def is_correct(dataset: FrozenFeatureDataset, units: ScoredUnits, predictions: SeedPredictions) -> FloatArray:
    """(seed, unit) 1 if the prediction is correct: an entity with its boundaries and type, a tag, a class."""
    correct = np.zeros((len(predictions), len(units.gold)))
    for seed, predicted in enumerate(predictions):
        by_text = [set(_scorable_labels(dataset, [label] if isinstance(label, str) else label)) for label in predicted]
        correct[seed] = [
            gold in by_text[text] for gold, text in zip(units.gold, units.text_index.tolist(), strict=True)
        ]
    return correct


def split_scores(
    units: ScoredUnits, scores: Sequence[FloatArray], property_index: int, *, seed: int, lowest: float = 0.0
) -> tuple[Estimates, Estimates]:
    """(half, score or difference) means on the halves by a property: each score, then all pairwise differences.

    Scores are (seed, unit), from `lowest` to 1. The second result has the same means over all units with the property
    in both halves: what random halves would give. Whole texts, with all their units, and seeds are resampled.
    """
    pairs = list(combinations(range(len(scores)), 2))
    width = len(scores) + len(pairs)
    values = units.properties[:, property_index] if len(units.properties) else np.zeros(0)
    upper = upper_half(values)
    if upper is None:
        return Estimates.empty((len(HALF_NAMES), width)), Estimates.empty((len(HALF_NAMES), width))
    defined = np.isfinite(values)
    n_units = np.array([(defined & ~upper).sum(), upper.sum(), defined.sum()])
    scores_and_ones = np.stack([*scores, np.ones_like(scores[0])], -1)
    sums = np.zeros((len(scores_and_ones), units.n_texts, 2, len(scores) + 1))
    for half, in_half in enumerate((defined & ~upper, upper)):
        for text in np.unique(units.text_index[in_half]):
            sums[:, text, half] = scores_and_ones[:, in_half & (units.text_index == text)].sum(1)

    def means(totals: FloatArray) -> FloatArray:
        scores = ratio(totals[..., :-1], totals[..., -1:], empty=np.nan)
        return np.concatenate([scores, *(scores[..., a, None] - scores[..., b, None] for a, b in pairs)], -1)

    def half_means(totals: FloatArray) -> FloatArray:
        low, high = means(totals[..., 0, :]), means(totals[..., 1, :])
        return np.stack([low, high, high - low], -2)

    def pooled_means(totals: FloatArray) -> FloatArray:
        pooled = means(totals.sum(-2))
        return np.stack([pooled, pooled, np.zeros_like(pooled)], -2)

    used = sums[:, sums.any((0, 2, 3))]
    by_half, random_halves = (
        bootstrap_sentences_and_seeds(used, statistic, seed=seed) for statistic in (half_means, pooled_means)
    )
    n_texts = used.any((0, 3)).sum(0)
    minimum = np.full((len(HALF_NAMES), width), -1.0)
    minimum[:2, : len(scores)] = lowest
    by_half = exact_where_unanimous(by_half.with_n(np.append(n_texts, n_texts.min())[:, None]), lowest=minimum)
    return by_half.with_n(n_units[:, None]), random_halves.with_n(n_units[:, None])


def _marks_spans(dataset: FrozenFeatureDataset) -> bool:
    # Imported here, as the registry must not import torch.
    from bertology.training.tasks.token_classification import TokenClassification

    return isinstance(dataset.task, TokenClassification) and dataset.task.marks_spans


def _scorable_labels(dataset: FrozenFeatureDataset, labels: Sequence[str]) -> list[Hashable]:
    """What is scored in the labels of one text: entities, positions with their tags, or the class."""
    if _marks_spans(dataset):
        return list(decode(labels, scheme="iob1"))
    return list(enumerate(labels)) if dataset.task.name == "token" else list(labels)


def describe_unit(example: Example, label: Hashable) -> str:
    """The type and words of an entity, the tag of a word and the word, or the class of a text."""
    words = example.segments[0].words
    match label:
        case Span(start, end, name):
            return f"{name}: {' '.join(words[start:end])}"
        case (int(index), str(tag)):
            return f"{tag}: {words[index]}"
        case _:
            return str(label)


def _properties(example: Example, label: Hashable, train_counts: WordLabelCounts, classes: Sequence[str]) -> FloatArray:
    match label:
        case Span(start, end):
            return entity_properties(example.segments[0].words[start:end], train_counts)
        case (int(index), _):
            return word_properties(example.segments[0], index, train_counts)
        case _:
            return text_properties(example, train_counts, classes)
