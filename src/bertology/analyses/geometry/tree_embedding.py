"""How closely the distance probe reproduces tree distances, and which relations it makes too long (reif2019)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Literal, NamedTuple

import numpy as np

from bertology.analyses.declaration import analysis
from bertology.analyses.probing.dataset import WORD_SITE
from bertology.analyses.probing.train_test_split import TrainTestSplit, for_both_models
from bertology.analyses.structural_probing.dataset import TreeDataset, gold_governors
from bertology.analyses.structural_probing.probe import StructuralProbes
from bertology.analyses.structural_probing.training import StructuralProbeConfig, split_trees
from bertology.arrays import Array, BoolArray, FloatArray
from bertology.corpus.sentence import ROOT
from bertology.encoder.encoder import Encoder
from bertology.encoder.token_batch import word_annotations
from bertology.errors import Refusal
from bertology.estimates.estimate import Estimates
from bertology.estimates.resampling import bootstrap_ratio
from bertology.lazy import torch
from bertology.numerics.procrustes import rotate_onto
from bertology.numerics.spanning_trees import ancestors, tree_distances
from bertology.recording.recording import Recording
from bertology.results.illustrations import Scatter
from bertology.results.shapes import Curve, Table

NAME = "geometry/tree_embedding"
SQUARED_LENGTH, SQUARED_DISTANCE, DISTANCE = "squared edge length", "squared distance", "distance"
ALL_RELATIONS = "all relations"
EXACT_EMBEDDING, CHAIN, UNTRAINED = "exact tree embedding", "linear chain", "untrained model"
MAX_TREE_DISTANCE = 10
"""There are too few longer paths to average."""
MAX_WORDS = 20
"""Maximum length of the sentence drawn by default: longer ones are illegible."""


@analysis(
    question="How closely do distances under the structural probe match tree distances, and which relations come out "
    "too long or too short?",
    special_tokens="Special tokens: in the model's input, not analysed; a word is the mean of its tokens.",
    citations=("reif2019", "hewitt2019structural"),
    sites=(WORD_SITE,),
    annotations=("governors", "relations"),
    version=3,
)
def tree_embedding(
    recording: Recording,
    randomised: Recording | None,
    encoder: Encoder | None,
    *,
    show: Annotated[
        Literal["relations", "distances", "points"],
        "`relations` (squared edge length by relation), `distances` (by tree distance) or `points` (one sentence in "
        "the plane).",
    ] = "relations",
    min_examples: Annotated[int, "Minimum number of test edges for a relation to be reported."] = 10,
    example: Annotated[
        int, "Test sentence to draw with --show points, counted from 1 (0: the longest of at most 20 words)."
    ] = 0,
    config: StructuralProbeConfig = StructuralProbeConfig(),
    split: TrainTestSplit = TrainTestSplit(),
) -> Table | Curve | Scatter:
    """Squared distance between the two words of a tree edge under the distance probe, by relation; ideally 1.

    A tree can be embedded so that squared distances equal path lengths, with a direction of its own for each edge (a
    Pythagorean, or power-2, embedding): every edge then has the squared length 1. `squared edge length` is the mean
    over the edges of one relation (subtypes separate), pooled over test sentences and averaged over seeds. Baselines:
    the exact tree embedding; the same lengths with shuffled relations; a chain of words, in which the squared length of
    an edge is the distance between word positions; and the probe of the untrained model. `distances` gives mean squared
    and plain distances by tree distance: in a power-2 embedding the squared ones lie on a straight line, the plain ones
    on a square root. `points` shows the words of one sentence in the principal plane under the first seed's probe, with
    the edges of the tree, and the exact embedding rotated onto it. The probe is that of probes/structural; here
    punctuation is included in the probe and in the tree.
    """
    data, untrained_data = for_both_models(
        partial(split_trees, split=split, analysis_name=NAME, half_precision=config.float16),
        recording,
        None if show == "points" else randomised,
        encoder,
    )
    layer, rank = config.layer_index(data[0]), config.probe_rank(data[0])
    device = "cpu" if encoder is None else encoder.device

    def project(train: TreeDataset, test: TreeDataset, seeds: Sequence[int] = split.seeds) -> _ProjectedTrees:
        train, test = train.select_layers([layer]), test.select_layers([layer])
        return _ProjectedTrees(train, test, layer, rank, config.fit(train, ("distance",), [rank], seeds, device=device))

    if show == "points":
        index = _example_index(data[1], example)
        return _build_scatter(project(*data, seeds=[split.seed]), index)
    trees, untrained = project(*data), None if untrained_data is None else project(*untrained_data)
    if show == "distances":
        return _build_distance_curve(trees, untrained, split.seed)
    return _build_relation_table(trees, untrained, min_examples, split.seed)


@dataclass(frozen=True)
class _ProjectedTrees:
    """The test sentences projected by the distance probe of one layer."""

    train: TreeDataset
    test: TreeDataset
    layer: int
    rank: int
    probes: StructuralProbes

    def distances(self) -> list[Array]:
        """(word, word) squared distances of each sentence, averaged over seeds."""
        device = self.probes.weights.device
        states = (torch.from_numpy(np.array(states, np.float32)).to(device) for states in self.test.states)
        return [self.probes.distances(words, self.rank)[0].mean(0).cpu().double().numpy() for words in states]

    def points(self, index: int) -> Array:
        """(word, rank) projected states, for a single seed."""
        return self.test.states[index][0].astype(np.float32) @ self.probes.weights[0].cpu().numpy()

    @property
    def sample(self) -> dict[str, int]:
        """The layer, and the sizes of training and test data."""
        return {
            "layer": self.layer,
            "training sentences": len(self.train.inputs),
            "test sentences": len(self.test.inputs),
            "skipped sentences": sum(self.train.skipped.values()) + sum(self.test.skipped.values()),
        }


class _Edge(NamedTuple):
    """An edge of the tree of a sentence."""

    sentence: int
    word: int
    governor: int
    relation: str


def _build_relation_table(
    model: _ProjectedTrees, untrained: _ProjectedTrees | None, min_examples: int, seed: int
) -> Table:
    edges = _gold_edges(model.test)
    counts = Counter(edge.relation for edge in edges)
    frequent = sorted((r for r, n in counts.items() if n >= min_examples), key=lambda r: (-counts[r], r))
    rows = [ALL_RELATIONS, *frequent]
    relations = np.array([edge.relation for edge in edges])
    shuffled_relations = np.random.default_rng(seed).permutation(relations)
    word_distances = np.array([abs(edge.word - edge.governor) for edge in edges], np.float64)
    sentences = np.array([edge.sentence for edge in edges])

    def measure(lengths: Array, edge_relations: Array) -> dict[str, Estimates]:
        masks = [np.ones(len(edges), np.bool_), *(edge_relations == relation for relation in frequent)]
        return {SQUARED_LENGTH: Estimates.stack([_pooled_mean(lengths, sentences, mask, seed) for mask in masks])}

    lengths = _edge_lengths(model, edges)
    baselines = {
        EXACT_EMBEDDING: {SQUARED_LENGTH: Estimates.exact(np.ones(len(rows)))},
        "shuffled relations": measure(lengths, shuffled_relations),
        CHAIN: measure(word_distances, relations),
    }
    if untrained is not None:
        baselines[UNTRAINED] = measure(_edge_lengths(untrained, edges), relations)
    return Table(
        measures=measure(lengths, relations),
        baselines=baselines,
        units={SQUARED_LENGTH: "squared distance, at least 0 (exact: 1)"},
        sample=model.sample,
        row_names=tuple(rows),
        attributes={"n_edges": (len(edges), *(counts[relation] for relation in frequent))},
    )


def _gold_edges(dataset: TreeDataset) -> list[_Edge]:
    edges: list[_Edge] = []
    for index, recorded_input in enumerate(dataset.inputs):
        relations = word_annotations(recorded_input, "relations")
        for word, governor in enumerate(gold_governors(recorded_input)):
            if governor != ROOT:
                edges.append(_Edge(index, word, governor, relations[word] or ""))
    return edges


def _edge_lengths(projected_trees: _ProjectedTrees, edges: Sequence[_Edge]) -> Array:
    """(edge,) squared distances between word and governor."""
    distances = projected_trees.distances()
    return np.array([distances[edge.sentence][edge.word, edge.governor] for edge in edges])


def _pooled_mean(values: Array, sentences: Array, mask: BoolArray, seed: int) -> Estimates:
    """The mean of the selected values, with an interval over all sentences."""
    n_sentences = int(sentences.max()) + 1
    totals = np.bincount(sentences[mask], values[mask], minlength=n_sentences)
    return bootstrap_ratio(totals, np.bincount(sentences[mask], minlength=n_sentences), seed=seed)


def _build_distance_curve(model: _ProjectedTrees, untrained: _ProjectedTrees | None, seed: int) -> Curve:
    gold = [tree_distances(gold_governors(recorded_input)) for recorded_input in model.test.inputs]
    path_lengths = np.arange(1, min(MAX_TREE_DISTANCE, max(int(paths.max()) for paths in gold)) + 1)
    counts = np.array([[(paths == length).sum() for length in path_lengths] for paths in gold], np.float64)

    def measure(squared_distances: Sequence[Array]) -> dict[str, Estimates]:
        estimates: dict[str, Estimates] = {}
        for name, power in ((SQUARED_DISTANCE, 1.0), (DISTANCE, 0.5)):
            totals = [
                [(squared[paths == length] ** power).sum() for length in path_lengths]
                for squared, paths in zip(squared_distances, gold, strict=True)
            ]
            estimates[name] = bootstrap_ratio(np.array(totals), counts, seed=seed)
        return estimates

    positions = [np.arange(len(paths)) for paths in gold]
    baselines = {
        EXACT_EMBEDDING: {
            SQUARED_DISTANCE: Estimates.exact(path_lengths),
            DISTANCE: Estimates.exact(np.sqrt(path_lengths)),
        },
        CHAIN: measure([np.abs(np.subtract.outer(words, words)).astype(float) for words in positions]),
    }
    if untrained is not None:
        baselines[UNTRAINED] = measure(untrained.distances())
    return Curve(
        measures=measure(model.distances()),
        baselines=baselines,
        units={SQUARED_DISTANCE: "squared distance, at least 0", DISTANCE: "distance, at least 0"},
        sample=model.sample,
        x_name="tree distance",
        x=path_lengths.astype(np.float64),
    )


def _example_index(test: TreeDataset, example: int) -> int:
    """The index of the sentence to draw, from its number in the corpus; 0: the longest legible one."""
    lengths = test.lengths
    if not example:
        legible = [index for index, length in enumerate(lengths) if length <= MAX_WORDS]
        if legible:
            return max(legible, key=lambda index: lengths[index])
        return min(range(len(lengths)), key=lambda index: lengths[index])
    indices = {recorded_input.example_index + 1: index for index, recorded_input in enumerate(test.inputs)}
    if example not in indices:
        first = ", ".join(map(str, sorted(indices)[:10]))
        raise Refusal(
            f"Sentence {example} is not a test sentence",
            f"one of {first}{' ...' if len(indices) > 10 else ''}",
            "Choose one with --example, or leave it out",
        )
    return indices[example]


def _build_scatter(projected_trees: _ProjectedTrees, index: int) -> Scatter:
    recorded_input = projected_trees.test.inputs[index]
    governors = gold_governors(recorded_input)
    points = principal_plane(projected_trees.points(index))
    exact_points = rotate_onto(principal_plane(pythagorean_embedding(governors)), points)
    words, n_words = recorded_input.text.words, len(governors)
    edges = [(word, governor) for word, governor in enumerate(governors) if governor != ROOT]
    return Scatter(
        points=np.concatenate([points, exact_points]),
        labels=(*words, *words),
        groups=(f"layer {projected_trees.layer}",) * n_words + (EXACT_EMBEDDING,) * n_words,
        axis_names=("first component", "second component"),
        edges=(*edges, *((a + n_words, b + n_words) for a, b in edges)),
    )


def pythagorean_embedding(governors: Sequence[int]) -> FloatArray:
    """(node, node) points with squared distances equal to path lengths (reif2019).

    Each node is one step from its governor along an axis of its own; the axis of a root stays 0.
    """
    points = ancestors(governors).astype(np.float64)
    points[:, [node for node, governor in enumerate(governors) if governor < 0]] = 0
    return points


def principal_plane(points: Array) -> FloatArray:
    """(point, 2) centred projection on the two principal components; zeros for missing components."""
    centred = np.asarray(points, np.float64) - np.mean(points, 0, dtype=np.float64)
    left, singular_values, _ = np.linalg.svd(centred, full_matrices=False)
    components = left[:, :2] * singular_values[:2]
    plane = np.zeros((len(centred), 2))
    plane[:, : components.shape[1]] = components
    # The sign of a singular vector is arbitrary: make the largest coordinate positive.
    for axis in range(2):
        largest = np.abs(plane[:, axis]).argmax()
        plane[:, axis] *= -1 if plane[largest, axis] < 0 else 1
    return plane
