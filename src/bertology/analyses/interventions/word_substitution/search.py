"""TextFooler's greedy search (jin2020): replace words, the most important first, until the prediction changes.

The importance of a word is the drop of the predicted class's probability without it; if another class is predicted
without it, plus the rise of that class's probability. For each word in turn all candidates are tried: of those that
change the prediction, the one whose text is most similar is used, otherwise the one with the lowest gold probability.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from bertology.arrays import FloatArray

WordSequence = tuple[str, ...]
WordEdit = tuple[int, str, str]
"""Index, original word and replacement."""

PredictFunction = Callable[[Sequence[WordSequence]], FloatArray]
"""(text, class) probabilities; NaN for a text that the model cannot take."""
CandidateFunction = Callable[[str], Sequence[str]]
SimilarityFunction = Callable[[Sequence[WordSequence]], FloatArray]
"""(text,) similarity of each text to the original."""


@dataclass(frozen=True)
class SearchResult:
    """The words at the end of a search, its edits, the prediction, and the probability of the gold class.

    `budget_exhausted`: the search ended at the maximum number of queries.
    """

    words: WordSequence
    edits: tuple[WordEdit, ...]
    prediction: int
    probability: float
    n_queries: int
    budget_exhausted: bool


class _QueryBudget:
    """Queries the model with at most a given number of texts."""

    def __init__(self, predict: PredictFunction, max_queries: int) -> None:
        self._predict, self._max_queries = predict, max_queries
        self.n_queries = 0
        self.exhausted = False

    def __call__(self, texts: Sequence[WordSequence]) -> FloatArray:
        """(text, class) probabilities of the first texts that the budget allows."""
        allowed = list(texts[: self._max_queries - self.n_queries])
        self.exhausted = self.exhausted or len(allowed) < len(texts)
        self.n_queries += len(allowed)
        return self._predict(allowed) if allowed else np.empty((0, 1))


def search(
    words: WordSequence,
    gold: int,
    word_indices: Sequence[int],
    *,
    predict: PredictFunction,
    candidates: CandidateFunction,
    similarity: SimilarityFunction,
    min_similarity: float,
    max_queries: int,
) -> SearchResult:
    """Replace words at the given indices until the prediction is not `gold`; a wrong prediction is left alone."""
    query = _QueryBudget(predict, max_queries)
    original = query([words])
    if not len(original) or np.isnan(original).any():
        return SearchResult(words, (), gold, np.nan, query.n_queries, query.exhausted)
    current, gold_probability, prediction = words, float(original[0, gold]), int(original[0].argmax())
    edits: list[WordEdit] = []
    ranking = _rank_by_importance(words, original[0], word_indices, query) if prediction == gold else []
    for index in ranking:
        texts = [(*current[:index], candidate, *current[index + 1 :]) for candidate in candidates(words[index])]
        similarities = similarity(texts) if texts else np.empty(0)
        similar = [row for row in range(len(texts)) if similarities[row] >= min_similarity]
        probabilities = query([texts[row] for row in similar])
        best = _best_candidate(probabilities, [float(similarities[row]) for row in similar], gold, gold_probability)
        if best is not None:
            current = texts[similar[best]]
            gold_probability, prediction = float(probabilities[best, gold]), int(probabilities[best].argmax())
            edits.append((index, words[index], current[index]))
        if prediction != gold or query.exhausted:
            break
    is_exhausted = query.exhausted and prediction == gold
    return SearchResult(current, tuple(edits), prediction, gold_probability, query.n_queries, is_exhausted)


def _rank_by_importance(
    words: WordSequence, original_probabilities: FloatArray, word_indices: Sequence[int], query: _QueryBudget
) -> list[int]:
    """The indices from the most to the least important word, without those that could not be queried."""
    prediction = int(original_probabilities.argmax())
    without_word = query([words[:index] + words[index + 1 :] for index in word_indices])
    importance: dict[int, float] = {}
    for index, probabilities in zip(word_indices, without_word, strict=False):
        if np.isnan(probabilities).any():
            continue
        new_prediction = int(probabilities.argmax())
        importance[index] = float(original_probabilities[prediction] - probabilities[prediction])
        if new_prediction != prediction:
            importance[index] += float(probabilities[new_prediction] - original_probabilities[new_prediction])
    return sorted(importance, key=lambda index: (-importance[index], index))


def _best_candidate(
    probabilities: FloatArray, similarities: Sequence[float], gold: int, current_probability: float
) -> int | None:
    """The candidate to use; None if none lowers the gold probability."""
    valid = [row for row in range(len(probabilities)) if not np.isnan(probabilities[row]).any()]
    flipped = [row for row in valid if int(probabilities[row].argmax()) != gold]
    if flipped:
        return max(flipped, key=lambda row: (similarities[row], -row))
    lower = [row for row in valid if probabilities[row, gold] < current_probability]
    return min(lower, key=lambda row: (float(probabilities[row, gold]), row)) if lower else None
