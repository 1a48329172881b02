"""Head clusters: do heads of a layer attend alike, and which heads form clusters (Clark et al. 2019, section 6)?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from annotated_types import Interval

from bertology.analyses.attention.head_clusters.jensen_shannon import (
    GroupSeparation,
    group_separation,
    jensen_shannon,
    mean_distance_to_groups,
    permutation_p_value,
    permuted_separation,
)
from bertology.analyses.declaration import analysis
from bertology.analyses.head_grids import UNTRAINED_MODEL
from bertology.arrays import Array, FloatArray
from bertology.errors import Refusal
from bertology.estimates.estimate import Estimates
from bertology.estimates.resampling import bootstrap_ratio, percentile_interval, ratio, resampled_means
from bertology.lazy import torch
from bertology.recording.recording import Recording
from bertology.recording.sites import ReducedSite
from bertology.results.illustrations import Scatter
from bertology.results.shapes import Head, Matrix, Table
from bertology.statistics.batch_features import MIN_MASS, SpecialTokens

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attention_hook import LayerActivations
    from bertology.encoder.token_batch import TokenBatch

HeadClustersView = Literal["layers", "clusters", "points", "matrix"]

SMOOTHING = 0.001
WITHIN, BETWEEN, DIFFERENCE = "divergence within layer", "divergence between layers", "between - within"
SILHOUETTE, P_VALUE = "silhouette", "p (permutation)"
MEASURES = (WITHIN, BETWEEN, DIFFERENCE, SILHOUETTE)
N_HEADS, CLUSTER_DIVERGENCE, SAME_LAYER = "number of heads", "divergence within cluster", "same-layer pairs"
DIVERGENCE = "Jensen-Shannon divergence"
ALL_PAIRS, SHUFFLED_LAYERS = "all head pairs", "shuffled layers"
MDS_ITERATIONS, MDS_TOLERANCE = 1000, 1e-12


@cache
def head_divergence_site(
    sqrt: bool = False, legacy: bool = False, special_tokens: SpecialTokens = "include"
) -> ReducedSite:
    """The site with each head's divergence from every head of the model, averaged over attention rows."""
    flags = {"sqrt": sqrt, "smoothed": legacy, "non_special": special_tokens == "exclude"}
    suffix = "".join(f".{name}" for name, is_set in flags.items() if is_set)

    def reduce(layer: LayerActivations, batch: TokenBatch, _: None) -> Tensor:
        mask = batch.token_mask if special_tokens == "include" else batch.non_special_mask
        return torch.stack(
            [
                _head_divergences(attention, mask[row].nonzero().squeeze(-1), sqrt, legacy)
                for row, attention in enumerate(layer.attention)
            ]
        )

    return ReducedSite(
        f"attention.divergences{suffix}",
        ("other_head",),
        f"mean {'root ' * sqrt}Jensen-Shannon divergence of each head from every head of the model",
        reduce,
        across_layers=True,
    )


def _head_divergences(attention: Tensor, positions: Tensor, sqrt: bool, legacy: bool) -> Tensor:
    """(head, head) from the (head, from, to) attention of one input; NaN if two heads have no row in common."""
    rows = attention[:, positions][:, :, positions].transpose(0, 1)  # (from, head, to)
    mass = rows.sum(-1, keepdim=True)
    rows = rows / mass.clamp(min=MIN_MASS)
    if legacy:
        rows = (1 - SMOOTHING) * rows + SMOOTHING / max(1, len(positions))
    divergences = jensen_shannon(rows)
    divergences = divergences.sqrt() if sqrt else divergences
    row_mask = (mass > MIN_MASS).to(divergences.dtype)
    pair_mask = row_mask * row_mask.mT
    return (divergences * pair_mask).sum(0) / pair_mask.sum(0)


@dataclass(frozen=True)
class _HeadDistances:
    """Distances between heads: (sentence, head, layer) to layers, and (head, head) means over sentences.

    `layers` is the layer of each head, `weights` the weight of each sentence.
    """

    to_layers: FloatArray
    mean: FloatArray
    layers: Array
    weights: FloatArray

    @property
    def n_sentences(self) -> int:
        """The number of sentences with a value."""
        return int(np.isfinite(self.to_layers).any((1, 2)).sum())


