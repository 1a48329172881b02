"""Is a dependency relation, and which, written in the attention between two words (reif2019, section 3.1)?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertology.analyses.declaration import Sites, analysis
from bertology.encoder.encoder import Encoder
from bertology.errors import Refusal
from bertology.measures.division import Division, random_form
from bertology.measures.heads.word_pairs import DIRECTIONS, Negatives, Pairs, pair_attention, recorded_pairs
from bertology.measures.probes.control_labels import random_labels
from bertology.measures.probes.options import Seed, Share, Train, TrainLimit
from bertology.recording.recording import Recording
from bertology.results.estimate import Estimates
from bertology.results.sampling import pooled_over_sentences
from bertology.results.shapes import Table

Numbers = NDArray[Any]

BOTH, FORTH = "both directions", "dependent to head"
FURTHEST = 10
"""Offsets beyond this many words count as this many."""


@dataclass(frozen=True)
class _Tasks:
    """What probes are asked: the draws, the relations by frequency, and the strength of the penalty."""

    draws: tuple[int, ...]
    relations: tuple[str, ...]
    penalty: float


class _Answers(NamedTuple):
    """`exists` is (draw, word, 2): whether the pair, and the one drawn beside it, are told right.

    `relation` and `gold` are (task, word): the relation predicted, and the right one.
    """

    exists: Numbers
    relation: Numbers
    gold: Numbers


def _sites(options: Mapping[str, Any]) -> Sites:
    return (pair_attention(options["negatives"], _draws(options["seed"], options["seeds"])),)


def _draws(seed: int, seeds: int) -> tuple[int, ...]:
    return tuple(range(seed, seed + seeds))


@analysis(
    question="Is a dependency relation, and which, written in the attention between two words?",
    special="seen by the model; only attention between words is used, and it is not scaled",
    cites=("reif2019",),
    sites=_sites,
    layers=("heads", "relations"),
    version=3,
)
def relations(
    recording: Recording,
    randomised: Recording | None,
    encoder: Encoder | None,
    *,
    negatives: Annotated[Negatives, "pairs without a relation: of the same word, or matched in offset"] = "any",
    minimum: Annotated[int, "a relation counts from this many words in training"] = 20,
    penalty: Annotated[float, "of the squared weights, on standardised features"] = 0.003,
    train: Train = "",
    train_limit: TrainLimit = 0,
    share: Share = 0.7,
    seeds: Annotated[int, "how many times pairs without a relation, and control labels, are drawn"] = 3,
    seed: Seed = 0,
) -> Table:
    """Share of word pairs told right, 0 to 1: by chance 0.5 for whether there is a relation.

    A linear classifier sees the attention of all heads between a word and its head, in `both directions` or from
    `dependent to head` only (the paper's vector, one number a head). `relation exists`: accuracy among as many pairs
    without a relation; `which relation`: accuracy among the pairs that have one; the rows of single relations are
    their F1 in that task. Punctuation, roots and rare relations are left out. Attention to a split word is summed,
    from it averaged.

    The baselines: the most frequent answer in training; a classifier that sees only how far apart the words are, and
    in which order; the same classifiers on the model with random weights; and on control labels, where each form of a
    word is given a random answer of its own: what a probe gets right there it has not read off the relation. Pairs
    `matched` in offset leave the offset nothing to tell. The paper trains by stochastic gradient descent on a balanced
    set of the Penn Treebank, relations with 5,000 examples or more; here the same objective is solved to the end.
    """
    division, draws = Division(train, train_limit, share, seed), _draws(seed, seeds)
    learned, tested = _parts(recording, encoder, division, negatives, draws)
    kept = _frequent(learned.relation, minimum)
    learned, tested = (part.only(np.isin(part.relation, kept)) for part in (learned, tested))
    if not len(learned.sentence) or not len(tested.sentence):
        raise Refusal(
            f"{recording.corpus.name} has no relation with {minimum} words to train on and one to test on",
            "a larger treebank",
            "Use one, give another with --train, or lower --minimum",
        )
    tasks = _Tasks(draws, kept, penalty)
    found = _probed(learned, tested, tasks)
    measures = {name: _scores(tested, found[name], tasks, seed) for name in (BOTH, FORTH)}
    chance = _scores(tested, _majority(tested, tasks), tasks, seed)
    far = _scores(tested, _by_offset(learned, tested, tasks), tasks, seed)
    control = {name: _overall(_scores(tested, found[f"{name}, control"], tasks, seed)) for name in (BOTH, FORTH)}
    baselines = {"majority": dict.fromkeys(measures, chance), "offset only": dict.fromkeys(measures, far)}
    baselines["control labels"] = control
    if randomised is not None:
        fresh = _parts(randomised, random_form(encoder), division, negatives, draws)
        first, second = (part.only(np.isin(part.relation, kept)) for part in fresh)
        own = _probed(first, second, tasks, control=False)
        baselines["random weights"] = {name: _scores(tested, own[name], tasks, seed) for name in (BOTH, FORTH)}
    return Table(
        measures=measures,
        baselines=baselines,
        units=dict.fromkeys(measures, "accuracy, 0 to 1; F1 in the rows of single relations"),
        rows_named=("relation exists", "which relation", *kept),
        notes={
            "relation exists": f"{len(learned.sentence)} words with a head to train on, {len(tested.sentence)} to test"
            f"{division.not_drawn(recording)}"
        },
    )


def _frequent(names: Numbers, minimum: int) -> tuple[str, ...]:
    """The relations with enough words, the most frequent first."""
    counts: Counter[str] = Counter(names.tolist())
    ordered = sorted((-count, name) for name, count in counts.items() if count >= minimum)
    return tuple(name for _, name in ordered)


def _parts(
    recording: Recording, encoder: Encoder | None, division: Division, negatives: Negatives, draws: tuple[int, ...]
) -> tuple[Pairs, Pairs]:
    site = pair_attention(negatives, draws)
    first, second = division.parts(recording, encoder, (site,), purpose="heads/relations")
    return recorded_pairs(*first, negatives, draws), recorded_pairs(*second, negatives, draws)


def _probed(learned: Pairs, tested: Pairs, tasks: _Tasks, *, control: bool = True) -> dict[str, _Answers]:
    """What the classifiers answer on the test pairs, by the features they see."""
    width = learned.features.shape[2]
    forth = np.arange(width) < width // DIRECTIONS
    views = {BOTH: np.ones(width, np.bool_), FORTH: forth}
    labels = {"": False, ", control": True} if control else {"": False}
    asked = [(name + suffix, views[name], random) for name in views for suffix, random in labels.items()]
    exists = _existence(learned, tested, learned.features, tested.features, tasks, asked)
    which = _which(learned, tested, learned.features, tested.features, tasks, asked)
    return {name: _Answers(exists[name], *which[name]) for name, _, _ in asked}


_Asked = Sequence[tuple[str, Numbers, bool]]


def _existence(
    learned: Pairs, tested: Pairs, known: Numbers, new: Numbers, tasks: _Tasks, asked: _Asked
) -> dict[str, Numbers]:
    from bertology.maths.classifier import UNUSED, Recipe, fit

    def gold(part: Pairs, draw: int, random: bool) -> Numbers:
        """(word, pair) 1 for a relation, 0 for none, and unused for pairs of another draw or without a partner."""
        labels = np.full(part.offsets.shape, UNUSED)
        own = (
            random_labels(part.forms, tasks.draws[draw], np.array([0.5]))
            if random
            else (np.arange(part.offsets.shape[1]) == 0)
        )
        labels[:, [0, draw + 1]] = np.broadcast_to(own, labels.shape)[:, [0, draw + 1]]
        labels[~part.drawn[draw]] = UNUSED
        return labels

    each = [(name, draw, random) for name, _, random in asked for draw in range(len(tasks.draws))]
    labels = np.stack([gold(learned, draw, random).ravel() for _, draw, random in each])
    used = np.stack([view for _, view, _ in asked for _ in tasks.draws])
    there = np.isfinite(known).all(-1).ravel()
    flat = known.reshape(1, -1, known.shape[-1])[:, there]
    model = fit(flat, labels[:, there], 2, Recipe(penalties=(tasks.penalty,)), used=used)
    answers = model.predict(np.nan_to_num(new).reshape(1, -1, new.shape[-1])).reshape(len(each), *new.shape[:2])
    right: dict[str, list[Numbers]] = {name: [] for name, _, _ in asked}
    for (name, draw, random), answer in zip(each, answers, strict=True):
        right[name].append((answer == gold(tested, draw, random))[:, [0, draw + 1]])
    return {name: np.stack(found) for name, found in right.items()}


def _which(
    learned: Pairs, tested: Pairs, known: Numbers, new: Numbers, tasks: _Tasks, asked: _Asked
) -> dict[str, tuple[Numbers, Numbers]]:
    from bertology.maths.classifier import Recipe, fit

    shares = np.cumsum([np.mean(learned.relation == name) for name in tasks.relations])[:-1]

    def gold(part: Pairs, draw: int, random: bool) -> Numbers:
        return random_labels(part.forms[:, 0], draw, shares) if random else _numbered(part.relation, tasks)

    each = [(name, draw, random) for name, _, random in asked for draw in (tasks.draws if random else tasks.draws[:1])]
    labels = np.stack([gold(learned, draw, random) for _, draw, random in each])
    used = np.stack([view for _, view, random in asked for _ in (tasks.draws if random else tasks.draws[:1])])
    recipe = Recipe(penalties=(tasks.penalty,))
    model = fit(known[None, :, 0], labels, len(tasks.relations), recipe, used=used)
    answers = model.predict(new[None, :, 0])[0]
    found: dict[str, tuple[Numbers, Numbers]] = {}
    for name, _, _ in asked:
        own = [place for place, task in enumerate(each) if task[0] == name]
        found[name] = answers[own], np.stack([gold(tested, *each[place][1:]) for place in own])
    return found


def _numbered(names: Numbers, tasks: _Tasks) -> Numbers:
    numbers = {name: number for number, name in enumerate(tasks.relations)}
    return np.array([numbers[name] for name in names.tolist()], np.int64)


def _majority(tested: Pairs, tasks: _Tasks) -> _Answers:
    """There is a relation, and it is the most frequent one in training."""
    right = np.broadcast_to(np.array([True, False]), (len(tasks.draws), len(tested.sentence), 2))
    return _Answers(right, np.zeros((1, len(tested.sentence)), np.int64), _numbered(tested.relation, tasks)[None])


def _by_offset(learned: Pairs, tested: Pairs, tasks: _Tasks) -> _Answers:
    """The answers of classifiers that see only how far apart the words are, and in which order."""

    def features(part: Pairs) -> Numbers:
        steps = np.clip(part.offsets, -FURTHEST, FURTHEST)[..., None] == np.arange(-FURTHEST, FURTHEST + 1)
        missing = ~np.isfinite(part.features[..., :1])
        return np.where(missing, np.nan, steps.astype(np.float32))

    known, new = features(learned), features(tested)
    asked = [("offset", np.ones(known.shape[-1], np.bool_), False)]
    exists = _existence(learned, tested, known, new, tasks, asked)["offset"]
    return _Answers(exists, *_which(learned, tested, known, new, tasks, asked)["offset"])


def _scores(tested: Pairs, answers: _Answers, tasks: _Tasks, seed: int) -> Estimates:
    """(row,) estimates: both accuracies, then the F1 of each relation, pooled over sentences and draws."""
    drawn, gold = tested.drawn, answers.gold
    # (word,) counts for each row, summed over draws, then over the words of a sentence.
    hits = [(answers.exists & drawn[..., None]).sum((0, 2)), (answers.relation == gold).sum(0)]
    cases = [2 * drawn.sum(0), np.full(gold.shape[1], len(gold))]
    for number in range(len(tasks.relations)):
        said, true = answers.relation == number, gold == number
        hits.append(2 * (said & true).sum(0))
        cases.append(said.sum(0) + true.sum(0))
    tops, bottoms = (np.zeros((int(tested.sentence.max()) + 1, len(hits))) for _ in range(2))
    np.add.at(tops, tested.sentence, np.column_stack(hits))
    np.add.at(bottoms, tested.sentence, np.column_stack(cases))
    return pooled_over_sentences(tops, bottoms, seed=seed)


def _overall(scores: Estimates) -> Estimates:
    """The two accuracies alone: control labels have no relations to score one by one."""
    value, low, high = (
        np.where(np.arange(len(side)) < 2, side, np.nan) for side in (scores.value, scores.low, scores.high)
    )
    return Estimates(value=value, low=low, high=high, n=np.where(np.arange(len(value)) < 2, scores.n, 0))
