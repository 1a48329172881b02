"""Linear maps that bring occurrences of one sense together, learned from some words or documents, tried on others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertology.maths.cosine_projection import Pairs, fitted_projection, random_projection
from bertology.maths.neighbours import Floats, Places, by_centroids
from bertology.measures.meaning.sense_answers import share_of
from bertology.measures.meaning.sense_material import Divided, Occurrences, most_frequent, shuffled_senses
from bertology.results.estimate import Estimate

HELD = 0.3
"""The share of the training's documents whose pairs say when to stop."""
FOLDS = 3
MOST_PAIRS = 20_000

Map = Callable[[Places], Floats | None]
"""From the occurrences to learn from to a map; None where there is nothing to learn."""


@dataclass(frozen=True)
class Probed:
    """One layer of a division: the vectors to learn from and to test, and everything that is known of them."""

    divided: Divided
    layer: int
    seed: int

    def maps(self, run: int, dimensions: int, *, shuffle: bool = False) -> tuple[Floats, Map]:
        """The random map of a division, and what learns from it; with `shuffle`, senses dealt anew."""
        learned = self.divided.learned
        start = random_projection(dimensions, learned.examples.features.shape[2], seed=self.seed + run)
        senses = learned.sense
        if shuffle:
            generator = np.random.default_rng([self.seed, run, 17])
            senses = shuffled_senses(learned, self.divided.runs[run][0], generator)

        def fit(places: Places) -> Floats | None:
            return _fitted(learned, self.layer, places, senses, start, seed=self.seed + run)

        return start, fit

    def right(self, run: int, projection: Floats | None, only: NDArray[np.bool_] | None = None) -> Floats:
        """(case,) 1 where the nearest centroid under the map is that of the sense, NaN for words with one sense.

        `only` says of which words (as places among the tested occurrences).
        """
        learned, tested = self.divided.learned, self.divided.tested
        first, cases = self.divided.runs[run]
        found = np.full(len(cases), np.nan)
        for lemma in sorted(set(tested.lemma[cases].tolist())):
            own = np.flatnonzero((tested.lemma[cases] == lemma) & (only[cases] if only is not None else True))
            known = first[learned.lemma[first] == lemma]
            names = most_frequent(learned.sense[known].tolist())
            if len(names) < 2 or not len(own):
                continue
            classes = np.array([names.index(sense) for sense in learned.sense[known].tolist()], np.intp)
            vectors = [
                part.examples.features[self.layer, places].astype(np.float64)
                for part, places in ((tested, cases[own]), (learned, known))
            ]
            if projection is not None:
                vectors = [some @ projection.T for some in vectors]
            told = by_centroids(vectors[0], vectors[1], classes, len(names))
            found[own] = np.array(names, np.object_)[told] == tested.sense[cases[own]]
        return found

    def shared(self, made: Callable[[int], Floats]) -> Estimate:
        """The share that is right over all divisions, from what `made` gives for each."""
        tested = self.divided.tested.examples
        shape = (len(self.divided.runs), self.divided.sentences(), 1)
        tops, bottoms = np.zeros(shape), np.zeros(shape)
        for run, (_, cases) in enumerate(self.divided.runs):
            right = made(run)
            there = np.isfinite(right)
            np.add.at(tops[run, :, 0], tested.entry[cases[there]], right[there])
            np.add.at(bottoms[run, :, 0], tested.entry[cases[there]], 1)
        return share_of(tops, bottoms, self.seed)[0]

    def by_probe(self, dimensions: int, run: int, *, shuffle: bool = False) -> Floats:
        """(case,) what is right under a map that has learned from all words of the training."""
        _, fit = self.maps(run, dimensions, shuffle=shuffle)
        return self._by(run, fit(self.divided.runs[run][0]))

    def by_random_map(self, dimensions: int, run: int) -> Floats:
        """(case,) what is right under the map that learning starts from."""
        return self.right(run, self.maps(run, dimensions)[0])

    def by_other_words(self, dimensions: int, run: int, *, shuffle: bool = False) -> Floats:
        """(case,) what is right where the map has learned from other words alone, in folds of words."""
        learned, tested = self.divided.learned, self.divided.tested
        first, cases = self.divided.runs[run]
        _, fit = self.maps(run, dimensions, shuffle=shuffle)
        words = sorted(set(tested.lemma[cases].tolist()))
        found = np.full(len(cases), np.nan)
        for fold in range(min(FOLDS, len(words))):
            own = words[fold::FOLDS]
            others = first[~np.isin(learned.lemma[first], own)]
            projection = fit(others)
            if projection is not None:
                told = self.right(run, projection, np.isin(tested.lemma, own))
                found = np.where(np.isfinite(told), told, found)
        return found

    def by_frequency(self, run: int) -> Floats:
        """(case,) what is right where the most frequent sense of training is told, of words with several."""
        learned, tested = self.divided.learned, self.divided.tested
        first, cases = self.divided.runs[run]
        several = np.isfinite(self.right(run, None))
        found = np.full(len(cases), np.nan)
        for number in np.flatnonzero(several).tolist():
            known = first[learned.lemma[first] == tested.lemma[cases[number]]]
            found[number] = most_frequent(learned.sense[known].tolist())[0] == tested.sense[cases[number]]
        return found

    def _by(self, run: int, projection: Floats | None) -> Floats:
        if projection is None:
            return np.full(len(self.divided.runs[run][1]), np.nan)
        return self.right(run, projection)


def _fitted(
    learned: Occurrences, layer: int, places: Places, senses: NDArray[np.object_], start: Floats, *, seed: int
) -> Floats | None:
    """The map learned from pairs of the same word; pairs of held-out documents say when to stop."""
    alike, apart = _pairs(learned, places, senses, np.random.default_rng([seed, 19]))
    documents = sorted(set(learned.documents[places].tolist()))
    held = np.random.default_rng([seed, 23]).permutation(len(documents))[: int(HELD * len(documents))]
    outside = np.isin(learned.documents, [documents[number] for number in held.tolist()])
    # A pair with one half in training would be pulled together by it: both are held out, or both are not.
    parts = [(some[~outside[some].any(1)], some[outside[some].all(1)]) for some in (alike, apart)]
    if not all(len(inside) for inside, _ in parts):
        return None
    vectors = learned.examples.features[layer]
    return fitted_projection(vectors, (parts[0][0], parts[1][0]), (parts[0][1], parts[1][1]), start)


def _pairs(
    learned: Occurrences, places: Places, senses: NDArray[np.object_], generator: np.random.Generator
) -> tuple[Pairs, Pairs]:
    """All pairs of occurrences of one word, of the same sense and of others; of each kind no more than some."""
    kinds: tuple[list[Pairs], list[Pairs]] = ([], [])
    for lemma in sorted(set(learned.lemma[places].tolist())):
        own = places[learned.lemma[places] == lemma]
        rows, columns = np.triu_indices(len(own), 1)
        pairs = np.stack([own[rows], own[columns]], 1)
        same = senses[pairs[:, 0]] == senses[pairs[:, 1]]
        kinds[0].append(pairs[same])
        kinds[1].append(pairs[~same])
    whole = [np.concatenate(some) if some else np.zeros((0, 2), np.intp) for some in kinds]
    if max(len(some) for some in whole) > MOST_PAIRS:
        whole = [generator.permutation(some)[:MOST_PAIRS] for some in whole]
    return whole[0], whole[1]