def _head_distances(recording: Recording, site: ReducedSite, legacy: bool) -> _HeadDistances:
    encoder = recording.encoder
    if encoder.layers < 2 or encoder.heads < 2:
        raise Refusal(
            f"{encoder.name} has {encoder.layers} layers of {encoder.heads} heads",
            "at least two layers of two heads to compare",
            "Choose a larger model",
        )
    layers = np.repeat(np.arange(encoder.layers), encoder.heads)
    weights = _sentence_weights(recording, legacy)
    to_layers = np.empty((len(recording), len(layers), encoder.layers))
    sums, total = np.zeros((2, len(layers), len(layers)))
    for index, (array, weight) in enumerate(zip(recording[site], weights, strict=True)):
        values = array.reshape(len(layers), len(layers)).astype(np.float64)
        to_layers[index] = mean_distance_to_groups(values, layers)
        is_defined = np.isfinite(values)
        sums += weight * np.where(is_defined, values, 0.0)
        total += weight * is_defined
    return _HeadDistances(to_layers, ratio(sums, total, empty=np.nan), layers, weights)


@analysis(
    question="Do heads of the same layer attend more alike than heads of different layers?",
    special_tokens="Special tokens: included (--special-tokens exclude removes them and renormalises).",
    citations=("clark2019", "vedaldi2012"),
    sites=lambda options: (head_divergence_site(options["sqrt"], options["legacy"], options["special_tokens"]),),
    version=2,
)
def head_clusters(
    recording: Recording,
    randomised: Recording | None,
    *,
    show: Annotated[
        HeadClustersView,
        "`layers` (divergence within and between layers), `clusters` (average linkage), `points` (heads in the plane, "
        "by multidimensional scaling) or `matrix` (every pair of heads).",
    ] = "layers",
    sqrt: Annotated[bool, "Use the square root of the Jensen-Shannon divergence, which is a metric."] = False,
    special_tokens: Annotated[
        SpecialTokens,
        "`include` special tokens, or `exclude` them as sources and targets and renormalise the rows.",
    ] = "include",
    legacy: Annotated[
        bool,
        "Reproduce the released code: rows smoothed with 0.001 of the uniform distribution, and tokens instead of "
        "sentences weighted equally.",
    ] = False,
    n_clusters: Annotated[int, Interval(ge=0, le=10_000), "Number of clusters (0: as many as layers)."] = 0,
    seed: Annotated[int, "Random seed (shuffled layers, bootstrap)."] = 0,
) -> Table | Scatter | Matrix:
    """Mean Jensen-Shannon divergence between heads in nats: 0 equal attention, ln 2 (0.693) no target in common.

    The divergence of the rows of two heads, averaged over the rows of a pattern, then over sentences. `divergence
    within layer` is the mean over pairs of its heads, `divergence between layers` the mean from its heads to those of
    other layers, `silhouette` how much nearer a head is to its own layer than to the nearest other one. `p
    (permutation)` is the proportion of permutations of heads among layers with at least as large a difference; the
    interval of `shuffled layers` is that of single permutations. Intervals of the model are over sentences. Heads with
    uniform attention would have divergence 0. The released code of Clark et al. smooths rows and sums over all tokens
    of the corpus; here rows are exact (up to 0.00007, square roots up to 0.001) and sentences have equal weight.
    Multidimensional scaling starts from classical scaling and is not random.
    """
    site = head_divergence_site(sqrt, legacy, special_tokens)
    distances = _head_distances(recording, site, legacy)
    if show == "matrix":
        return _build_matrix(recording, randomised, site, legacy, sqrt, seed)
    if show == "points":
        return Scatter(
            points=plane_points(_fill_missing(distances.mean)),
            labels=tuple(_head_names(recording)),
            groups=tuple(f"layer {layer + 1}" for layer in distances.layers),
        )
    if show == "clusters":
        return _cluster_table(recording, distances, n_clusters or recording.encoder.layers, sqrt)
    untrained = None if randomised is None else _head_distances(randomised, site, legacy)
    return _build_table(distances, untrained, sqrt, seed)


