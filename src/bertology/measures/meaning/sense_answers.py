"""Which sense nearest neighbours give to a word, what the rules without vectors give, and how both are scored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertology.maths.neighbours import Floats, Places, by_centroids, by_neighbours
from bertology.measures.meaning.sense_material import (
    Divided,
    last_layers,
    most_frequent,
    shuffled_senses,
    view_cosines,
)
from bertology.results.estimate import Estimates
from bertology.results.sampling import over_sentences_and_seeds

Rule = Literal["neighbours", "centroids"]
BackOff = Callable[[str, str], str | None]
"""The sense of a word, by lemma and part of speech, that was never seen in training; None where there is none."""
Fallback = Callable[[Sequence[str]], BackOff]
"""What to fall back on, given the senses of the training."""

F1, ACCURACY, SEVERAL, BACKED, BACKED_ACCURACY = (
    "F1",
    "accuracy",
    "accuracy of several senses",
    "back-offs",
    "accuracy of back-offs",
)
MEASURES = (F1, ACCURACY, SEVERAL, BACKED, BACKED_ACCURACY)


@dataclass(frozen=True)
class Method:
    """How a sense is chosen: the nearest `k` (no more than the rarest sense has, if `clip`), or the nearest centroid.

    With `same_pos` only senses that the word has in training with the same part of speech can be chosen, all of them
    where there is none.
    """

    rule: Rule = "neighbours"
    k: int = 1
    clip: bool = True
    same_pos: bool = False


class Candidates(NamedTuple):
    """What can be said of some tested occurrences: senses, most frequent first, and the known ones that have them."""

    cases: Places
    senses: list[str]
    known: Places
    classes: NDArray[np.intp]


class Answers(NamedTuple):
    """What is right of each tested occurrence, in (case,) or (view, case) shares from 0 to 1.

    `seen`: its word is in training; `several`: with two senses or more.
    """

    cases: Places
    seen: NDArray[np.bool_]
    several: NDArray[np.bool_]
    told: Floats
    backed: Floats
    frequent: Floats
    random: Floats
    reachable: Floats


def answers(
    divided: Divided, method: Method, fallback: Fallback | None, *, shuffle: int | None = None
) -> list[Answers]:
    """What is right in each division; with `shuffle`, a seed, after learning each word's senses dealt anew."""
    found: list[Answers] = []
    for number, run in enumerate(divided.runs):
        taught = divided.learned.sense
        if shuffle is not None:
            taught = shuffled_senses(divided.learned, run[0], np.random.default_rng([shuffle, number, 7]))
        found.append(_answered(divided, run, method, fallback, taught))
    return found


def _answered(
    divided: Divided, run: tuple[Places, Places], method: Method, fallback: Fallback | None, taught: NDArray[Any]
) -> Answers:
    tested = divided.tested
    cases = run[1]
    gold = tested.sense[cases]
    place = {case: number for number, case in enumerate(cases.tolist())}
    views, count = len(tested.views), len(cases)
    found = Answers(
        cases, np.zeros(count, np.bool_), np.zeros(count, np.bool_), np.zeros((views, count)), *np.zeros((4, count))
    )
    for some in _candidates(divided, run, method, taught):
        own = np.array([place[case] for case in some.cases.tolist()])
        names = np.array(some.senses, np.object_)
        found.seen[own] = True
        found.several[own] = len(names) > 1
        found.told[:, own] = names[_chosen(divided, some, method)] == gold[own]
        found.frequent[own] = names[0] == gold[own]
        found.reachable[own] = np.isin(gold[own], names)
        found.random[own] = found.reachable[own] / len(names)
    if fallback is not None:
        told = fallback(taught[run[0]].tolist())
        for number in np.flatnonzero(~found.seen).tolist():
            lemma, pos = (str(layer[cases[number]]) for layer in (tested.lemma, tested.pos))
            found.backed[number] = told(lemma, pos) == gold[number]
    return found


def _candidates(divided: Divided, run: tuple[Places, Places], method: Method, taught: NDArray[Any]) -> list[Candidates]:
    """The tested occurrences by what can be said of them; those whose word is not in training are not among them."""
    learned, tested = divided.learned, divided.tested
    first, second = run
    found: list[Candidates] = []
    for lemma in sorted(set(tested.lemma[second].tolist()) & set(learned.lemma[first].tolist())):
        same = first[learned.lemma[first] == lemma]
        cases = second[tested.lemma[second] == lemma]
        tags = sorted(set(tested.pos[cases].tolist())) if method.same_pos else [None]
        for tag in tags:
            allowed = same[learned.pos[same] == tag] if tag is not None else same
            senses = most_frequent(taught[allowed if len(allowed) else same].tolist())
            known = first[np.isin(taught[first], senses)]  # of other words that share the sense, too
            own = cases if tag is None else cases[tested.pos[cases] == tag]
            numbers = {sense: number for number, sense in enumerate(senses)}
            classes = np.array([numbers[sense] for sense in taught[known].tolist()], np.intp)
            found.append(Candidates(own, senses, known, classes))
    return found


