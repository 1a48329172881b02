"""Greedy substitution of words in the manner of TextFooler (jin2020): the most important first, until the answer turns.

The importance of a word is how much less sure of its answer the model is without it; where it gives another answer
without it, how much surer it is of that one besides. For each word in turn every candidate is tried: of those that turn
the answer the one that leaves the text most alike is taken, else the one that leaves the model least sure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Words = tuple[str, ...]
Edit = tuple[int, str, str]
"""A place, the word that was there, and the one in its stead."""

Ask = Callable[[Sequence[Words]], Floats]
"""(text, class) the probabilities that the model gives; NaN for a text that it cannot be shown."""
Candidates = Callable[[str], Sequence[str]]
Alike = Callable[[Sequence[Words]], Floats]
"""(text,) how like the original each text is."""


@dataclass(frozen=True)
class Found:
    """Where a search ended: the words, what was edited, the answer and the probability of the first one.

    `spent`: it ended because no more texts might be shown.
    """

    words: Words
    edits: tuple[Edit, ...]
    answer: int
    probability: float
    queries: int
    spent: bool


class _Budget:
    """Shows the model at most so many texts."""

    def __init__(self, ask: Ask, most: int) -> None:
        self._ask, self._most = ask, most
        self.shown = 0
        self.spent = False

    def __call__(self, texts: Sequence[Words]) -> Floats:
        """(text, class) of as many texts as may be shown: the first ones."""
        allowed = list(texts[: self._most - self.shown])
        self.spent = self.spent or len(allowed) < len(texts)
        self.shown += len(allowed)
        return self._ask(allowed) if allowed else np.empty((0, 1))


def search(
    words: Words,
    right: int,
    places: Sequence[int],
    *,
    ask: Ask,
    candidates: Candidates,
    alike: Alike,
    least: float,
    budget: int,
) -> Found:
    """Replace words at these places until the answer is no longer `right`; one already wrong is left as it is."""
    shown = _Budget(ask, budget)
    first = shown([words])
    if not len(first) or np.isnan(first).any():
        return Found(words, (), right, np.nan, shown.shown, shown.spent)
    current, sure, answer = words, float(first[0, right]), int(first[0].argmax())
    edits: list[Edit] = []
    ranked = _by_importance(words, first[0], places, shown) if answer == right else []
    for place in ranked:
        texts = [_with(current, place, other) for other in candidates(words[place])]
        likeness = alike(texts) if texts else np.empty(0)
        fitting = [row for row in range(len(texts)) if likeness[row] >= least]
        chances = shown([texts[row] for row in fitting])
        best = _best(chances, [float(likeness[row]) for row in fitting], right, sure)
        if best is not None:
            current = texts[fitting[best]]
            sure, answer = float(chances[best, right]), int(chances[best].argmax())
            edits.append((place, words[place], current[place]))
        if answer != right or shown.spent:
            break
    return Found(current, tuple(edits), answer, sure, shown.shown, shown.spent and answer == right)


def _by_importance(words: Words, first: Floats, places: Sequence[int], shown: _Budget) -> list[int]:
    """The places from the most important word to the least; places that could not be tried are left out."""
    answer = int(first.argmax())
    without = shown([words[:place] + words[place + 1 :] for place in places])
    scores: dict[int, float] = {}
    for place, chances in zip(places, without, strict=False):
        if np.isnan(chances).any():
            continue
        other = int(chances.argmax())
        scores[place] = float(first[answer] - chances[answer])
        if other != answer:
            scores[place] += float(chances[other] - first[other])
    return sorted(scores, key=lambda place: (-scores[place], place))


def _best(chances: Floats, likeness: Sequence[float], right: int, sure: float) -> int | None:
    """The candidate to take, if any is of use."""
    known = [row for row in range(len(chances)) if not np.isnan(chances[row]).any()]
    turned = [row for row in known if int(chances[row].argmax()) != right]
    if turned:
        return max(turned, key=lambda row: (likeness[row], -row))
    lower = [row for row in known if chances[row, right] < sure]
    return min(lower, key=lambda row: (float(chances[row, right]), row)) if lower else None


def _with(words: Words, place: int, other: str) -> Words:
    return (*words[:place], other, *words[place + 1 :])
