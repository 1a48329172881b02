"""Word sense disambiguation by nearest neighbours or centroids, its baselines without vectors, and their scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertology.analyses.word_senses.occurrences import (
    SenseSplits,
    last_layers,
    representation_cosines,
    senses_by_frequency,
    shuffle_senses,
)
from bertology.estimates.estimate import Estimates
from bertology.estimates.resampling import (
    bootstrap_sentences_and_seeds,
    exact_where_unanimous,
    ratio,
)
from bertology.numerics.nearest_neighbours import FloatArray, IndexArray, knn_predict, nearest_centroid_predict
from bertology.results.answers import Answer

SenseRule = Literal["knn", "centroid"]
BackOff = Callable[[str, str], str | None]
"""The predicted sense of a word not seen in training, from its lemma and part of speech; None if there is none."""
BackOffFactory = Callable[[Sequence[str]], BackOff]
"""Makes the back-off from the senses of the training data."""

F1, ACCURACY, AMBIGUOUS_ACCURACY, BACK_OFF_RATE, BACK_OFF_ACCURACY = (
    "F1",
    "accuracy",
    "accuracy (ambiguous words)",
    "proportion unseen",
    "accuracy (unseen words)",
)
MOST_FREQUENT = "most frequent sense"
MEASURES = (F1, ACCURACY, AMBIGUOUS_ACCURACY, BACK_OFF_RATE, BACK_OFF_ACCURACY)


@dataclass(frozen=True)
class SenseClassifier:
    """How a sense is predicted: by the `k` nearest neighbours, or by the nearest sense centroid.

    With `clip_k`, k is at most the training count of the word's rarest sense. With `same_pos` only senses seen in
    training with the same part of speech are candidates, or all if there is none.
    """

    rule: SenseRule = "knn"
    k: int = 1
    clip_k: bool = True
    same_pos: bool = False


class CandidateSenses(NamedTuple):
    """Test occurrences with the same candidate senses (most frequent first), and the training occurrences of those."""

    test_indices: IndexArray
    senses: list[str]
    train_indices: IndexArray
    sense_ids: NDArray[np.intp]


class SenseCorrectness(NamedTuple):
    """The expected correctness of each test occurrence, 0 to 1, as (test,) or (representation, test).

    `lemma_in_train`: its lemma occurs in training; `is_ambiguous`: with at least two senses.
    """

    test_indices: IndexArray
    lemma_in_train: NDArray[np.bool_]
    is_ambiguous: NDArray[np.bool_]
    by_vectors: FloatArray
    by_back_off: FloatArray
    by_most_frequent: FloatArray
    by_random: FloatArray
    by_oracle: FloatArray
    predicted: NDArray[Any]
    """(representation, test) the predicted sense; None for unseen lemmas."""


def disambiguate(
    sense_splits: SenseSplits,
    classifier: SenseClassifier,
    back_off_factory: BackOffFactory | None,
    *,
    shuffle_seed: int | None = None,
) -> list[SenseCorrectness]:
    """The correctness in each split; with `shuffle_seed`, after permuting the training senses of each lemma."""
    correctness: list[SenseCorrectness] = []
    for number, split in enumerate(sense_splits.splits):
        senses = sense_splits.train.senses
        if shuffle_seed is not None:
            senses = shuffle_senses(sense_splits.train, split[0], np.random.default_rng([shuffle_seed, number, 7]))
        correctness.append(_score_split(sense_splits, split, classifier, back_off_factory, senses))
    return correctness


def _score_split(
    sense_splits: SenseSplits,
    split: tuple[IndexArray, IndexArray],
    classifier: SenseClassifier,
    back_off_factory: BackOffFactory | None,
    train_senses: NDArray[Any],
) -> SenseCorrectness:
    test = sense_splits.test
    indices = split[1]
    gold = [test.gold_senses[index] for index in indices.tolist()]
    row_of = {index: row for row, index in enumerate(indices.tolist())}
    n_representations, n = len(test.representations), len(indices)
    correctness = SenseCorrectness(
        indices,
        np.zeros(n, np.bool_),
        np.zeros(n, np.bool_),
        np.zeros((n_representations, n)),
        *np.zeros((4, n)),
        predicted=np.full((n_representations, n), None),
    )
    for candidates in _candidate_senses(sense_splits, split, classifier, train_senses):
        rows = np.array([row_of[index] for index in candidates.test_indices.tolist()])
        is_gold = np.array([[sense in gold[row] for sense in candidates.senses] for row in rows.tolist()])
        correctness.lemma_in_train[rows] = True
        correctness.is_ambiguous[rows] = len(candidates.senses) > 1
        predicted = _predict_senses(sense_splits, candidates, classifier)
        correctness.by_vectors[:, rows] = is_gold[np.arange(len(rows)), predicted]
        correctness.predicted[:, rows] = np.array(candidates.senses, np.object_)[predicted]
        correctness.by_most_frequent[rows] = is_gold[:, 0]
        correctness.by_oracle[rows] = is_gold.any(1)
        correctness.by_random[rows] = is_gold.mean(1)
    if back_off_factory is not None:
        back_off = back_off_factory(train_senses[split[0]].tolist())
        for row in np.flatnonzero(~correctness.lemma_in_train).tolist():
            lemma, pos = (str(values[indices[row]]) for values in (test.lemmas, test.pos))
            correctness.by_back_off[row] = back_off(lemma, pos) in gold[row]
    return correctness


def _candidate_senses(
    sense_splits: SenseSplits,
    split: tuple[IndexArray, IndexArray],
    classifier: SenseClassifier,
    train_senses: NDArray[Any],
) -> list[CandidateSenses]:
    """The test occurrences by candidate senses; those whose lemma is not in training are left out."""
    train, test = sense_splits.train, sense_splits.test
    train_split, test_split = split
    groups: list[CandidateSenses] = []
    for lemma in sorted(set(test.lemmas[test_split].tolist()) & set(train.lemmas[train_split].tolist())):
        same_lemma = train_split[train.lemmas[train_split] == lemma]
        indices = test_split[test.lemmas[test_split] == lemma]
        tags = sorted(set(test.pos[indices].tolist())) if classifier.same_pos else [None]
        for tag in tags:
            same_pos = same_lemma[train.pos[same_lemma] == tag] if tag is not None else same_lemma
            senses = senses_by_frequency(train_senses[same_pos if len(same_pos) else same_lemma].tolist())
            # Occurrences of other lemmas that share a sense are neighbours, too.
            train_indices = train_split[np.isin(train_senses[train_split], senses)]
            test_indices = indices if tag is None else indices[test.pos[indices] == tag]
            ids = {sense: number for number, sense in enumerate(senses)}
            sense_ids = np.array([ids[sense] for sense in train_senses[train_indices].tolist()], np.intp)
            groups.append(CandidateSenses(test_indices, senses, train_indices, sense_ids))
    return groups


def _predict_senses(sense_splits: SenseSplits, candidates: CandidateSenses, classifier: SenseClassifier) -> IndexArray:
    """(representation, test) the index of the predicted sense."""
    test = sense_splits.test.examples.features[:, candidates.test_indices]
    train = sense_splits.train.examples.features[:, candidates.train_indices]
    n_senses = len(candidates.senses)
    if classifier.rule == "centroid":
        last = last_layers(len(test))
        by_layer = nearest_centroid_predict(test, train, candidates.sense_ids, n_senses)
        wide = [np.concatenate(list(states[last]), -1) for states in (test, train)]
        last_four = nearest_centroid_predict(wide[0], wide[1], candidates.sense_ids, n_senses)
        return np.concatenate([by_layer, last_four[None]])
    k = min(classifier.k, int(np.bincount(candidates.sense_ids).min())) if classifier.clip_k else classifier.k
    cosines = representation_cosines(test, train)
    return np.stack([knn_predict(similarities, candidates.sense_ids, n_senses, k) for similarities in cosines])


def sense_answers(sense_splits: SenseSplits, correctness: list[SenseCorrectness], series: str) -> Iterator[Answer]:
    """The sense predicted for each test occurrence whose lemma is in training, by representation and split."""
    test = sense_splits.test
    for number, split in enumerate(correctness):
        for row, index in enumerate(split.test_indices.tolist()):
            recorded_input = test.examples.inputs[int(test.examples.input_index[index])]
            sentence, word = recorded_input.text.segments[0], int(test.word_index[index])
            item = {
                "item": f"{sentence.id or recorded_input.example_index + 1}:{word + 1}",
                "text": sentence.text,
                "word": recorded_input.text.words[word],
                "series": series,
                "split": number + 1,
                "gold": " ".join(sorted(test.gold_senses[index])),
            }
            for representation, name in enumerate(test.representations):
                predicted = split.predicted[representation, row]
                if predicted is not None:
                    correct = float(split.by_vectors[representation, row])
                    yield item | {"representation": name, "prediction": str(predicted), "correct": correct}


def score_disambiguation(
    sense_splits: SenseSplits, correctness: list[SenseCorrectness], seed: int, *, mask: NDArray[np.bool_] | None = None
) -> dict[str, dict[str, Estimates]]:
    """Measures by representation: those of the vectors under "", then those of baselines without vectors.

    `mask` selects test occurrences.
    """
    n_representations = len(sense_splits.test.representations)
    masks = [np.ones(len(c.test_indices), np.bool_) if mask is None else mask[c.test_indices] for c in correctness]
    baselines = {
        MOST_FREQUENT: [c.by_most_frequent for c in correctness],
        "random sense": [c.by_random for c in correctness],
        "upper bound (senses seen in training)": [c.by_oracle for c in correctness],
    }
    scores = {"": _measures(sense_splits, correctness, [c.by_vectors for c in correctness], masks, seed)}
    for name, correct in baselines.items():
        measures = _measures(sense_splits, correctness, [values[None] for values in correct], masks, seed)
        scores[name] = {
            measure: estimates.broadcast_to((n_representations,)) for measure, estimates in measures.items()
        }
    return scores


def accuracy_gains(
    sense_splits: SenseSplits, correctness: list[SenseCorrectness], half_trained: list[SenseCorrectness], seed: int
) -> dict[str, Estimates]:
    """(representation,) what the second half of the training data adds to the accuracy.

    By the vectors under "", and by the most frequent sense.
    """

    def gain(*sources: Sequence[FloatArray]) -> Estimates:
        correct: list[FloatArray] = []
        for split, half, values, half_values in zip(correctness, half_trained, *sources, strict=True):
            right, half_right = (
                np.where(part.lemma_in_train, by_vectors, part.by_back_off)
                for part, by_vectors in ((split, values), (half, half_values))
            )
            correct.append(_sum_by_sentence(sense_splits, split.test_indices, right - half_right))
        total = [_sum_by_sentence(sense_splits, c.test_indices, np.ones((1, len(c.test_indices)))) for c in correctness]
        return bootstrap_accuracy(np.stack(correct), np.stack(total), seed, lowest=-1.0)

    most_frequent = gain(*([c.by_most_frequent[None] for c in runs] for runs in (correctness, half_trained)))
    return {
        "": gain(*([c.by_vectors for c in runs] for runs in (correctness, half_trained))),
        MOST_FREQUENT: most_frequent.broadcast_to((len(sense_splits.test.representations),)),
    }


def _measures(
    sense_splits: SenseSplits,
    correctness: list[SenseCorrectness],
    correct: list[FloatArray],
    masks: list[NDArray[np.bool_]],
    seed: int,
) -> dict[str, Estimates]:
    """Every measure of (representation, test) correctness, over sentences and splits.

    F1 leaves unseen lemmas unanswered: precision is over the answered occurrences, recall over all.
    """
    numerators: dict[str, list[FloatArray]] = {name: [] for name in MEASURES}
    denominators: dict[str, list[FloatArray]] = {name: [] for name in MEASURES}
    for split, values, mask in zip(correctness, correct, masks, strict=True):
        seen, every = (split.lemma_in_train & mask).astype(np.float64), mask.astype(np.float64)
        unseen = every - seen
        ambiguous = (split.is_ambiguous & mask).astype(np.float64)
        for name, numerator, denominator in (
            (F1, 2 * values * seen, seen + every),
            (ACCURACY, values * seen + split.by_back_off * unseen, every),
            (AMBIGUOUS_ACCURACY, values * ambiguous, ambiguous),
            (BACK_OFF_RATE, np.broadcast_to(unseen, values.shape), every),
            (BACK_OFF_ACCURACY, np.broadcast_to(split.by_back_off * unseen, values.shape), unseen),
        ):
            numerators[name].append(_sum_by_sentence(sense_splits, split.test_indices, numerator))
            denominators[name].append(_sum_by_sentence(sense_splits, split.test_indices, denominator[None]))
    return {
        name: bootstrap_accuracy(np.stack(numerators[name]), np.stack(denominators[name]), seed) for name in MEASURES
    }


def _sum_by_sentence(sense_splits: SenseSplits, test_indices: IndexArray, values: FloatArray) -> FloatArray:
    """(sentence, representation) sums of (representation, test)."""
    sums = np.zeros((sense_splits.n_sentences(), len(values)))
    np.add.at(sums, sense_splits.test.examples.input_index[test_indices], values.T)
    return sums


def bootstrap_accuracy(correct: FloatArray, total: FloatArray, seed: int, *, lowest: float = 0.0) -> Estimates:
    """(representation,) the ratio of (split, sentence, representation) to (split, sentence, 1), resampling both.

    The ratio is from `lowest` to 1. n is the number of sentences with a positive total; without any, the estimates are
    empty.
    """
    counted = total[..., 0].any(0)
    if not counted.any():
        return Estimates.empty(correct.shape[2])
    sums = np.stack([correct[:, counted], np.broadcast_to(total[:, counted], correct[:, counted].shape)], -1)
    estimates = bootstrap_sentences_and_seeds(sums, lambda s: ratio(s[..., 0], s[..., 1], empty=np.nan), seed=seed)
    return exact_where_unanimous(estimates, lowest=lowest)
