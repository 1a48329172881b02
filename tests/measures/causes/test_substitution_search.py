"""The greedy search against another telling of it, its order, its budget, and what it cannot do."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

from bertology.measures.causes.substitution_search import Floats, Found, Words, search

VOCABULARY = [f"w{number}" for number in range(40)]
CLASSES = 3


class Stub:
    """A model that adds up a number for each word and class, and counts what it is shown."""

    def __init__(self, seed: int) -> None:
        draw = np.random.default_rng(seed)
        self.weights = {word: draw.normal(size=CLASSES) for word in VOCABULARY}
        self.shown = 0
        chooser = random.Random(seed)
        self.near = {word: chooser.sample(VOCABULARY, 6) for word in VOCABULARY}
        self.text: Words = tuple(chooser.choices(VOCABULARY, k=8))
        self.likeness = {word: chooser.random() for word in VOCABULARY}

    def __call__(self, texts: Sequence[Words]) -> Floats:
        self.shown += len(texts)
        scores = np.array([sum((self.weights[word] for word in text), np.zeros(CLASSES)) for text in texts])
        chances = np.exp(scores - scores.max(1, keepdims=True))
        return chances / chances.sum(1, keepdims=True)

    def alike(self, texts: Sequence[Words]) -> Floats:
        return np.array([sum(self.likeness[word] for word in text) / len(text) for text in texts])


def told_again(stub: Stub, least: float) -> tuple[Words, int]:
    """TextFooler step by step, one query at a time: the words it ends with, and the queries."""
    count = 0

    def chance(text: Words) -> Floats:
        nonlocal count
        count += 1
        return stub([text])[0]

    text = stub.text
    first = chance(text)
    label = int(np.argmax(first))
    importance: list[tuple[float, int]] = []
    for i in range(len(text)):
        reduced = chance(text[:i] + text[i + 1 :])
        other = int(np.argmax(reduced))
        value = first[label] - reduced[label]
        if other != label:
            value = (first[label] - reduced[label]) + (reduced[other] - first[other])
        importance.append((-value, i))
    current, current_chance = list(text), first[label]
    for _, i in sorted(importance):
        turning: list[tuple[float, str]] = []
        lowering: list[tuple[float, str]] = []
        for candidate in stub.near[text[i]]:
            changed = (*current[:i], candidate, *current[i + 1 :])
            if stub.alike([changed])[0] < least:
                continue
            chances = chance(changed)
            if np.argmax(chances) != label:
                turning.append((-stub.alike([changed])[0], candidate))
            elif chances[label] < current_chance:
                lowering.append((chances[label], candidate))
        if turning:
            current[i] = min(turning)[1]
            return tuple(current), count
        if lowering:
            current_chance, current[i] = min(lowering)
    return tuple(current), count


def found(stub: Stub, *, least: float = 0.4, budget: int = 10_000) -> Found:
    right = int(stub([stub.text])[0].argmax())
    return search(
        stub.text, right, range(len(stub.text)), ask=stub, candidates=lambda w: stub.near[w], alike=stub.alike,
        least=least, budget=budget,
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(40))
def test_it_ends_as_another_telling_of_it_does(seed: int) -> None:
    words, queries = told_again(Stub(seed), 0.4)
    result = found(Stub(seed))
    assert result.words == words and result.queries == queries and not result.spent
    assert [place for place, _, _ in result.edits] != [] or words == Stub(seed).text
    assert all(Stub(seed).text[place] == old and words[place] == new for place, old, new in result.edits)


def test_both_ends_are_reached() -> None:
    turned = [found(Stub(seed)).answer != int(Stub(seed)([Stub(seed).text])[0].argmax()) for seed in range(40)]
    assert 5 < sum(turned) < 40


@pytest.mark.parametrize("budget", [0, 1, 4, 9, 12, 20])
def test_a_spent_budget_ends_with_what_was_found(budget: int) -> None:
    for seed in range(10):
        stub = Stub(seed)
        result = found(stub, budget=budget)
        assert result.queries <= budget and stub.shown <= budget + 1  # one to know what is right
        whole = found(Stub(seed))
        # A search that turned the answer with what it had is at its end, whatever it might still have tried.
        turned = result.answer != int(Stub(seed)([Stub(seed).text])[0].argmax())
        assert result.spent == (whole.queries > budget and not turned)
        # What was found before the end is what the whole search found first.
        assert result.edits[:-1] == whole.edits[: max(0, len(result.edits) - 1)]


def test_what_is_wrong_already_is_left_alone() -> None:
    stub = Stub(0)
    wrong = (int(stub([stub.text])[0].argmax()) + 1) % CLASSES
    result = search(
        stub.text, wrong, [0, 1], ask=stub, candidates=lambda w: VOCABULARY, alike=stub.alike, least=0, budget=99
    )
    assert result.words == stub.text and result.queries == 1


def test_a_planted_word_is_found_at_once() -> None:
    text = ("the", "day", "was", "happy", "and", "long")

    def ask(texts: Sequence[Words]) -> Floats:
        return np.array([[0.1, 0.9] if "happy" in text else [0.8, 0.2] for text in texts])

    near = {"happy": ["glad", "merry"], "day": ["night"], "long": ["short"]}
    result = search(
        text, 1, [1, 3, 5], ask=ask, candidates=lambda w: near[w], budget=100, least=0.5,
        alike=lambda texts: np.array([1.0 if "merry" in text else 0.6 for text in texts]),
    )  # fmt: skip
    assert result.edits == ((3, "happy", "merry"),) and result.answer == 0 and result.queries == 1 + 3 + 2
    unlike = search(text, 1, [1, 3, 5], ask=ask, candidates=lambda w: near[w], budget=100, least=0.5,
                    alike=lambda texts: np.zeros(len(texts)))  # fmt: skip
    assert unlike.edits == () and unlike.answer == 1 and unlike.queries == 4


def test_a_text_that_cannot_be_shown_is_no_candidate() -> None:
    def ask(texts: Sequence[Words]) -> Floats:
        rows = [[np.nan, np.nan] if "long" in text else [0.2, 0.8] for text in texts]
        return np.array(rows)

    result = search(("a", "b"), 1, [0, 1], ask=ask, candidates=lambda w: ["long"], alike=lambda t: np.ones(len(t)),
                    least=0.0, budget=50)  # fmt: skip
    assert result.words == ("a", "b") and result.answer == 1