def plane_points(distances: FloatArray) -> FloatArray:
    """(point, 2) coordinates with minimal stress (SMACOF), from classical multidimensional scaling."""
    from sklearn.manifold import ClassicalMDS, smacof

    # A negative eigenvalue, of rounding or of a non-Euclidean distance, has no coordinates; equal heads have no stress.
    with np.errstate(invalid="ignore"):
        start = np.nan_to_num(ClassicalMDS(metric="precomputed").fit_transform(distances))
        return np.asarray(smacof(distances, init=start, n_init=1, max_iter=MDS_ITERATIONS, eps=MDS_TOLERANCE)[0])


def _build_table(distances: _HeadDistances, untrained: _HeadDistances | None, sqrt: bool, seed: int) -> Table:
    layers = distances.to_layers.shape[-1]
    measures = _estimates(distances, seed)
    permuted = permuted_separation(_fill_missing(distances.mean), distances.layers, seed=seed)
    p = permutation_p_value(measures[DIFFERENCE].value, permuted.difference)
    is_defined = np.isfinite(measures[DIFFERENCE].value)
    n = np.where(is_defined, distances.n_sentences, 0)
    measures[P_VALUE] = Estimates.exact(np.where(is_defined, p, np.nan), n)
    shuffled: dict[str, Estimates] = {}
    for name, values in _by_measure(permuted).items():
        low, high = percentile_interval(values)  # of single permutations
        shuffled[name] = Estimates(value=values.mean(0), low=low, high=high, n=np.full(layers + 1, len(values)))
    expected = np.full(layers + 1, 0.5)
    shuffled[P_VALUE] = Estimates(value=expected, low=expected - 0.475, high=expected + 0.475, n=n)
    baselines = {SHUFFLED_LAYERS: shuffled}
    if untrained is not None:
        baselines[UNTRAINED_MODEL] = _estimates(untrained, seed)
    nats = _divergence_unit(sqrt)
    return Table(
        measures=measures,
        baselines=baselines,
        units={
            WITHIN: nats,
            BETWEEN: nats,
            DIFFERENCE: "root nats, -0.833 to 0.833" if sqrt else "nats, -ln 2 to ln 2",
            SILHOUETTE: "silhouette, -1 to 1",
            P_VALUE: "proportion of permutations, 0 to 1",
        },
        row_names=(*(f"layer {layer + 1}" for layer in range(layers)), "all layers"),
        attributes={"layer": (*range(1, layers + 1), None)},
    )


def _by_measure(separation: GroupSeparation) -> dict[str, FloatArray]:
    return {
        WITHIN: separation.within,
        BETWEEN: separation.between,
        DIFFERENCE: separation.difference,
        SILHOUETTE: separation.silhouette,
    }


def _estimates(distances: _HeadDistances, seed: int) -> dict[str, Estimates]:
    weights = np.isfinite(distances.to_layers) * distances.weights[:, None, None]
    sums = (np.where(weights > 0, distances.to_layers, 0.0) * weights).sum(0)
    values = _by_measure(group_separation(ratio(sums, weights.sum(0), empty=np.nan), distances.layers))
    resampled_distances = resampled_means(distances.to_layers, distances.weights, seed=seed)
    resampled = _by_measure(group_separation(resampled_distances, distances.layers))
    n_rows = len(distances.to_layers)
    return {name: _interval(values[name], resampled[name], distances.n_sentences, n_rows) for name in MEASURES}


def _interval(value: FloatArray, resampled: FloatArray, n_sentences: int, n_rows: int) -> Estimates:
    """A percentile interval that contains the value: a silhouette takes a minimum, which is biased in resamples."""
    is_defined = np.isfinite(value)
    n = np.where(is_defined, n_sentences, 0)
    if n_sentences < 2:
        missing = np.full_like(value, np.nan)
        return Estimates(value=value, low=missing, high=missing, n=n)
    low, high = percentile_interval(np.where(is_defined, resampled, 0.0))
    low, high = (np.where(is_defined, bound, np.nan) for bound in (np.fmin(low, value), np.fmax(high, value)))
    return Estimates(value=value, low=low, high=high, n=n).with_resampled(resampled, n_rows)


