"""Train linear maps that bring occurrences of one sense together, and test them on other documents or words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertology.analyses.senses.subspace_probe.projection_fit import IndexPairs, fit_projection, random_projection
from bertology.analyses.word_senses.disambiguation import bootstrap_accuracy
from bertology.analyses.word_senses.occurrences import SenseSplits, WordOccurrences, senses_by_frequency, shuffle_senses
from bertology.estimates.estimate import Estimates
from bertology.numerics.nearest_neighbours import FloatArray, IndexArray, nearest_centroid_predict
from bertology.results.answers import Answer

VALIDATION_FRACTION = 0.3
"""Fraction of the training documents whose pairs decide when to stop."""
N_FOLDS = 3
MAX_PAIRS = 20_000

FitProjection = Callable[[IndexArray], FloatArray | None]
"""From training indices to a projection; None if there are no pairs to train on."""


@dataclass(frozen=True)
class SenseProjectionProbe:
    """Projections of one layer, trained and tested on each split."""

    sense_splits: SenseSplits
    layer: int
    seed: int

    def random_and_fit(self, split_index: int, rank: int, *, shuffle: bool = False) -> tuple[FloatArray, FitProjection]:
        """The initial random projection of a split, and the function that trains it; `shuffle` permutes the senses."""
        train = self.sense_splits.train
        start = random_projection(rank, train.examples.features.shape[2], seed=self.seed + split_index)
        senses = train.senses
        if shuffle:
            generator = np.random.default_rng([self.seed, split_index, 17])
            senses = shuffle_senses(train, self.sense_splits.splits[split_index][0], generator)

        def fit(indices: IndexArray) -> FloatArray | None:
            return _fit_projection(train, self.layer, indices, senses, start, seed=self.seed + split_index)

        return start, fit

    def correct(
        self, split_index: int, projection: FloatArray | None, test_mask: NDArray[np.bool_] | None = None
    ) -> FloatArray:
        """(test,) 1 if the nearest centroid under the projection has the right sense, NaN for words with one sense.

        `test_mask` selects test occurrences.
        """
        train, test = self.sense_splits.train, self.sense_splits.test
        train_split, test_split = self.sense_splits.splits[split_index]
        correct = np.full(len(test_split), np.nan)
        for lemma in sorted(set(test.lemmas[test_split].tolist())):
            selected = test_mask[test_split] if test_mask is not None else True
            rows = np.flatnonzero((test.lemmas[test_split] == lemma) & selected)
            train_indices = train_split[train.lemmas[train_split] == lemma]
            names = senses_by_frequency(train.senses[train_indices].tolist())
            if len(names) < 2 or not len(rows):
                continue
            classes = np.array([names.index(sense) for sense in train.senses[train_indices].tolist()], np.intp)
            vectors = [
                occurrences.examples.features[self.layer, indices].astype(np.float64)
                for occurrences, indices in ((test, test_split[rows]), (train, train_indices))
            ]
            if projection is not None:
                vectors = [states @ projection.T for states in vectors]
            predicted = nearest_centroid_predict(vectors[0], vectors[1], classes, len(names))
            correct[rows] = np.array(names, np.object_)[predicted] == test.senses[test_split[rows]]
        return correct

    def in_all_splits(self, correct_in_split: Callable[[int], FloatArray]) -> list[FloatArray]:
        """(test,) correctness in each split."""
        return [correct_in_split(split) for split in range(len(self.sense_splits.splits))]

    def accuracy(self, correct_by_split: Sequence[FloatArray]) -> Estimates:
        """(1,) accuracy over all splits, from the correctness in each."""
        examples = self.sense_splits.test.examples
        n_correct, n_tested = np.zeros((2, len(self.sense_splits.splits), self.sense_splits.n_sentences(), 1))
        for split, (_, indices) in enumerate(self.sense_splits.splits):
            correct = correct_by_split[split]
            defined = np.isfinite(correct)
            np.add.at(n_correct[split, :, 0], examples.input_index[indices[defined]], correct[defined])
            np.add.at(n_tested[split, :, 0], examples.input_index[indices[defined]], 1)
        return bootstrap_accuracy(n_correct, n_tested, self.seed)

    def answers(self, correct_by_split: Sequence[FloatArray], condition: Answer) -> Iterator[Answer]:
        """Whether the sense of each test occurrence is right under a condition; words with one sense are left out."""
        test = self.sense_splits.test
        for split, (_, indices) in enumerate(self.sense_splits.splits):
            for index, correct in zip(indices.tolist(), correct_by_split[split].tolist(), strict=True):
                if np.isnan(correct):
                    continue
                recorded_input = test.examples.inputs[int(test.examples.input_index[index])]
                sentence, word = recorded_input.text.segments[0], int(test.word_index[index])
                yield {
                    "item": f"{sentence.id or recorded_input.example_index + 1}:{word + 1}",
                    "text": sentence.text,
                    "word": recorded_input.text.words[word],
                    **condition,
                    "split": split + 1,
                    "gold": str(test.senses[index]),
                    "correct": correct,
                }

    def probe_correct(self, rank: int, split_index: int, *, shuffle: bool = False) -> FloatArray:
        """(test,) correctness under a projection trained on all training words."""
        train_split, test_split = self.sense_splits.splits[split_index]
        _, fit = self.random_and_fit(split_index, rank, shuffle=shuffle)
        projection = fit(train_split)
        return np.full(len(test_split), np.nan) if projection is None else self.correct(split_index, projection)

    def random_map_correct(self, rank: int, split_index: int) -> FloatArray:
        """(test,) correctness under the initial random projection."""
        return self.correct(split_index, self.random_and_fit(split_index, rank)[0])

    def other_words_correct(self, rank: int, split_index: int, *, shuffle: bool = False) -> FloatArray:
        """(test,) correctness under projections trained on other words only, in folds of words."""
        train, test = self.sense_splits.train, self.sense_splits.test
        train_split, test_split = self.sense_splits.splits[split_index]
        _, fit = self.random_and_fit(split_index, rank, shuffle=shuffle)
        lemmas = sorted(set(test.lemmas[test_split].tolist()))
        correct = np.full(len(test_split), np.nan)
        for fold in range(min(N_FOLDS, len(lemmas))):
            held_out = lemmas[fold::N_FOLDS]
            projection = fit(train_split[~np.isin(train.lemmas[train_split], held_out)])
            if projection is not None:
                in_fold = self.correct(split_index, projection, np.isin(test.lemmas, held_out))
                correct = np.where(np.isfinite(in_fold), in_fold, correct)
        return correct

    def most_frequent_correct(self, split_index: int) -> FloatArray:
        """(test,) correctness of the most frequent training sense, for words with several senses."""
        train, test = self.sense_splits.train, self.sense_splits.test
        train_split, test_split = self.sense_splits.splits[split_index]
        correct = np.full(len(test_split), np.nan)
        for row in np.flatnonzero(np.isfinite(self.correct(split_index, None))).tolist():
            train_indices = train_split[train.lemmas[train_split] == test.lemmas[test_split[row]]]
            most_frequent = senses_by_frequency(train.senses[train_indices].tolist())[0]
            correct[row] = most_frequent == test.senses[test_split[row]]
        return correct


def _fit_projection(
    train: WordOccurrences,
    layer: int,
    indices: IndexArray,
    senses: NDArray[np.object_],
    start: FloatArray,
    *,
    seed: int,
) -> FloatArray | None:
    """The projection trained on pairs of the same word; pairs from held-out documents decide when to stop."""
    same, different = _sense_pairs(train, indices, senses, np.random.default_rng([seed, 19]))
    documents = sorted(set(train.documents[indices].tolist()))
    order = np.random.default_rng([seed, 23]).permutation(len(documents))
    held_out = [documents[number] for number in order[: int(VALIDATION_FRACTION * len(documents))].tolist()]
    in_validation = np.isin(train.documents, held_out)
    # A pair with one word in training would be pulled together by it: both words are held out, or neither.
    train_pairs = (same[~in_validation[same].any(1)], different[~in_validation[different].any(1)])
    validation_pairs = (same[in_validation[same].all(1)], different[in_validation[different].all(1)])
    if not all(map(len, train_pairs)):
        return None
    return fit_projection(train.examples.features[layer], train_pairs, validation_pairs, start)


def _sense_pairs(
    train: WordOccurrences, indices: IndexArray, senses: NDArray[np.object_], generator: np.random.Generator
) -> tuple[IndexPairs, IndexPairs]:
    """All pairs of occurrences of one word with the same and with different senses, at most `MAX_PAIRS` of each."""
    same: list[IndexPairs] = [np.zeros((0, 2), np.intp)]
    different: list[IndexPairs] = [np.zeros((0, 2), np.intp)]
    for lemma in sorted(set(train.lemmas[indices].tolist())):
        of_lemma = indices[train.lemmas[indices] == lemma]
        rows, columns = np.triu_indices(len(of_lemma), 1)
        pairs = np.stack([of_lemma[rows], of_lemma[columns]], 1)
        is_same = senses[pairs[:, 0]] == senses[pairs[:, 1]]
        same.append(pairs[is_same])
        different.append(pairs[~is_same])
    kinds = [np.concatenate(same), np.concatenate(different)]
    if max(map(len, kinds)) > MAX_PAIRS:
        kinds = [generator.permutation(pairs)[:MAX_PAIRS] for pairs in kinds]
    return kinds[0], kinds[1]
