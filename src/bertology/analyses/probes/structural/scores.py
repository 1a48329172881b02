"""Scores of structural probes: how well predicted distances and depths recover the tree (hewitt2019structural)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertology.analyses.structural_probing.dataset import TreeDataset, gold_edges, gold_governors, scored_word_mask
from bertology.analyses.structural_probing.probe import StructuralProbes
from bertology.arrays import Array, FloatArray, IntArray
from bertology.corpus.sentence import ROOT
from bertology.estimates.estimate import Estimates
from bertology.estimates.resampling import (
    bootstrap_group_mean,
    bootstrap_mean,
    bootstrap_proportion,
    bootstrap_sentences_and_seeds,
    exact_where_unanimous,
    range_over_seeds,
    ratio,
)
from bertology.lazy import torch
from bertology.numerics.rank_correlation import spearman
from bertology.numerics.spanning_trees import shared_edges, spanning_trees, tree_depths, tree_distances

PredictTree = Callable[[int], tuple[Array, Array]]
"""From the index of a sentence, (layer, seed, word, word) squared distances and (layer, seed, word) depths."""

UUAS, DISTANCE, ROOT_ACCURACY, DEPTH = "UUAS", "distance Spearman", "root accuracy", "depth Spearman"
UUAS_RANGE, ROOT_ACCURACY_RANGE = (f"{name} (range over seeds)" for name in (UUAS, ROOT_ACCURACY))
UNITS = {
    UUAS: "proportion of undirected edges, 0 to 1",
    DISTANCE: "Spearman correlation, -1 to 1",
    ROOT_ACCURACY: "proportion of sentences, 0 to 1",
    DEPTH: "Spearman correlation, -1 to 1",
}
RANGE_UNITS = {UUAS_RANGE: UNITS[UUAS], ROOT_ACCURACY_RANGE: UNITS[ROOT_ACCURACY]}
MIN_WORDS, MAX_WORDS = 5, 50
"""Lengths of the sentences that count in correlations."""


@dataclass(frozen=True)
class StructuralScores:
    """(sentence, layer, seed) scores, NaN where undefined; `n_edges` and `lengths` (words) are (sentence,).

    `rows` are the positions of the sentences among the `n_rows` ones that are resampled. Skipped sentences are drawn as
    well and count nowhere, so that models that skip other sentences are resampled together.
    """

    correct_edges: FloatArray
    n_edges: FloatArray
    distance_spearman: FloatArray
    root_correct: FloatArray
    depth_spearman: FloatArray
    lengths: IntArray
    rows: tuple[int, ...]
    n_rows: int

    def measures(self, *, seed: int) -> dict[str, Estimates]:
        """(layer,) estimates of the mean over seeds, with intervals over sentences."""
        correct_edges, n_edges = self._in_rows(self.correct_edges.mean(2), 0.0), self._in_rows(self.n_edges, 0.0)
        distance, root, depth = (
            self._in_rows(values.mean(2), np.nan)
            for values in (self.distance_spearman, self.root_correct, self.depth_spearman)
        )
        lengths = self._in_rows(self.lengths, 0)
        return {
            UUAS: bootstrap_proportion(correct_edges, n_edges[:, None], seed=seed),
            DISTANCE: bootstrap_group_mean(distance, lengths, seed=seed),
            ROOT_ACCURACY: exact_where_unanimous(bootstrap_mean(root, seed=seed)),
            DEPTH: bootstrap_group_mean(depth, lengths, seed=seed),
        }

    def _in_rows(self, values: NDArray[Any], skipped: float) -> NDArray[Any]:
        """(row, ...) values of (sentence, ...) ones, with a value for skipped sentences."""
        by_row = np.full((self.n_rows, *values.shape[1:]), skipped, values.dtype)
        by_row[list(self.rows)] = values
        return by_row

    def __sub__(self, other: StructuralScores) -> StructuralScores:
        """Differences to other scores of the same sentences, which can be averaged like scores."""
        return replace(
            self,
            correct_edges=self.correct_edges - other.correct_edges,
            distance_spearman=self.distance_spearman - other.distance_spearman,
            root_correct=self.root_correct - other.root_correct,
            depth_spearman=self.depth_spearman - other.depth_spearman,
        )

    def measures_over_seeds(self, *, seed: int) -> dict[str, Estimates]:
        """(layer,) estimates like `measures`, with intervals over sentences and seeds."""
        every_sentence = np.zeros_like(self.lengths)
        n_edges = np.broadcast_to(self.n_edges[:, None, None], self.correct_edges.shape)
        return {
            UUAS: _bootstrap_groups(self.correct_edges, n_edges, every_sentence, seed),
            DISTANCE: _bootstrap_groups(self.distance_spearman, None, self.lengths, seed),
            ROOT_ACCURACY: _bootstrap_groups(self.root_correct, None, every_sentence, seed),
            DEPTH: _bootstrap_groups(self.depth_spearman, None, self.lengths, seed),
        }

    def ranges(self) -> dict[str, Estimates]:
        """(layer,) ranges over seeds of the scores of single probes."""
        n_edges = self.n_edges.sum()
        uuas = self.correct_edges.sum(0) / n_edges if n_edges else np.full(self.correct_edges.shape[1:], np.nan)
        ranges: dict[str, Estimates] = {}
        for name, values in ((UUAS_RANGE, uuas), (ROOT_ACCURACY_RANGE, _mean(self.root_correct))):
            estimates = range_over_seeds(values.T)
            ranges[name] = estimates.with_n(np.where(np.isfinite(estimates.value), estimates.n, 0))
        return ranges


def stack_scores(scores: Sequence[StructuralScores]) -> StructuralScores:
    """Scores of different seeds on the same sentences, as one."""
    correct_edges, distance_spearman, root_correct, depth_spearman = (
        np.concatenate(arrays, 2)
        for arrays in zip(
            *((s.correct_edges, s.distance_spearman, s.root_correct, s.depth_spearman) for s in scores), strict=True
        )
    )
    return replace(
        scores[0],
        correct_edges=correct_edges,
        distance_spearman=distance_spearman,
        root_correct=root_correct,
        depth_spearman=depth_spearman,
    )


def _bootstrap_groups(values: Array, denominators: Array | None, groups: IntArray, seed: int) -> Estimates:
    """(layer,) mean over groups of the ratio in each group, of (sentence, layer, seed) values; NaN is not measured."""
    measured = np.isfinite(values)
    if not measured.any():
        return Estimates.empty(values.shape[1])
    totals = measured if denominators is None else np.where(measured, denominators, 0.0)
    in_group = groups[:, None] == np.unique(groups[measured.any((1, 2))])
    sums = np.stack([np.where(measured, values, 0.0), totals], -1).astype(np.float64)  # sentence, layer, seed, 2
    by_group = sums.transpose(2, 0, 1, 3)[:, :, :, None] * in_group[None, :, None, :, None]

    def mean_of_groups(counts: FloatArray) -> FloatArray:
        return _mean(np.moveaxis(ratio(counts[..., 0], counts[..., 1], empty=np.nan), -1, 0))

    return bootstrap_sentences_and_seeds(by_group, mean_of_groups, seed=seed)


def score_trees(dataset: TreeDataset, predict: PredictTree, *, legacy: bool = False) -> StructuralScores:
    """The scores of the predicted trees of all sentences."""
    rows = [_score_sentence(dataset, index, *predict(index), legacy) for index in range(len(dataset.inputs))]
    correct_edges, n_edges, distance, root, depth = (np.array(column, np.float64) for column in zip(*rows, strict=True))
    lengths = np.array(dataset.lengths)
    return StructuralScores(correct_edges, n_edges, distance, root, depth, lengths, dataset.rows, dataset.n_rows)


def _score_sentence(
    dataset: TreeDataset, index: int, distances: Array, depths: Array, legacy: bool
) -> tuple[Array, int, Array, Array, Array]:
    """Correct edges, number of edges, distance correlation, root accuracy and depth correlation."""
    recorded_input = dataset.inputs[index]
    governors, is_scored = gold_governors(recorded_input), scored_word_mask(recorded_input, legacy=legacy)
    gold = gold_edges(recorded_input, is_scored)
    undefined = np.full(distances.shape[:2], np.nan)
    root = undefined
    if is_scored.any():
        predicted_root = np.flatnonzero(is_scored)[depths[..., is_scored].argmin(-1)]
        root = (predicted_root == governors.index(ROOT)).astype(np.float64)
    correct_edges = shared_edges(spanning_trees(distances[..., is_scored, :][..., is_scored]), gold)
    if not MIN_WORDS <= len(governors) <= MAX_WORDS:
        return correct_edges, len(gold), undefined, root, undefined
    by_word = _correlation(distances, tree_distances(governors))
    depth = _correlation(depths, tree_depths(governors))
    return correct_edges, len(gold), _mean(np.moveaxis(by_word, -1, 0)), root, depth


def _correlation(predicted: Array, gold: Array) -> Array:
    """(...,) Spearman correlation over the last axis, all words included."""
    first, second = (torch.from_numpy(np.ascontiguousarray(values, np.float32)) for values in (predicted, gold))
    return spearman(first, second, torch.ones(predicted.shape[-1], dtype=torch.bool)).double().numpy()


def _mean(values: Array) -> Array:
    """The mean over the first axis, ignoring NaN; NaN if there is nothing else."""
    is_defined = np.isfinite(values)
    count = is_defined.sum(0)
    return np.where(count, np.where(is_defined, values, 0.0).sum(0) / np.maximum(count, 1), np.nan)


def probe_predictor(probes: StructuralProbes, dataset: TreeDataset, rank: int) -> PredictTree:
    """Predictions of the probes of one rank."""
    device = probes.weights.device

    def predict(index: int) -> tuple[Array, Array]:
        states = torch.from_numpy(np.array(dataset.states[index], np.float32)).to(device)
        return probes.distances(states, rank).cpu().numpy(), probes.depths(states, rank).cpu().numpy()

    return predict


def chain_baseline(dataset: TreeDataset) -> PredictTree:
    """Each word depends on the one before it: distances and depths are those of word positions."""

    def predict(index: int) -> tuple[Array, Array]:
        positions = np.arange(dataset.lengths[index], dtype=np.float32)
        return np.abs(positions[:, None] - positions)[None, None], positions[None, None]

    return predict
