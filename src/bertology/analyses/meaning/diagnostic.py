"""Which kinds of inference can a model do, by the categories of a diagnostic set (arora2020, wang2019)?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Literal, NamedTuple

import numpy as np

from bertology.analyses.declaration import analysis
from bertology.corpus.builtin import corpus_named
from bertology.corpus.corpus import Corpus, Item
from bertology.corpus.readers.diagnostic import LABELS
from bertology.encoder.encoder import Encoder
from bertology.errors import Refusal
from bertology.measures.meaning.diagnostic_scores import (
    SURFACE,
    Answers,
    Group,
    correlations,
    groups_of,
    hypotheses_alone,
    surface,
)
from bertology.measures.meaning.features import features_named
from bertology.measures.meaning.frozen_answers import recorded_all, said_of
from bertology.measures.meaning.head_answers import answers_of_head, fits, head_labels, second_texts
from bertology.measures.meaning.lessons import Choice, Lesson, lesson_of
from bertology.measures.meaning.options import USUAL, Seed, Seeds
from bertology.measures.work import Work
from bertology.results.estimate import Estimates
from bertology.results.shapes import Table

PURPOSE = "meaning/diagnostic"
HEAD = "fine-tuned"
LIKE = "pairs like those learnt"
MAJORITY, ALONE, ALIKE = "majority", "hypothesis alone", "alike"
UNIT = "Matthews' correlation, -1 to 1, 0 is chance"


class _Answered(NamedTuple):
    """Who answers what of the pairs, and of their hypotheses alone."""

    whole: Answers
    alone: Answers


@analysis(
    question="Which kinds of inference can a model do, and are static features like random ones in them?",
    special="seen by the model; a feature is the mean of a word's pieces; a fine-tuned head reads both texts at once",
    cites=("arora2020", "wang2019"),
)
def diagnostic(
    encoder: Encoder,
    corpus: Corpus,
    work: Work,
    *,
    features: Annotated[
        str, "frozen features with commas: model, model#6, static, random, untrained, glove:PATH ...; none for the head"
    ] = USUAL,
    train: Annotated[str, "inference pairs that classifiers on features learn from, by name or path"] = (
        "generated:nli@7:300"
    ),
    train_limit: Annotated[int, "the first N pairs of --train; 0 for all"] = 0,
    by: Annotated[Literal["category", "subtype"], "a row a category, or also one a sub-type"] = "category",
    labels: Annotated[str, "the classes of the model's own head in its order, where they have no names"] = "",
    seeds: Seeds = 3,
    seed: Seed = 0,
) -> Table:
    """Matthews' correlation of what is said of inference pairs with what is so, -1 to 1, 0 is chance, by category.

    A linear classifier on each frozen feature learns from --train: u, v, |u - v| and u * v of the means of both texts'
    words, penalty chosen by what a seed holds out. `fine-tuned` is the model's own head, where it tells entailment,
    neutral and contradiction apart. `A - B` is the difference of two on the same pairs and seeds: features are alike in
    a category where its interval holds 0 and is narrow. The first row is a quarter of --train that nobody learnt from:
    where it is at chance, nothing was learnt, and the other rows say nothing. A pair counts in each of its categories.

    Arora et al. train on GLUE (BiLSTM with attention) and report GLUE's diagnostic set, which is read with `--format
    diagnostic`. The default --train is our templates, of which features of single texts learn next to nothing: give
    MNLI or SNLI. Baselines: the commonest label (0); `hypothesis alone`: the same with nothing of the premise;
    `shared words`: a classifier on how many words both have, and lengths. Intervals resample pairs (those of one
    hypothesis together) and seeds.
    """
    asked = head_labels(encoder, LABELS, labels)
    lesson, like, too_long = _lesson(
        corpus, Choice("pair", "", 0, "", 0, seeds, seed), train, train_limit, asked, encoder
    )
    answered = _answered(lesson, encoder, features, asked, work)
    groups = _groups(lesson.judged, like, finely=by == "subtype")
    plain = {SURFACE: said_of(lesson, [surface([*lesson.learnt, *lesson.judged])], "linear", work)[0]}
    found, apart = correlations(lesson.judged, answered.whole, groups, seed=seed)
    alone, _ = correlations(lesson.judged, answered.alone, groups, seed=seed)
    shared = correlations(lesson.judged, plain, groups, seed=seed)[0][SURFACE]
    n = next(iter(found.values())).n
    constant = Estimates(**{key: np.where(n > 0, 0.0, np.nan) for key in ("value", "low", "high")}, n=n)
    baselines = {MAJORITY: dict.fromkeys(found, constant), ALONE: alone, SURFACE: dict.fromkeys(found, shared)}
    if apart:
        baselines[ALIKE] = dict.fromkeys(apart, constant)
    units = dict.fromkeys(found, UNIT) | dict.fromkeys(apart, "difference of Matthews' correlations, -2 to 2")
    return Table(
        rows_named=tuple(group.name for group in groups),
        measures=found | apart,
        baselines=baselines,
        units=units,
        notes=_notes(lesson, groups, train, too_long),
    )


def _lesson(
    corpus: Corpus, choice: Choice, train: str, limit: int, asked: tuple[str, ...] | None, encoder: Encoder
) -> tuple[Lesson, int, int]:
    """What to learn from, and to be judged by: a quarter of its kind, then all pairs of the corpus.

    With it how many are of its kind, and how many were left out because the model's head cannot read them whole.
    """
    from bertology.finetuning.choose import fitting
    from bertology.finetuning.division import ordered

    if not any(item.kind == "pair" and item.label is not None for item in corpus):
        raise Refusal(
            f"{PURPOSE} needs pairs with labels, and {corpus.name} has none",
            f"inference pairs with the labels {', '.join(LABELS)}",
            "Give --corpus diagnostic, the built-in set, or GLUE's own file diagnostic-full.tsv",
        )
    judged = ordered(fitting(corpus, "pair")[0].items)
    _refuse_labels(judged, corpus.name)
    lesson = lesson_of(corpus_named(train, limit=limit or None), choice, purpose=f"{PURPOSE} --train")
    _refuse_labels([*lesson.learnt, *lesson.judged], train)
    kept = [
        [item for item, fit in zip(some, fits(encoder, some), strict=True) if fit or asked is None]
        for some in (lesson.judged, judged)
    ]
    too_long = len(lesson.judged) + len(judged) - len(kept[0]) - len(kept[1])
    return replace(lesson, judged=(*kept[0], *kept[1])), len(kept[0]), too_long


def _refuse_labels(items: Sequence[Item], name: str) -> None:
    strange = sorted({str(item.label) for item in items} - set(LABELS))
    if strange:
        raise Refusal(
            f"{PURPOSE}: a label of {name} is {strange[0]!r}",
            f"pairs with the labels {', '.join(LABELS)}",
            "Give others, for example --corpus diagnostic, or rename the labels",
        )


def _answered(lesson: Lesson, encoder: Encoder, features: str, asked: tuple[str, ...] | None, work: Work) -> _Answered:
    whole: dict[str, Sequence[Sequence[str]]] = {}
    alone: dict[str, Sequence[Sequence[str]]] = {}
    if asked is not None:
        items = lesson.judged
        for said, shown in ((whole, list(items)), (alone, second_texts(items))):
            said[HEAD] = [answers_of_head(encoder, shown, asked)] * len(lesson.draws)
    elif features.strip() == "none":
        raise Refusal(
            f"--features none leaves only the head of {encoder.name}, which does not tell {', '.join(LABELS)} apart",
            "a model fine-tuned so, such as mini-pairs",
            "Name features, or say with --labels which class of the head is which",
        )
    if features.strip() != "none":
        vectors = recorded_all(lesson, features_named(features, encoder), work)
        for said, seen in ((whole, vectors), (alone, [hypotheses_alone(own) for own in vectors])):
            said |= {own.name: each for own, each in zip(vectors, said_of(lesson, seen, "linear", work), strict=True)}
    return _Answered(whole, alone)


def _groups(judged: Sequence[Item], like: int, *, finely: bool) -> list[Group]:
    """The first `like` pairs are of the kind that was learnt, the others those of the corpus."""
    others = groups_of(judged[like:], finely=finely)
    shifted = [Group(group.name, tuple(place + like for place in group.places)) for group in others]
    return [Group(LIKE, tuple(range(like))), *shifted]


def _notes(lesson: Lesson, groups: Sequence[Group], train: str, left_out: int) -> dict[str, str]:
    notes: dict[str, str] = {}
    for group in groups:
        counts = Counter(str(lesson.judged[place].label) for place in group.places)
        notes[group.name] = ", ".join(f"{counts[label]} {label}" for label in LABELS)
    notes[LIKE] += f"; classifiers learnt from {lesson.most} others of {train}, {len(lesson.draws)} seeds"
    if left_out:
        notes[groups[1].name if len(groups) > 1 else LIKE] += f"; {left_out} too long for the model left out"
    return notes
