"""How does the worth of context change with the amount of training data (arora2020)?"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from bertology.analyses.declaration import analysis
from bertology.corpus.corpus import Corpus
from bertology.encoder.encoder import Encoder
from bertology.measures.meaning.cells import Sums, share
from bertology.measures.meaning.data_sizes import learning_curves
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
from bertology.results.sampling import over_sentences_and_seeds
from bertology.results.shapes import Curve

ALIKE = "no difference"
SHRINKS = ", shrinks by"


@analysis(
    question="How does the worth of context change with the amount of training data?",
    special="seen by the model, which reads every text alone; only words are features, each the mean of its pieces",
    cites=("arora2020",),
    version=4,
)
def curves(
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
) -> Curve:
    """Score on judged items, 0 to 1, of small models on frozen features, against how many items they learn from.

    One measure a feature: span F1 of names, else accuracy (see meaning/compare for what learns, and how it is chosen).
    Sizes are in equal steps of the logarithm from a `least` share to all; of one seed the items of a smaller size are
    among those of a larger one. What is held out to choose by does not shrink with the size, alike for all features.
    Arora et al. take fractions 1/2^k. `model - static` and the like are how far one feature lies above another, of the
    same items and seeds; by how much that is more than with all training items is what it `shrinks by`, paired as well.
    Where the curves meet and how much data a feature is worth is in meaning/crossings, which reads the same finished
    cells.

    Baselines at each size: the commonest label among those learnt from, of tags also the commonest of each word; for a
    difference, none. Counts of all seeds are pooled; intervals resample items and seeds together.
    """
    choice = Choice(task, layer, items, train, train_limit, seeds, seed)
    found = learning_curves(encoder, corpus, work, choice, features, learner, (sizes, least), purpose="meaning/curves")
    pairs = list(combinations(range(len(found.features)), 2))

    def statistic(sums: Sums) -> Sums:
        scores = share(sums)
        first, second = ([pair[place] for pair in pairs] for place in (0, 1))
        gaps = scores[..., first, :] - scores[..., second, :]
        return np.concatenate([scores, gaps, gaps - gaps[..., -1:]], -2)

    scores = over_sentences_and_seeds(found.sums, statistic, seed=seed)
    guesses = {name: over_sentences_and_seeds(counts, share, seed=seed) for name, counts in found.guesses.items()}
    gaps = [f"{found.features[first]} - {found.features[second]}" for first, second in pairs]
    gaps += [f"{gap}{SHRINKS}" for gap in gaps]
    baselines = {name: dict.fromkeys(found.features, guess) for name, guess in guesses.items()}
    none = Estimates.exact(np.zeros(len(found.sizes)), len(found.lesson.judged))
    measure, said = found.lesson.task.measure, f"of {learner} models; {found.lesson.said}"
    return Curve(
        along="training items",
        points=np.array(found.sizes, np.float64),
        measures={name: scores[place] for place, name in enumerate([*found.features, *gaps])},
        baselines=baselines | ({ALIKE: dict.fromkeys(gaps, none)} if gaps else {}),
        units=dict.fromkeys(found.features, f"{measure}, 0 to 1, {said}")
        | dict.fromkeys(gaps, f"difference of {measure}, -1 to 1, {said}"),
    )
