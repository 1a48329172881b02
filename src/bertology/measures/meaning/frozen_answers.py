"""What small models on one frozen feature say of every item judged, kept when finished."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bertology.measures.meaning.downstream import SETTINGS, Learner, answers
from bertology.measures.meaning.features import Feature
from bertology.measures.meaning.frozen_vectors import Vectors, recorded
from bertology.measures.meaning.lessons import Lesson
from bertology.measures.work import Work

Said = list[list[Any]]
"""For each seed the answer to every item: a label, or one a word."""
FORMAT = 1


def said_of(lesson: Lesson, vectors: Sequence[Vectors], learner: Learner, work: Work) -> list[Said]:
    """The answers of models on each of the features, learnt from all items that every seed can learn from."""
    meter = work.meter(f"learning {len(vectors)} times, {len(lesson.draws)} seeds each")
    found: list[Said] = []
    for own in vectors:
        found.append(kept_answers(lesson, own, learner, work))
        meter(len(found), len(vectors))
    return found


def kept_answers(lesson: Lesson, vectors: Vectors, learner: Learner, work: Work) -> Said:
    """The answers of models on one feature, as they were kept or learnt now."""
    from bertology.finetuning.division import digest

    about = {
        "measure": "frozen answers",
        "format": FORMAT,
        "features": vectors.fingerprint,
        "task": [lesson.task.name, list(lesson.task.labels), lesson.task.measure],
        "learnt": digest(lesson.learnt),
        "judged": digest(lesson.judged),
        "learner": [learner, SETTINGS[learner]],
        "seeds": [draw.seed for draw in lesson.draws],
    }
    return work.kept(about, lambda: answers(lesson, vectors, learner, lesson.most))


def recorded_all(lesson: Lesson, features: Sequence[Feature], work: Work) -> list[Vectors]:
    """The vectors of every word of the lesson, of each feature."""
    return [recorded(feature, lesson.sentences, work) for feature in features]
