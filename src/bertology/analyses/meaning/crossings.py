"""Where do the curves of two features meet, and how much training data is the better one worth (arora2020)?"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from bertology.analyses.declaration import analysis
from bertology.corpus.corpus import Corpus
from bertology.encoder.encoder import Encoder
from bertology.errors import Refusal
from bertology.measures.meaning.data_sizes import Meeting, Meetings, learning_curves
from bertology.measures.meaning.lessons import Choice
from bertology.measures.meaning.options import (
    USUAL,
    Features,
    Items,
    Layer,
    Learner,
    Least,
    Seed,
    Seeds,
    Sizes,
    TaskName,
    Train,
    TrainLimit,
)
from bertology.measures.work import Work
from bertology.results.estimate import Estimates
from bertology.results.sampling import joined
from bertology.results.shapes import Table

LEAD, FACTOR, MEET = "leads by", "data factor", "curves meet at"


@analysis(
    question="Where do the curves of two features meet, and how much training data is the better one worth?",
    special="seen by the model, which reads every text alone; only words are features, each the mean of its pieces",
    cites=("arora2020",),
)
def crossings(
    encoder: Encoder,
    corpus: Corpus,
    work: Work,
    *,
    features: Features = USUAL,
    task: TaskName = "auto",
    layer: Layer = "",
    learner: Learner = "linear",
    sizes: Sizes = 7,
    least: Least = 0.01,
    items: Items = 400,
    train: Train = "",
    train_limit: TrainLimit = 0,
    seeds: Seeds = 3,
    seed: Seed = 0,
) -> Table:
    """How many times the training data the weaker of two features needs for the same score, 1 being as much.

    A row for each two features, the better one at full data first, from the curves of meaning/curves. `data factor`:
    all the training items over the number with which the better feature reaches what the weaker gets from all of them
    (Arora et al. report that fraction; 1 to 16 in their tasks). Curves are evened out so that they never fall, and are
    straight between sizes on the logarithm; where the better feature is there at the smallest size, the factor is a
    lower bound and a note says so. `curves meet at` is the number of items at which the order of the two last changes,
    without a value where it never does. `leads by` is the difference at full data.

    Intervals resample items and seeds together; that of the meeting point is over the resamples in which there is one,
    and the note says how many those are. Baselines: no difference, as much data, the smallest training size.
    """
    choice = Choice(task, layer, items, train, train_limit, seeds, seed)
    found = learning_curves(
        encoder, corpus, work, choice, features, learner, (sizes, least), purpose="meaning/crossings"
    )
    if len(found.features) < 2:
        raise Refusal("meaning/crossings was given one feature", "two or more", "Name them with --features")
    meetings = Meetings(found, seed)
    pairs = [meetings.stronger_first(*pair) for pair in combinations(range(len(found.features)), 2)]
    rows = tuple(f"{found.features[one]} over {found.features[other]}" for one, other in pairs)
    met = [meetings.of(*pair) for pair in pairs]
    judged = len(found.lesson.judged)
    expected = {
        LEAD: ("no difference", 0.0),
        FACTOR: ("as much data", 1.0),
        MEET: ("smallest training size", float(found.sizes[0])),
    }
    measure = found.lesson.task.measure
    return Table(
        rows_named=rows,
        measures={
            LEAD: joined([one.lead for one in met]),
            FACTOR: joined([one.factor for one in met]),
            MEET: joined([one.meet for one in met]),
        },
        baselines={
            name: {key: Estimates.exact(np.full(len(rows), value), judged)} for key, (name, value) in expected.items()
        },
        units={
            LEAD: f"difference of {measure}, -1 to 1, at {found.sizes[-1]} items; {found.lesson.said}",
            FACTOR: f"times the training data, {found.sizes[0]} to {found.sizes[-1]} items being tried",
            MEET: "training items",
        },
        notes={row: _note(one) for row, one in zip(rows, met, strict=True)},
    )


def _note(met: Meeting) -> str:
    bound = "the better one is there at the smallest size: the factor is at least this; " if met.bounded else ""
    return f"{bound}the curves cross in {met.crossed:.0%} of resamples"
