"""How much is context worth: the same small models on frozen features of several kinds (arora2020)?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bertology.analyses.declaration import analysis
from bertology.corpus.corpus import Corpus
from bertology.encoder.encoder import Encoder
from bertology.measures.meaning.cells import Cells, Sums, share
from bertology.measures.meaning.downstream import learners_named
from bertology.measures.meaning.features import Feature, feature_of, features_named
from bertology.measures.meaning.frozen_vectors import Vectors
from bertology.measures.meaning.lessons import Choice, lesson_of
from bertology.measures.meaning.options import (
    USUAL,
    Features,
    Items,
    Layer,
    Learners,
    Seed,
    Seeds,
    TaskName,
    Train,
    TrainLimit,
)
from bertology.measures.work import Work
from bertology.results.estimate import Estimates
from bertology.results.sampling import over_sentences_and_seeds
from bertology.results.shapes import Table

EQUAL = "no difference"
UNTRAINED = "random weights"


@analysis(
    question="How much is context worth: how do the same small models do on frozen features of several kinds?",
    special="seen by the model, which reads every text alone; only words are features, each the mean of its pieces",
    cites=("arora2020",),
    version=3,
)
def compare(
    encoder: Encoder,
    corpus: Corpus,
    work: Work,
    *,
    features: Features = USUAL,
    task: TaskName = "auto",
    layer: Layer = "",
    learners: Learners = "linear",
    items: Items = 400,
    train: Train = "",
    train_limit: TrainLimit = 0,
    seeds: Seeds = 3,
    seed: Seed = 0,
) -> Table:
    """Score on judged items, 0 to 1, of small models that learn from frozen features, one row a feature.

    The score is span F1 of names, else accuracy. Features are never trained. Every feature gets the same learners, the
    same items and the same grid to choose from by what a seed holds out: linear models four penalties, networks two
    rates and ten moments of training. Pairs are read one text at a time, as u, v, |u - v| and u * v of the two means:
    no feature sees both texts at once. Arora et al. put BiLSTMs and CNNs of their own on BERT's last layer, GloVe and
    random circulant vectors; `random` is the last of these, of the width of the model at hand.

    `leads by` is the score of the first feature less that of the row, on the same items and seeds. Baselines: the
    commonest label, of tags also the commonest of each word; the model with random weights. Counts of all seeds are
    pooled; intervals resample items and seeds together. A row's note says its width, and how many words have no vector.
    """
    choice = Choice(task, layer, items, train, train_limit, seeds, seed)
    lesson = lesson_of(corpus, choice, purpose="meaning/compare")
    named, chosen = features_named(features, encoder), learners_named(learners, lesson.task.name)
    cells = Cells(lesson, work)
    vectors = cells.vectors([*named, *_untrained(encoder)])
    sums = cells.run(vectors, chosen, [lesson.most])[..., 0, :]
    guesses = cells.guesses(lesson.most)
    rows = tuple(feature.name for feature in named)
    measures: dict[str, Estimates] = {}
    baselines: dict[str, dict[str, Estimates]] = {name: {} for name in (*guesses, EQUAL)}
    units: dict[str, str] = {}
    for place, learner in enumerate(chosen):
        scores = over_sentences_and_seeds(sums[:, :, :, place], share, seed=seed)
        measures[learner] = scores[: len(rows)]
        units[learner] = f"{lesson.task.measure}, 0 to 1, of {learner} models; {lesson.said}"
        for name, counts in guesses.items():
            guess = over_sentences_and_seeds(counts, share, seed=seed)
            baselines[name][learner] = guess[()].everywhere((len(rows),))
        if len(vectors) > len(rows):
            baselines.setdefault(UNTRAINED, {})[learner] = scores[len(rows)].everywhere((len(rows),))
        lead = f"{learner}: {rows[0]} leads by"
        measures[lead] = over_sentences_and_seeds(sums[:, :, : len(rows), place], _lead, seed=seed)
        baselines[EQUAL][lead] = Estimates.exact(np.zeros(len(rows)), len(lesson.judged))
        units[lead] = f"difference of {lesson.task.measure}, -1 to 1, of {learner} models"
    notes = {own.name: _note(own) for own in vectors[: len(rows)]}
    return Table(rows_named=rows, measures=measures, baselines=baselines, units=units, notes=notes)


def _untrained(encoder: Encoder) -> Sequence[Feature]:
    from bertology.encoder.huggingface import HuggingFaceEncoder

    return [feature_of("untrained", encoder)] if isinstance(encoder, HuggingFaceEncoder) else []


def _lead(sums: Sums) -> Sums:
    """(..., feature) by how much the first feature is ahead."""
    scores = share(sums)
    return scores[..., :1] - scores


def _note(vectors: Vectors) -> str:
    counted: Any = vectors.counts
    told = "".join(f"; {count} {name}" for name, count in counted.items())
    return f"width {vectors.width}{told}"
