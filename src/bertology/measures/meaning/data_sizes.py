"""How features score as training data grows, where two curves meet, and how much data a feature is worth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertology.corpus.corpus import Corpus
from bertology.encoder.encoder import Encoder
from bertology.errors import Refusal
from bertology.maths.crossings import last_crossing, reached_at, rising
from bertology.maths.resampling import LEVEL, resampled_sums
from bertology.measures.meaning.cells import Cells, Sums, share
from bertology.measures.meaning.downstream import learners_named
from bertology.measures.meaning.features import features_named
from bertology.measures.meaning.lessons import Choice, Lesson, lesson_of
from bertology.measures.work import Work
from bertology.results.estimate import Estimate

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LearningCurves:
    """`sums` is (seed, item, feature, size, 2), those of the guesses (seed, item, size, 2)."""

    lesson: Lesson
    features: tuple[str, ...]
    sizes: tuple[int, ...]
    sums: Sums
    guesses: Mapping[str, Sums]


def learning_curves(
    encoder: Encoder,
    corpus: Corpus,
    work: Work,
    choice: Choice,
    features: str,
    learner: str,
    sizes: tuple[int, float],
    *,
    purpose: str,
) -> LearningCurves:
    """Every feature at every size; `sizes` are how many, and the smallest as a share of all."""
    count, least = sizes
    if count < 1 or not 0 < least <= 1:
        raise Refusal(
            f"--sizes was given {count} and --least {least}", "1 or more, and a share above 0", "Leave them out"
        )
    lesson = lesson_of(corpus, choice, purpose=purpose)
    named, (chosen, *_) = features_named(features, encoder), learners_named(learner, lesson.task.name)
    cells, wanted = Cells(lesson, work), lesson.sizes(count, least)
    sums = cells.run(cells.vectors(named), [chosen], wanted)[:, :, :, 0]
    by_size = [cells.guesses(size) for size in wanted]
    guesses = {name: np.stack([guess[name] for guess in by_size], 2) for name in by_size[0]}
    return LearningCurves(lesson, tuple(one.name for one in named), tuple(wanted), sums, guesses)


class Meeting(NamedTuple):
    """Of two features, the stronger first; `crossed` is the share of resamples in which their curves cross."""

    lead: Estimate
    factor: Estimate
    meet: Estimate
    crossed: float
    bounded: bool


class Meetings:
    """Pairs of curves, with intervals by resampling items and seeds together."""

    def __init__(self, curves: LearningCurves, seed: int) -> None:
        whole, drawn = resampled_sums(curves.sums, seed=seed)
        self._scores: Floats = np.concatenate([share(whole)[None], share(drawn)])
        self._rising: Floats = rising(self._scores)
        self._logs = np.log(np.array(curves.sizes, np.float64))
        self._items = curves.sums.shape[1]

    def stronger_first(self, one: int, other: int) -> tuple[int, int]:
        """The two features, the one with the higher score at full data first."""
        return (one, other) if self._scores[0, one, -1] >= self._scores[0, other, -1] else (other, one)

    def of(self, one: int, other: int) -> Meeting:
        """How the first feature's curve lies to the second's."""
        first, second = self._scores[:, one], self._scores[:, other]
        factor = self._factor(self._rising[:, one], self._rising[:, other])
        meet = np.exp(last_crossing(self._logs, first - second))
        bounded = bool(self._rising[0, one, 0] >= self._rising[0, other, -1])
        return Meeting(
            self._estimate(first[:, -1] - second[:, -1]),
            self._estimate(factor),
            self._estimate(meet),
            float(np.isfinite(meet[1:]).mean()),
            bounded,
        )

    def _factor(self, first: Floats, second: Floats) -> Floats:
        """All the data over the data with which the first reaches what the second gets from all of it.

        Where the first gets less from all the data, it is the other way round and below 1.
        """
        ahead = first[:, -1] >= second[:, -1]
        better, worse = (np.where(ahead[:, None], *pair) for pair in ((first, second), (second, first)))
        times = np.exp(self._logs[-1] - reached_at(self._logs, better, worse[:, -1]))
        return np.where(ahead, times, 1 / times)

    def _estimate(self, values: Floats) -> Estimate:
        """The first value, with an interval from the others that are there."""
        value, drawn = float(values[0]), values[1:][np.isfinite(values[1:])]
        if not np.isfinite(value):
            return Estimate(np.nan, np.nan, np.nan, 0)
        tail = 100 * (1 - LEVEL) / 2
        low, high = np.percentile(drawn, [tail, 100 - tail]) if len(drawn) else (value, value)
        return Estimate(value, min(float(low), value), max(float(high), value), self._items)
