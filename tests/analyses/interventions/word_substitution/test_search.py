"""The greedy search agrees with a second implementation, and respects order, budget and similarity."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

from bertology.analyses.interventions.word_substitution.search import SearchResult, WordSequence, search
from bertology.arrays import FloatArray

VOCABULARY = [f"w{number}" for number in range(40)]
N_CLASSES = 3


class LinearModel:
    """A classifier that sums a vector for each word, and counts its queries; with candidates and similarities."""

    def __init__(self, seed: int) -> None:
        generator = np.random.default_rng(seed)
        self.weights = {word: generator.normal(size=N_CLASSES) for word in VOCABULARY}
        self.n_queries = 0
        rng = random.Random(seed)
        self.candidates = {word: rng.sample(VOCABULARY, 6) for word in VOCABULARY}
        self.text: WordSequence = tuple(rng.choices(VOCABULARY, k=8))
        self.word_similarity = {word: rng.random() for word in VOCABULARY}

    def predict(self, texts: Sequence[WordSequence]) -> FloatArray:
        self.n_queries += len(texts)
        scores = np.array([sum((self.weights[word] for word in text), np.zeros(N_CLASSES)) for text in texts])
        exponentials = np.exp(scores - scores.max(1, keepdims=True))
        return exponentials / exponentials.sum(1, keepdims=True)

    def similarity(self, texts: Sequence[WordSequence]) -> FloatArray:
        return np.array([sum(self.word_similarity[word] for word in text) / len(text) for text in texts])

    @property
    def prediction(self) -> int:
        return int(self.predict([self.text])[0].argmax())


def textfooler(model: LinearModel, min_similarity: float) -> tuple[WordSequence, int]:
    """TextFooler step by step, one query at a time: the final words and the number of queries."""
    n_queries = 0

    def predict(text: WordSequence) -> FloatArray:
        nonlocal n_queries
        n_queries += 1
        return model.predict([text])[0]

    text = model.text
    original = predict(text)
    label = int(np.argmax(original))
    importance: list[tuple[float, int]] = []
    for i in range(len(text)):
        without = predict(text[:i] + text[i + 1 :])
        new_label = int(np.argmax(without))
        value = original[label] - without[label]
        if new_label != label:
            value = (original[label] - without[label]) + (without[new_label] - original[new_label])
        importance.append((-value, i))
    current, current_probability = list(text), original[label]
    for _, i in sorted(importance):
        flipping: list[tuple[float, str]] = []
        lowering: list[tuple[float, str]] = []
        for candidate in model.candidates[text[i]]:
            changed = (*current[:i], candidate, *current[i + 1 :])
            if model.similarity([changed])[0] < min_similarity:
                continue
            probabilities = predict(changed)
            if np.argmax(probabilities) != label:
                flipping.append((-model.similarity([changed])[0], candidate))
            elif probabilities[label] < current_probability:
                lowering.append((probabilities[label], candidate))
        if flipping:
            current[i] = min(flipping)[1]
            return tuple(current), n_queries
        if lowering:
            current_probability, current[i] = min(lowering)
    return tuple(current), n_queries


def run_search(model: LinearModel, *, min_similarity: float = 0.4, max_queries: int = 10_000) -> SearchResult:
    return search(
        model.text,
        model.prediction,
        range(len(model.text)),
        predict=model.predict,
        candidates=lambda word: model.candidates[word],
        similarity=model.similarity,
        min_similarity=min_similarity,
        max_queries=max_queries,
    )


@pytest.mark.parametrize("seed", range(40))
def test_the_search_agrees_with_a_second_implementation(seed: int) -> None:
    words, n_queries = textfooler(LinearModel(seed), 0.4)
    result, text = run_search(LinearModel(seed)), LinearModel(seed).text
    assert result.words == words and result.n_queries == n_queries and not result.budget_exhausted
    assert [index for index, _, _ in result.edits] != [] or words == text
    assert all(text[index] == old and words[index] == new for index, old, new in result.edits)


def test_some_searches_succeed_and_some_fail() -> None:
    flipped = [run_search(LinearModel(seed)).prediction != LinearModel(seed).prediction for seed in range(40)]
    assert 5 < sum(flipped) < 40


@pytest.mark.parametrize("max_queries", [0, 1, 4, 9, 12, 20])
def test_an_exhausted_budget_ends_with_the_edits_so_far(max_queries: int) -> None:
    for seed in range(10):
        model = LinearModel(seed)
        result = run_search(model, max_queries=max_queries)
        assert result.n_queries <= max_queries and model.n_queries <= max_queries + 1  # one for the gold label
        complete = run_search(LinearModel(seed))
        # A search that flipped the prediction is finished, whatever else it could have tried.
        flipped = result.prediction != LinearModel(seed).prediction
        assert result.budget_exhausted == (complete.n_queries > max_queries and not flipped)
        assert result.edits[:-1] == complete.edits[: max(0, len(result.edits) - 1)]


def test_a_wrong_prediction_is_not_attacked() -> None:
    model = LinearModel(0)
    result = search(
        model.text,
        (model.prediction + 1) % N_CLASSES,
        [0, 1],
        predict=model.predict,
        candidates=lambda word: VOCABULARY,
        similarity=model.similarity,
        min_similarity=0,
        max_queries=99,
    )
    assert result.words == model.text and result.n_queries == 1


def test_a_planted_word_is_replaced_first() -> None:
    text = ("the", "day", "was", "happy", "and", "long")
    synonyms = {"happy": ["glad", "merry"], "day": ["night"], "long": ["short"]}

    def predict(texts: Sequence[WordSequence]) -> FloatArray:
        return np.array([[0.1, 0.9] if "happy" in text else [0.8, 0.2] for text in texts])

    def run(similarity: dict[str, float], default: float) -> SearchResult:
        return search(
            text,
            1,
            [1, 3, 5],
            predict=predict,
            candidates=lambda word: synonyms[word],
            similarity=lambda texts: np.array(
                [max((similarity.get(word, default) for word in words), default=default) for words in texts]
            ),
            min_similarity=0.5,
            max_queries=100,
        )

    similar = run({"merry": 1.0}, 0.6)
    assert similar.edits == ((3, "happy", "merry"),) and similar.prediction == 0 and similar.n_queries == 1 + 3 + 2
    dissimilar = run({}, 0.0)
    assert dissimilar.edits == () and dissimilar.prediction == 1 and dissimilar.n_queries == 4


def test_a_text_that_the_model_cannot_take_is_no_candidate() -> None:
    def predict(texts: Sequence[WordSequence]) -> FloatArray:
        return np.array([[np.nan, np.nan] if "long" in text else [0.2, 0.8] for text in texts])

    result = search(
        ("a", "b"),
        1,
        [0, 1],
        predict=predict,
        candidates=lambda word: ["long"],
        similarity=lambda texts: np.ones(len(texts)),
        min_similarity=0.0,
        max_queries=50,
    )
    assert result.words == ("a", "b") and result.prediction == 1
