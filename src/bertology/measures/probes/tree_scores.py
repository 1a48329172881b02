"""How well predicted distances and depths give the tree: the scores of structural probes (hewitt2019structural)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bertology.corpus.sentence import ROOT
from bertology.maths.spanning_trees import shared_edges, spanning_trees, tree_depths, tree_distances
from bertology.measures.probes.tree_lessons import TreeLessons, gold_edges, gold_heads, scored_words
from bertology.results.estimate import Estimates
from bertology.results.sampling import mean_over_groups, mean_over_sentences, pooled_over_sentences

if TYPE_CHECKING:
    from bertology.maths.structural_probe import Probes

Numbers = NDArray[Any]
Floats = NDArray[np.float64]
Predict = Callable[[int], tuple[Numbers, Numbers]]
"""From a sentence's place, (layer, seed, word, word) squared distances and (layer, seed, word) depths."""

UUAS, DISTANCE, ROOT_FOUND, DEPTH = "UUAS", "distance Spearman", "root accuracy", "depth Spearman"
UNITS = {
    UUAS: "share of undirected edges found, 0 to 1",
    DISTANCE: "Spearman's correlation by word, averaged by length 5 to 50, -1 to 1",
    ROOT_FOUND: "share of sentences whose root is found, 0 to 1",
    DEPTH: "Spearman's correlation by sentence, averaged by length 5 to 50, -1 to 1",
}
BY_SEED = " by seed"
SHORTEST, LONGEST = 5, 50


@dataclass(frozen=True)
class Scores:
    """(sentence, layer, seed) what is right, NaN where there is nothing to be right about.

    `edges` is (sentence,) how many edges there are to `hits`; `lengths` (sentence,) words.
    """

    hits: Floats
    edges: Floats
    distance: Floats
    root: Floats
    depth: Floats
    lengths: NDArray[np.int64]

    def measures(self, *, seed: int) -> dict[str, Estimates]:
        """(layer,) each score with an interval over sentences; one of each probe from lowest to highest seed."""
        found = {
            UUAS: pooled_over_sentences(self.hits.mean(2), self.edges[:, None], seed=seed),
            DISTANCE: mean_over_groups(self.distance.mean(2), self.lengths, seed=seed),
            ROOT_FOUND: mean_over_sentences(self.root.mean(2), seed=seed),
            DEPTH: mean_over_groups(self.depth.mean(2), self.lengths, seed=seed),
        }
        return found | {
            f"{UUAS}{BY_SEED}": _over_seeds(_pooled(self.hits, self.edges)),
            f"{ROOT_FOUND}{BY_SEED}": _over_seeds(_mean(self.root)),
        }


def _over_seeds(scores: Floats) -> Estimates:
    """(layer,) from (layer, seed): the mean, and from the lowest to the highest."""
    counted = scores.shape[1] * np.isfinite(scores[:, 0]).astype(np.int64)
    return Estimates(value=scores.mean(1), low=scores.min(1), high=scores.max(1), n=counted)


def _pooled(hits: Floats, edges: Floats) -> Floats:
    return hits.sum(0) / edges.sum() if edges.sum() else np.full(hits.shape[1:], np.nan)


def units(note: str) -> dict[str, str]:
    """What each score counts in; `note` says of how much."""
    found = {name: f"{unit}; {note}" for name, unit in UNITS.items()}
    return found | {
        f"{name}{BY_SEED}": f"{UNITS[name]}; from the lowest seed to the highest" for name in (UUAS, ROOT_FOUND)
    }


def scores_of(lessons: TreeLessons, predict: Predict, *, legacy: bool = False) -> Scores:
    """The scores of what is predicted for each sentence."""
    rows = [_sentence(lessons, place, *predict(place), legacy) for place in range(len(lessons.entries))]
    hits, edges, distance, root, depth = (np.array(column, np.float64) for column in zip(*rows, strict=True))
    return Scores(hits, edges, distance, root, depth, np.array(lessons.lengths))


def _sentence(
    lessons: TreeLessons, place: int, distances: Numbers, depths: Numbers, legacy: bool
) -> tuple[Numbers, int, Numbers, Numbers, Numbers]:
    entry = lessons.entries[place]
    heads, words = gold_heads(entry), scored_words(entry, legacy=legacy)
    gold = gold_edges(entry, words)
    counted = distances[..., words, :][..., words]
    nothing = np.full(distances.shape[:2], np.nan)
    root = nothing
    if words.any():
        chosen = np.flatnonzero(words)[depths[..., words].argmin(-1)]
        root = (chosen == heads.index(ROOT)).astype(np.float64)
    hits = shared_edges(spanning_trees(counted), gold)
    if not SHORTEST <= len(heads) <= LONGEST:
        return hits, len(gold), nothing, root, nothing
    by_word = _correlation(distances, tree_distances(heads))
    return hits, len(gold), _mean(np.moveaxis(by_word, -1, 0)), root, _correlation(depths, tree_depths(heads))


def _correlation(predicted: Numbers, gold: Numbers) -> Numbers:
    """(...,) over the last axis, all words counted."""
    import torch

    from bertology.maths.rank_correlation import spearman

    first, second = (torch.from_numpy(np.ascontiguousarray(values, np.float32)) for values in (predicted, gold))
    return spearman(first, second, torch.ones(predicted.shape[-1], dtype=torch.bool)).double().numpy()


def _mean(values: Numbers) -> Numbers:
    """Over the first axis, what is not a number left out; NaN where nothing else is there."""
    there = np.isfinite(values)
    count = there.sum(0)
    return np.where(count, np.where(there, values, 0.0).sum(0) / np.maximum(count, 1), np.nan)


def by_probes(probes: Probes, lessons: TreeLessons, rank: int) -> Predict:
    """What fitted probes of one rank predict."""
    import torch

    device = probes.weights.device

    def predict(place: int) -> tuple[Numbers, Numbers]:
        states = torch.from_numpy(np.array(lessons.states[place], np.float32)).to(device)
        return probes.distances(states, rank).cpu().numpy(), probes.depths(states, rank).cpu().numpy()

    return predict


def by_chain(lessons: TreeLessons) -> Predict:
    """Every word hangs on the one before it: distance is how far apart words stand, depth their place."""

    def predict(place: int) -> tuple[Numbers, Numbers]:
        places = np.arange(lessons.lengths[place], dtype=np.float32)
        return np.abs(places[:, None] - places)[None, None], places[None, None]

    return predict


def everywhere(measures: dict[str, Estimates], layers: int) -> dict[str, Estimates]:
    """The first layer's estimates at every one of so many layers: a baseline that does not depend on the layer."""
    return {name: estimates[0].everywhere((layers,)) for name, estimates in measures.items()}
