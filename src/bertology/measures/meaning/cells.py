"""How each feature scores at each training size: one cell a feature, learner and size, kept when finished."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertology.measures.meaning.downstream import SETTINGS, Learner, answers
from bertology.measures.meaning.features import Feature
from bertology.measures.meaning.frozen_vectors import Vectors, recorded
from bertology.measures.meaning.lessons import Lesson
from bertology.measures.work import Work

Sums = NDArray[np.float64]
"""(seed, item, 2): for each item judged what was right, and of how much."""

FORMAT = 1


@dataclass(frozen=True)
class Cells:
    """A lesson, and where finished cells are kept."""

    lesson: Lesson
    work: Work

    def vectors(self, features: Sequence[Feature]) -> list[Vectors]:
        """What the features give every word of the lesson, recorded once."""
        return [recorded(feature, self.lesson.sentences, self.work) for feature in features]

    def run(self, vectors: Sequence[Vectors], learners: Sequence[Learner], sizes: Sequence[int]) -> Sums:
        """(seed, item, feature, learner, size, 2) every cell."""
        total = len(vectors) * len(learners) * len(sizes)
        meter = self.work.meter(f"learning {total} times, {len(self.lesson.draws)} seeds each")
        found: list[Sums] = []
        for own in vectors:
            for learner in learners:
                for size in sizes:
                    found.append(self.cell(own, learner, size))
                    meter(len(found), total)
        stacked = np.stack(found, 2)
        return stacked.reshape(*stacked.shape[:2], len(vectors), len(learners), len(sizes), 2)

    def cell(self, vectors: Vectors, learner: Learner, size: int) -> Sums:
        """What the models of all seeds get right, learnt from `size` items or as kept."""
        from bertology.finetuning.division import digest

        lesson = self.lesson
        about = {
            "analysis": "meaning/curves",
            "format": FORMAT,
            "features": vectors.fingerprint,
            "task": [lesson.task.name, list(lesson.task.labels), lesson.task.measure],
            "learnt": digest(lesson.learnt),
            "judged": digest(lesson.judged),
            "learner": [learner, SETTINGS[learner]],
            "size": size,
            "seeds": [draw.seed for draw in lesson.draws],
        }
        return np.array(self.work.kept(about, lambda: self._sums(vectors, learner, size).tolist()))

    def _sums(self, vectors: Vectors, learner: Learner, size: int) -> Sums:
        return np.stack([self._counted(said) for said in answers(self.lesson, vectors, learner, size)])

    def guesses(self, size: int) -> Mapping[str, Sums]:
        """What answers get that need no features, each from the items that a seed learns from."""
        found: dict[str, list[Sums]] = {}
        for draw in self.lesson.draws:
            learnt = [self.lesson.learnt[place] for place in draw.trained[:size]]
            for name, said in self.lesson.task.guesses(learnt, self.lesson.judged).items():
                found.setdefault(name, []).append(self._counted(said))
        return {name: np.stack(own) for name, own in found.items()}

    def _counted(self, said: list[Any]) -> Sums:
        counts = self.lesson.task.counts(self.lesson.judged, said)
        return np.stack([counts.right, counts.of], -1)


def share(sums: Sums) -> Sums:
    """(...) what is right of (..., 2), 0 where there is nothing to be right about."""
    return np.divide(sums[..., 0], sums[..., 1], out=np.zeros(sums.shape[:-1]), where=sums[..., 1] > 0)
