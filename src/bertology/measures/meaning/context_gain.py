"""Where does context pay? Scores of several features on the lower and the upper half of the items by each property."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from bertology.corpus.bio import decode
from bertology.corpus.corpus import Item
from bertology.corpus.sentence import Span
from bertology.measures.meaning.frozen_answers import Said
from bertology.measures.meaning.lessons import Lesson, labels_of
from bertology.measures.meaning.structure_properties import (
    PROPERTIES,
    Counted,
    Floats,
    counted,
    halves,
    kind_of,
    of_name,
    of_text,
    of_word,
)
from bertology.results.estimate import Estimates
from bertology.results.sampling import over_sentences_and_seeds

PARTS = ("lower half", "upper half", "upper - lower")


@dataclass(frozen=True)
class Judged:
    """What is judged one by one: `what` it is, the place of its text, the right answer and (item, property) values.

    The right answer is a name's span and kind, a word's place and tag, or the class of a text.
    """

    what: str
    unit: NDArray[np.int64]
    gold: tuple[Hashable, ...]
    values: Floats
    units: int


def judged_of(lesson: Lesson, longest: int = 0) -> Judged:
    """Every name of the items judged, every word where tags mark no names, else every text or pair.

    With `longest`, of names only those of at most so many words.
    """
    task, training = lesson.task, counted_of(lesson)
    units: list[int] = []
    gold: list[Hashable] = []
    values: list[Floats] = []
    for unit, item in enumerate(lesson.judged):
        for answer in _answers(lesson, labels_of(task, item)):
            if longest and isinstance(answer, Span) and answer.end - answer.start > longest:
                continue
            units.append(unit)
            gold.append(answer)
            values.append(_properties(item, answer, training, task.labels))
    what = (
        "text" if task.name == "sentence" else "pair" if task.name == "pair" else "name" if _spans(lesson) else "word"
    )
    rows = np.stack(values) if values else np.zeros((0, len(PROPERTIES)))
    return Judged(what, np.array(units, np.int64), tuple(gold), rows, len(lesson.judged))


def counted_of(lesson: Lesson) -> Counted:
    """The words that are learnt from, each with the kind of its name, its tag, or the class of its text."""
    task = lesson.task
    if task.name != "token":
        return counted((w, str(item.label)) for item in lesson.learnt for part in item.parts for w in part.words)
    return counted(
        (word, kind_of(tag) if _spans(lesson) else tag)
        for item in lesson.learnt
        for word, tag in zip(item.parts[0].words, labels_of(task, item), strict=True)
    )


def right(lesson: Lesson, judged: Judged, said: Said) -> Floats:
    """(seed, item) 1 where the answer is right: a name found whole with its kind, a word's tag, a class."""
    found = np.zeros((len(said), len(judged.gold)))
    for seed, answers in enumerate(said):
        told = [set(_answers(lesson, [own] if isinstance(own, str) else own)) for own in answers]
        found[seed] = [gold in told[unit] for gold, unit in zip(judged.gold, judged.unit.tolist(), strict=True)]
    return found


def _spans(lesson: Lesson) -> bool:
    # Naming an analysis must not import torch.
    from bertology.finetuning.tasks.tags import Tags

    return isinstance(lesson.task, Tags) and lesson.task.spans


def _answers(lesson: Lesson, labels: Sequence[str]) -> list[Hashable]:
    """What there is to be right about in the labels of one text: names, words with their tags, or its class."""
    if _spans(lesson):
        return list(decode(labels, scheme="iob1"))
    return list(enumerate(labels)) if lesson.task.name == "token" else list(labels)


def _properties(item: Item, answer: Hashable, training: Counted, classes: Sequence[str]) -> Floats:
    match answer:
        case Span(start, end):
            return of_name(item.parts[0].words[start:end], training)
        case (int(place), _):
            return of_word(item.parts[0], place, training)
        case _:
            return of_text(item, training, classes)


def split_scores(judged: Judged, scores: Sequence[Floats], property: int, *, seed: int) -> tuple[Estimates, Estimates]:
    """(part, score or difference) of each score, and of each less each after it, on the halves by a property.

    Scores are (seed, item). With it the same of all items that have the property, whose halves would be alike if it did
    not matter. Texts are resampled whole, with all that is judged in them, and seeds.
    """
    pairs = list(combinations(range(len(scores)), 2))
    width = len(scores) + len(pairs)
    values = judged.values[:, property] if len(judged.values) else np.zeros(0)
    upper = halves(values)
    if upper is None:
        nothing = np.full((len(PARTS), width), np.nan)
        none = Estimates(value=nothing, low=nothing, high=nothing, n=np.zeros(nothing.shape, np.int64))
        return none, none
    defined = np.isfinite(values)
    counts = np.array([(defined & ~upper).sum(), upper.sum(), defined.sum()])
    each = np.stack([*scores, np.ones_like(scores[0])], -1)
    sums = np.zeros((len(each), judged.units, 2, len(scores) + 1))
    for half, own in enumerate((defined & ~upper, upper)):
        for unit in np.unique(judged.unit[own]):
            sums[:, unit, half] = each[:, own & (judged.unit == unit)].sum(1)

    def means(totals: Floats) -> Floats:
        top, bottom = totals[..., :-1], totals[..., -1:]
        found = np.divide(top, bottom, out=np.full_like(top, np.nan), where=bottom > 0)
        return np.concatenate([found, *(found[..., a, None] - found[..., b, None] for a, b in pairs)], -1)

    def apart(totals: Floats) -> Floats:
        low, high = means(totals[..., 0, :]), means(totals[..., 1, :])
        return np.stack([low, high, high - low], -2)

    def together(totals: Floats) -> Floats:
        whole = means(totals.sum(-2))
        return np.stack([whole, whole, np.zeros_like(whole)], -2)

    n = np.broadcast_to(counts[:, None], (len(PARTS), width))
    used = sums[:, sums.any((0, 2, 3))]
    found, whole = (over_sentences_and_seeds(used, statistic, seed=seed) for statistic in (apart, together))
    return _with_n(found, n), _with_n(whole, n)


def _with_n(estimates: Estimates, n: NDArray[np.int64]) -> Estimates:
    return Estimates(value=estimates.value, low=estimates.low, high=estimates.high, n=n)
