"""When is context worth it: its gain on complex, ambiguous and unseen text beside plain text (arora2020)?"""

from __future__ import annotations

from itertools import combinations
from typing import Annotated

import numpy as np

from bertology.analyses.declaration import analysis
from bertology.corpus.corpus import Corpus
from bertology.encoder.encoder import Encoder
from bertology.errors import Refusal
from bertology.measures.meaning.context_gain import PARTS, Judged, judged_of, right, split_scores
from bertology.measures.meaning.downstream import learners_named
from bertology.measures.meaning.features import features_named
from bertology.measures.meaning.frozen_answers import recorded_all, said_of
from bertology.measures.meaning.lessons import Choice, Lesson, lesson_of
from bertology.measures.meaning.options import (
    USUAL,
    Features,
    Items,
    Layer,
    Learner,
    Seed,
    Seeds,
    TaskName,
    Train,
    TrainLimit,
)
from bertology.measures.meaning.structure_properties import COMPLEXITY, PROPERTIES
from bertology.measures.work import Work
from bertology.results.estimate import Estimates
from bertology.results.shapes import Table

PURPOSE = "meaning/properties"
ALIKE = "halves drawn at random"


@analysis(
    question="When is context worth it: how much do complex, ambiguous and unseen words gain from it, and plain ones?",
    special="seen by the model, which reads every text alone; only words are features, each the mean of its pieces",
    cites=("arora2020",),
    version=3,
)
def properties(
    encoder: Encoder,
    corpus: Corpus,
    work: Work,
    *,
    features: Features = USUAL,
    task: TaskName = "auto",
    layer: Layer = "",
    learner: Learner = "linear",
    longest: Annotated[int, "judge only names of at most so many words; 0 for all"] = 0,
    items: Items = 400,
    train: Train = "",
    train_limit: TrainLimit = 0,
    seeds: Seeds = 3,
    seed: Seed = 0,
) -> Table:
    """Share of names, words or texts answered right, 0 to 1, and what one feature gains over another, -1 to 1.

    Every item judged has three properties, counted without a model. Complexity: the words of a name; of a text the
    mean distance between a word and its head (no number without trees); of another tagged word how far its head is.
    Ambiguity: how many labels a word has in training, the mean over a name's words; of a text the entropy in bits of
    the mean of p(class | word). Unseen words: 1 / (1 + times seen in training), the mean over a name's words; of a text
    the share of words that training lacks. Items are cut at the median of each (or from it on, where more even).

    `A - B` is what feature A gains over B. Arora et al. find the gain of BERT larger in the upper halves, that is the
    row `upper - lower` above 0. Names are scored by recall (found whole, with their kind), as wrong finds have no
    properties; how the paper scores halves is not known here. Baselines: the same gain on halves drawn at random (that
    of all items, and no difference), and for each score the commonest label, of tags also the commonest of each word.
    Intervals resample texts and seeds. The notes say how far properties go together: long names hold
    frequent words, so look at unseen ones with --longest 1 too.
    """
    lesson = lesson_of(corpus, Choice(task, layer, items, train, train_limit, seeds, seed), purpose=PURPOSE)
    named = features_named(features, encoder)
    if len(named) < 2:
        raise Refusal(f"--features was given {features!r}", "two or more, to compare", "For example model,static")
    judged = judged_of(lesson, longest)
    if not judged.gold:
        raise Refusal(
            f"{PURPOSE}: of the {len(lesson.judged)} texts to judge by none has a name to find",
            "some",
            "Use a larger corpus, or leave --longest out",
        )
    chosen = learners_named(learner, lesson.task.name)
    said = said_of(lesson, recorded_all(lesson, named, work), chosen[0], work)
    scores = [right(lesson, judged, own) for own in said]
    guesses = {
        name: right(lesson, judged, [answers] * len(lesson.draws))
        for name, answers in lesson.task.guesses(lesson.learnt, lesson.judged).items()
    }
    halves = [split_scores(judged, [*scores, *guesses.values()], place, seed=seed) for place in range(len(PROPERTIES))]
    found, whole = (_rows([pair[which] for pair in halves]) for which in (0, 1))
    names = [feature.name for feature in named]
    measures, baselines = _columns(names, list(guesses), found, whole)
    share = f"share of {judged.what}s answered right, 0 to 1; {lesson.said}"
    units = {name: share if name in names else "difference of shares, -1 to 1" for name in measures}
    return Table(
        rows_named=tuple(f"{name}, {part}" for name in PROPERTIES for part in PARTS),
        measures=measures,
        baselines=baselines,
        units=units,
        notes=_notes(lesson, judged),
    )


def _rows(halves: list[Estimates]) -> Estimates:
    """(property and part, score) one under the other."""
    fields = ("value", "low", "high", "n")
    return Estimates(**{name: np.concatenate([getattr(own, name) for own in halves]) for name in fields})


def _columns(
    names: list[str], guesses: list[str], found: Estimates, whole: Estimates
) -> tuple[dict[str, Estimates], dict[str, dict[str, Estimates]]]:
    """Each feature beside the guesses, and each difference of two beside that of all items."""
    everyone = [*names, *guesses]
    places = {name: place for place, name in enumerate(everyone)}
    pairs = list(combinations(everyone, 2))
    gains = {f"{a} - {b}": len(everyone) + k for k, (a, b) in enumerate(pairs) if a in names and b in names}
    measures: dict[str, Estimates] = {name: found[:, places[name]] for name in names}
    measures |= {name: found[:, at] for name, at in gains.items()}
    baselines: dict[str, dict[str, Estimates]] = {}
    for guess in guesses:
        own: Estimates = found[:, places[guess]]
        baselines[guess] = dict.fromkeys(names, own)
    baselines[ALIKE] = {name: whole[:, at] for name, at in gains.items()}
    return measures, baselines


def _notes(lesson: Lesson, judged: Judged) -> dict[str, str]:
    """Of each property its spread over what is judged, and of how many it has no number."""
    notes: dict[str, str] = {}
    for place, name in enumerate(PROPERTIES):
        values = judged.values[:, place]
        defined = values[np.isfinite(values)]
        told = f"{len(defined)} {judged.what}s in {len(lesson.judged)} texts"
        if len(defined):
            low, middle, high = np.percentile(defined, [0, 50, 100])
            told += f", from {low:.3g} to {high:.3g}, median {middle:.3g}"
        if len(defined) < len(values):
            why = "a tree or a head" if name == COMPLEXITY else "a word that training has"
            told += f"; {len(values) - len(defined)} without {why}"
        notes[f"{name}, {PARTS[0]}"] = told + "".join(_alongside(judged, place, other) for other in range(place))
    return notes


def _alongside(judged: Judged, place: int, other: int) -> str:
    """How a property goes with another: what one shows may be the other's doing."""
    import torch

    from bertology.maths.rank_correlation import spearman

    first, second = torch.from_numpy(judged.values[:, [place, other]].T.copy())
    found = float(spearman(first, second, first.isfinite() & second.isfinite()))
    return "" if np.isnan(found) else f"; rank correlation with {PROPERTIES[other]} {found:.2f}"