def _chosen(divided: Divided, some: Candidates, method: Method) -> Places:
    """(view, case) the number of the sense that is chosen."""
    cases = divided.tested.examples.features[:, some.cases]
    known = divided.learned.examples.features[:, some.known]
    count = len(some.senses)
    if method.rule == "centroids":
        last = last_layers(len(cases))
        by_layer = by_centroids(cases, known, some.classes, count)
        wide = [np.concatenate(list(part[last]), -1) for part in (cases, known)]
        return np.concatenate([by_layer, by_centroids(wide[0], wide[1], some.classes, count)[None]])
    k = min(method.k, int(np.bincount(some.classes).min())) if method.clip else method.k
    return np.stack([by_neighbours(view, some.classes, count, k) for view in view_cosines(cases, known)])


def scored(
    divided: Divided, given: list[Answers], seed: int, *, only: NDArray[np.bool_] | None = None
) -> dict[str, dict[str, Estimates]]:
    """Each measure by view, first of the vectors (under "") and then of rules that see none.

    `only` says which of the tested occurrences count.
    """
    views = len(divided.tested.views)
    counted = [np.ones(len(one.cases), np.bool_) if only is None else only[one.cases] for one in given]
    rules = {
        "most frequent sense": [one.frequent for one in given],
        "random sense": [one.random for one in given],
        "best possible": [one.reachable for one in given],
    }
    found = {"": _measures(divided, given, [one.told for one in given], counted, seed)}
    for name, right in rules.items():
        one = _measures(divided, given, [some[None] for some in right], counted, seed)
        found[name] = {measure: estimates[0].everywhere((views,)) for measure, estimates in one.items()}
    return found


def _measures(
    divided: Divided, given: list[Answers], told: list[Floats], counted: list[NDArray[np.bool_]], seed: int
) -> dict[str, Estimates]:
    """Every measure of (view, case) answers, over sentences and divisions.

    F1 is that of answering what was seen and nothing else: precision is the right ones of those, recall of all.
    """
    tops: dict[str, list[Floats]] = {name: [] for name in MEASURES}
    bottoms: dict[str, list[Floats]] = {name: [] for name in MEASURES}
    for one, right, kept in zip(given, told, counted, strict=True):
        seen, all_cases = (one.seen & kept).astype(np.float64), kept.astype(np.float64)
        unseen = all_cases - seen
        several = (one.several & kept).astype(np.float64)
        for name, top, bottom in (
            (F1, 2 * right * seen, seen + all_cases),
            (ACCURACY, right * seen + one.backed * unseen, all_cases),
            (SEVERAL, right * several, several),
            (BACKED, np.broadcast_to(unseen, right.shape), all_cases),
            (BACKED_ACCURACY, np.broadcast_to(one.backed * unseen, right.shape), unseen),
        ):
            tops[name].append(_by_sentence(divided, one.cases, top))
            bottoms[name].append(_by_sentence(divided, one.cases, bottom[None]))
    return {name: share_of(np.stack(tops[name]), np.stack(bottoms[name]), seed) for name in MEASURES}


def _by_sentence(divided: Divided, cases: Places, values: Floats) -> Floats:
    """(sentence, view) sums of (view, case)."""
    found = np.zeros((divided.sentences(), len(values)))
    np.add.at(found, divided.tested.examples.entry[cases], values.T)
    return found


def share_of(tops: Floats, bottoms: Floats, seed: int) -> Estimates:
    """(view,) all of (division, sentence, view) over all of (division, sentence, 1), resampling both.

    n is the sentences that count at all; where there are none, there is no number.
    """
    there = bottoms[..., 0].any(0)
    views = tops.shape[2]
    if not there.any():
        nothing = np.full(views, np.nan)
        return Estimates(value=nothing, low=nothing, high=nothing, n=np.zeros(views, np.int64))
    sums = np.stack([tops[:, there], np.broadcast_to(bottoms[:, there], tops[:, there].shape)], -1)

    def share(summed: Floats) -> Floats:
        top, bottom = summed[..., 0], summed[..., 1]
        return np.divide(top, bottom, out=np.full_like(top, np.nan), where=bottom > 0)

    return over_sentences_and_seeds(sums, share, seed=seed)