def _cluster_table(recording: Recording, head_distances: _HeadDistances, n_clusters: int, sqrt: bool) -> Table:
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    distances = _fill_missing(head_distances.mean)
    assigned = fcluster(linkage(squareform(distances, checks=False), "average"), n_clusters, "maxclust")
    clusters = [np.flatnonzero(assigned == number) for number in np.unique(assigned)]
    clusters.sort(key=lambda members: (-len(members), members[0]))
    same_layer = (head_distances.layers[:, None] == head_distances.layers).astype(float)
    pairs = [tuple(members[side] for side in np.triu_indices(len(members), 1)) for members in clusters]
    divergences, same = ([matrix[cluster] for cluster in pairs] for matrix in (distances, same_layer))
    n_pairs = np.array([len(values) for values in divergences], np.int64)
    sizes = np.array([float(len(members)) for members in clusters])
    n_heads = len(distances)

    def constant(value: float) -> Estimates:
        return Estimates.exact(np.full(len(clusters), value))

    heads = _head_names(recording)
    return Table(
        measures={
            N_HEADS: Estimates.exact(sizes, head_distances.n_sentences),
            CLUSTER_DIVERGENCE: Estimates.exact(_means(divergences), n_pairs),
            SAME_LAYER: Estimates.exact(_means(same), n_pairs),
        },
        baselines={
            ALL_PAIRS: {CLUSTER_DIVERGENCE: constant(distances[np.triu_indices(n_heads, 1)].mean())},
            "chance": {
                N_HEADS: constant(n_heads / len(clusters)),
                SAME_LAYER: constant((recording.encoder.heads - 1) / (n_heads - 1)),
            },
        },
        units={
            N_HEADS: "heads",
            CLUSTER_DIVERGENCE: _divergence_unit(sqrt),
            SAME_LAYER: "proportion of head pairs, 0 to 1",
        },
        row_names=tuple(f"cluster {number}" for number in range(1, len(clusters) + 1)),
        attributes={"heads": tuple(", ".join(heads[index] for index in members) for members in clusters)},
    )


def _means(values: Sequence[FloatArray]) -> FloatArray:
    return np.array([group.mean() if len(group) else np.nan for group in values])


def _build_matrix(
    recording: Recording, randomised: Recording | None, site: ReducedSite, legacy: bool, sqrt: bool, seed: int
) -> Matrix:
    names = tuple(_head_names(recording))
    estimates = _mean_divergences(recording, site, legacy, seed)
    mean = estimates.value[np.triu_indices(len(names), 1)].mean()
    baselines = {ALL_PAIRS: {DIVERGENCE: Estimates.exact(np.full(estimates.shape, mean))}}
    if randomised is not None:
        baselines[UNTRAINED_MODEL] = {DIVERGENCE: _mean_divergences(randomised, site, legacy, seed)}
    return Matrix(
        measures={DIVERGENCE: estimates},
        baselines=baselines,
        units={DIVERGENCE: _divergence_unit(sqrt)},
        row_names=names,
        column_names=names,
    )


def _mean_divergences(recording: Recording, site: ReducedSite, legacy: bool, seed: int) -> Estimates:
    """(head, head) mean divergences."""
    n_heads = recording.encoder.layers * recording.encoder.heads
    values = np.stack([array.reshape(n_heads, n_heads) for array in recording[site]])
    weights = np.isfinite(values) * _sentence_weights(recording, legacy)[:, None, None]
    return bootstrap_ratio(np.where(weights > 0, values, 0.0) * weights, weights, seed=seed)


def _sentence_weights(recording: Recording, legacy: bool) -> FloatArray:
    """(sentence,) weights: 1, or the number of tokens."""
    return np.array([len(recorded_input.tokens) if legacy else 1.0 for recorded_input in recording.inputs])


def _fill_missing(mean: FloatArray) -> FloatArray:
    """Distances without NaN: two heads that were never comparable have the mean distance of all heads."""
    filled = np.where(np.isfinite(mean), mean, np.nanmean(mean) if np.isfinite(mean).any() else 0.0)
    np.fill_diagonal(filled, 0.0)
    return filled


def _head_names(recording: Recording) -> list[str]:
    return [str(Head(*index)) for index in np.ndindex(recording.encoder.layers, recording.encoder.heads)]


def _divergence_unit(sqrt: bool) -> str:
    return "root nats, 0 to 0.833" if sqrt else "nats, 0 to ln 2"
