"""Matthews' correlation by category for several sets of answers to the same inference pairs, and their differences.

Pairs that share a hypothesis are resampled together, for they are written as a set; pairs that do not, each alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertology.corpus.corpus import Item
from bertology.corpus.readers.diagnostic import CATEGORIES, LABELS, categories_of
from bertology.maths.matthews import matthews
from bertology.measures.meaning.frozen_vectors import Vectors
from bertology.results.estimate import Estimates
from bertology.results.sampling import joined, over_sentences_and_seeds

Floats = NDArray[np.float64]
Answers = Mapping[str, Sequence[Sequence[str]]]
"""By who answers: for each seed the label of every pair."""

ALL = "all pairs"
SURFACE = "shared words"
FEWEST = 5
"""Of fewer hypotheses no interval is told but the whole range."""


class Group(NamedTuple):
    """Some of the pairs under a name."""

    name: str
    places: tuple[int, ...]


def groups_of(items: Sequence[Item], *, finely: bool) -> list[Group]:
    """All pairs, those of each category, and of each of its sub-types where these are wanted; none that is empty."""
    found: dict[str, list[int]] = {ALL: list(range(len(items)))}
    own = [categories_of(item) for item in items]
    for category, official in CATEGORIES.items():
        found[category] = [place for place, known in enumerate(own) if category in known]
        if finely:
            others = sorted({name for known in own for name in known.get(category, ())} - set(official))
            for name in (*official, *others):
                found[f"{category}: {name}"] = [
                    place for place, known in enumerate(own) if name in known.get(category, ())
                ]
    return [Group(name, tuple(places)) for name, places in found.items() if places]


def correlations(
    items: Sequence[Item], answers: Answers, groups: Sequence[Group], *, seed: int
) -> tuple[dict[str, Estimates], dict[str, Estimates]]:
    """(group,) Matthews' correlation of each who answers, -1 to 1, and that of each less that of each after it.

    The confusions of all seeds are pooled; a difference is taken on the same pairs and seeds. Where a group has fewer
    than five hypotheses, its interval is all that is possible.
    """
    names = list(answers)
    pairs = list(combinations(range(len(names)), 2))
    cells = np.stack([_confusions(items, own) for own in answers.values()], 2)

    def statistic(counts: Floats) -> Floats:
        found = matthews(counts)
        less = [found[..., first, None] - found[..., second, None] for first, second in pairs]
        return np.concatenate([found, *less], -1)

    width = len(names) + len(pairs)
    units = np.unique([item.parts[1].text for item in items], return_inverse=True)[1]
    found = joined([_of_group(items, cells, units, group, statistic, width, seed) for group in groups])
    apart = [f"{names[first]} - {names[second]}" for first, second in pairs]
    each = {name: found[:, place] for place, name in enumerate([*names, *apart])}
    return {name: each[name] for name in names}, {name: each[name] for name in apart}


def _confusions(items: Sequence[Item], answers: Sequence[Sequence[str]]) -> Floats:
    """(seed, pair, so, said) 1 where a seed says that of a pair that is so."""
    cells = np.zeros((len(answers), len(items), len(LABELS), len(LABELS)))
    for number, said in enumerate(answers):
        for place, (item, answer) in enumerate(zip(items, said, strict=True)):
            cells[number, place, LABELS.index(str(item.label)), LABELS.index(answer)] = 1
    return cells


def _of_group(
    items: Sequence[Item],
    cells: Floats,
    units: NDArray[np.intp],
    group: Group,
    statistic: Callable[[Floats], Floats],
    width: int,
    seed: int,
) -> Estimates:
    places = np.array(group.places)
    if len({items[place].label for place in group.places}) < 2:
        nothing = np.full(width, np.nan)
        return Estimates(value=nothing, low=nothing, high=nothing, n=np.zeros(width, np.int64))
    together = [places[units[places] == unit] for unit in np.unique(units[places])]
    found = over_sentences_and_seeds(np.stack([cells[:, own].sum(1) for own in together], 1), statistic, seed=seed)
    low, high = found.low, found.high
    if len(together) < FEWEST:
        # So few give resamples that are all alike: an interval of no width would be a lie.
        high = np.where(np.arange(width) < cells.shape[2], 1.0, 2.0)
        low = -high
    return Estimates(value=found.value, low=low, high=high, n=np.full(width, len(places), np.int64))


def hypotheses_alone(vectors: Vectors) -> Vectors:
    """The vectors of pairs, first and second text in turn, with nothing left of the first."""
    kept = tuple(np.zeros_like(own[:1]) if place % 2 == 0 else own for place, own in enumerate(vectors.of))
    return Vectors(vectors.name, kept, vectors.counts)


def surface(items: Sequence[Item]) -> Vectors:
    """What needs no meaning, as if it were the second text's: the share of its words in the first, all, lengths."""
    found: list[NDArray[np.float32]] = []
    for item in items:
        first, second = ({word.lower() for word in part.words if word[0].isalnum()} for part in item.parts)
        share = len(first & second) / max(1, len(second))
        told = [share, float(share == 1), len(item.parts[0]), len(item.parts[1]), len(first & second)]
        found += [np.zeros((1, len(told)), np.float32), np.array([told], np.float32)]
    return Vectors(SURFACE, tuple(found))
