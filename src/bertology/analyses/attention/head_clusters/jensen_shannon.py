"""Jensen-Shannon divergences between many distributions, as one matrix product (Vedaldi & Zisserman 2012).

With k(p, q) = ((p + q) ln (p + q) - p ln p - q ln q) / 2 the divergence in nats is ln 2 minus the sum of k over the
outcomes. k is homogeneous, so that k(p, q) = sqrt(p q) g(ln p - ln q), and g is a mixture of cosines with a rapidly
decreasing spectrum: nine features of each probability have k as their inner product, up to an error below 3.5e-5 of the
larger probability. A divergence is then half the squared distance of two feature vectors: never negative, 0 for equal
distributions, and within 7e-5 of the exact value for any length. No logarithm of a pair is needed. Most of the time is
the matrix product, so that the number of features determines the speed: two more would reduce the error to 3e-5 and
take a quarter longer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bertology.arrays import Array, FloatArray
from bertology.estimates.resampling import ratio
from bertology.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor

# The frequencies f and weights w that minimise the maximum of |g(u) - sum of w cos(f u)| exp(-|u| / 2) over u, with
# weights that sum to g(0) = ln 2; a test measures that maximum.
FREQUENCIES = (0.0, 0.26866, 0.5847, 0.98614, 1.56283)
WEIGHTS = (0.25986803, 0.32178165, 0.09237921, 0.01703707, 0.00208122)
FEATURES = 2 * len(FREQUENCIES) - 1

# Feature values computed at a time: on a CPU they should fit into its cache.
CPU_CHUNK_CELLS = 2**20
GPU_CHUNK_CELLS = 2**27
# The product is symmetric: each tile of heads is multiplied with the heads up to its last one.
HEADS_PER_TILE = 48


def jensen_shannon(rows: Tensor) -> Tensor:
    """(row, head, head) divergences in nats, 0 to ln 2, between the heads' distributions (row, head, target).

    Targets without probability in any head contribute nothing, so that padding with zeros changes nothing.
    """
    n_rows, heads, n_targets = rows.shape
    chunk_cells = CPU_CHUNK_CELLS if rows.device.type == "cpu" else GPU_CHUNK_CELLS
    chunk_size = min(max(1, chunk_cells // max(1, heads * n_targets * FEATURES)), max(1, n_rows))
    buffer = rows.new_empty(chunk_size, heads, FEATURES, n_targets)
    divergences = rows.new_empty(n_rows, heads, heads)
    for start in range(0, n_rows, chunk_size):
        chunk = rows[start : start + chunk_size].contiguous()
        features = buffer[: len(chunk)]
        _write_features(features, chunk)
        divergences[start : start + chunk_size] = _half_squared_distances(features.flatten(2))
    return divergences


def _write_features(features: Tensor, rows: Tensor) -> None:
    """Write the (row, head, feature, target) features of rows."""
    # NumPy has the same functions under the same names, and on a CPU its logarithms and cosines are much faster.
    on_cpu = rows.device.type == "cpu"
    library: Any = np if on_cpu else torch
    probabilities: Any = rows.numpy() if on_cpu else rows
    out: Any = features.numpy() if on_cpu else features
    roots = library.sqrt(probabilities)
    logarithms = library.log(library.clip(probabilities, torch.finfo(rows.dtype).tiny, None))
    library.multiply(roots, math.sqrt(WEIGHTS[0]), out=out[:, :, 0])
    for index, (frequency, weight) in enumerate(zip(FREQUENCIES[1:], WEIGHTS[1:], strict=True)):
        angles = logarithms * frequency
        scaled = roots * math.sqrt(weight)
        library.multiply(scaled, library.cos(angles), out=out[:, :, 2 * index + 1])
        library.multiply(scaled, library.sin(angles), out=out[:, :, 2 * index + 2])


def _half_squared_distances(vectors: Tensor) -> Tensor:
    """(row, head, head) from (row, head, size)."""
    heads = vectors.shape[1]
    products = vectors.new_zeros(len(vectors), heads, heads)
    for start in range(0, heads, HEADS_PER_TILE):
        end = min(heads, start + HEADS_PER_TILE)
        products[:, start:end, :end] = vectors[:, start:end] @ vectors[:, :end].mT
    squares = products.diagonal(dim1=1, dim2=2)
    lower = ((squares[:, :, None] + squares[:, None, :]) / 2 - products).clamp_(min=0).tril_(-1)
    return lower + lower.mT


N_PERMUTATIONS = 999
ROUNDING = 1e-5
"""Distances are often single precision, so that equal differences of means agree only to this relative error."""


@dataclass(frozen=True)
class GroupSeparation:
    """(..., group + 1) for each measure; the last one is over all groups.

    `within` is the mean distance between members of the group, `between` that from its members to those of other
    groups, `silhouette` the mean over its members of (b - a) / max(a, b), where a is the mean distance to the own group
    and b that to the nearest other group (Rousseeuw 1987): 1 well separated, 0 no groups, negative nearer to another
    group.
    """

    within: FloatArray
    between: FloatArray
    silhouette: FloatArray

    @property
    def difference(self) -> FloatArray:
        """`between` minus `within`."""
        return self.between - self.within


def mean_distance_to_groups(distances: Array, groups: Array) -> FloatArray:
    """(..., member, group) mean distance of each member to those of each group, without itself; NaN is skipped."""
    is_member = np.eye(int(groups.max()) + 1)[groups]
    weights = np.isfinite(distances) * (1 - np.eye(len(groups)))
    sums = (np.where(weights > 0, distances, 0.0) * weights) @ is_member
    return ratio(sums, weights @ is_member, empty=np.nan)


def group_separation(means: FloatArray, groups: Array) -> GroupSeparation:
    """The separation of groups of equal size, from (..., member, group) mean distances."""
    n_groups = means.shape[-1]
    is_own = groups[:, None] == np.arange(n_groups)
    within = means[..., is_own]
    to_others = means[..., ~is_own].reshape(*means.shape[:-1], n_groups - 1)
    nearest = to_others.min(-1)
    larger = np.maximum(within, nearest)
    silhouette = np.divide(nearest - within, larger, out=np.zeros_like(larger), where=larger > 0)
    silhouette = np.where(np.isnan(larger), np.nan, silhouette)
    weights = is_own / is_own.sum(0)
    return GroupSeparation(*(_append_mean(values @ weights) for values in (within, to_others.mean(-1), silhouette)))


def _append_mean(values: FloatArray) -> FloatArray:
    return np.concatenate([values, values.mean(-1, keepdims=True)], axis=-1)


def permuted_separation(
    distances: FloatArray, groups: Array, *, seed: int, n_permutations: int = N_PERMUTATIONS
) -> GroupSeparation:
    """(permutation, group + 1): the separation after random permutations of the members among the groups."""
    rng = np.random.default_rng(seed)
    separations: list[GroupSeparation] = []
    for _ in range(n_permutations):
        permuted = rng.permutation(groups)
        separations.append(group_separation(mean_distance_to_groups(distances, permuted), permuted))
    names = ("within", "between", "silhouette")
    return GroupSeparation(*(np.stack([getattr(separation, name) for separation in separations]) for name in names))


def permutation_p_value(observed: FloatArray, permuted: FloatArray) -> FloatArray:
    """One-sided p value that counts the observed arrangement as a permutation: never 0 (Phipson & Smyth 2010).

    A permutation of equal members gives the same difference up to rounding, and counts as at least as large.
    """
    rounding = ROUNDING * np.abs(permuted).max(0, initial=0.0)
    return (1 + (permuted >= observed - rounding).sum(0)) / (1 + len(permuted))
