"""Similarity of two kernels over the same observations: RSA (kriegeskorte2008) and CKA (kornblith2019).

Pearson RSA and CKA are functions of a few sums over all pairs of observations (`KernelSums`), which are computed
without storing all pairs. For a kernel that is an inner product of features, sums over n x n pairs are sums over
feature x feature products (the sum of (x_i . x_j)(y_i . y_j) is the squared norm of X'Y); other kernels are evaluated a
few rows at a time. Spearman RSA counts pairs in bins. Every similarity is a (1 + group,) array: for all observations,
then without each group of them (jackknife), or only for all if there is one group; NaN if a kernel is constant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from bertology.arrays import Array, BoolArray, FloatArray
from bertology.estimates.jackknife import GroupIndices

KernelRows = Callable[[slice], FloatArray]
"""The function from a slice of observations to (selected, observation) rows of the kernel matrix."""

CHUNK_CELLS = 2**21
MIN_RELATIVE_VARIANCE = 1e-12
"""Relative to the mean square: a kernel with less variance is constant up to rounding."""
N_BINS, N_FINE_BINS = 256, 2**16
MIN_RANK_VARIANCE = 1e-12


@dataclass(frozen=True)
class Marginals:
    """(1 + group, observation) sums of one kernel, for all observations and without each group.

    `rows` are sums over the other observations, `diagonal` the kernel of an observation with itself; both are 0 for
    observations left out.
    """

    rows: FloatArray
    diagonal: FloatArray


@dataclass(frozen=True)
class KernelSums:
    """Marginals of two kernels, and sums of products over ordered pairs of different observations."""

    first: Marginals
    second: Marginals
    cross: FloatArray
    first_squared: FloatArray
    second_squared: FloatArray
    count: FloatArray


def pearson(sums: KernelSums) -> FloatArray:
    """Pearson correlation of the two kernels over pairs of different observations, -1 to 1.

    Equal to that over the upper triangles, because both kernels are symmetric.
    """
    n_pairs = sums.count * (sums.count - 1)
    means = [marginals.rows.sum(1) / n_pairs for marginals in (sums.first, sums.second)]
    mean_squares = [sums.first_squared / n_pairs, sums.second_squared / n_pairs]
    variances = [square - mean**2 for square, mean in zip(mean_squares, means, strict=True)]
    varies = [v > MIN_RELATIVE_VARIANCE * square for v, square in zip(variances, mean_squares, strict=True)]
    covariance = sums.cross / n_pairs - means[0] * means[1]
    return _ratio_to_root(covariance, variances[0] * variances[1], varies[0] & varies[1])


def cka(sums: KernelSums, *, unbiased: bool = False) -> FloatArray:
    """Centred kernel alignment: 0 nothing in common, 1 equal up to scale.

    The plain form is above 0 by chance, the more so the more features an observation has. The unbiased form estimates
    each part of the ratio without the diagonals (song2012) and can be slightly below 0.
    """
    hsic = _unbiased_hsic if unbiased else _hsic
    first = hsic(sums.first, sums.first, sums.first_squared, sums.count)
    second = hsic(sums.second, sums.second, sums.second_squared, sums.count)
    first_varies = first > MIN_RELATIVE_VARIANCE * np.square(sums.first.diagonal).sum(1)
    second_varies = second > MIN_RELATIVE_VARIANCE * np.square(sums.second.diagonal).sum(1)
    shared = hsic(sums.first, sums.second, sums.cross, sums.count)
    return _ratio_to_root(shared, first * second, first_varies & second_varies)


def _hsic(first: Marginals, second: Marginals, products: FloatArray, n: FloatArray) -> FloatArray:
    """tr(K H L H), the Hilbert-Schmidt independence criterion up to a factor, from sums of products of two kernels."""
    rows = first.rows + first.diagonal, second.rows + second.diagonal
    total = products + (first.diagonal * second.diagonal).sum(1)
    return total - 2 / n * (rows[0] * rows[1]).sum(1) + rows[0].sum(1) * rows[1].sum(1) / n**2


def _unbiased_hsic(first: Marginals, second: Marginals, products: FloatArray, n: FloatArray) -> FloatArray:
    """The unbiased estimate of the criterion up to a factor; needs four observations."""
    totals = first.rows.sum(1) * second.rows.sum(1)
    with np.errstate(divide="ignore", invalid="ignore"):
        hsic = products + totals / ((n - 1) * (n - 2)) - 2 / (n - 2) * (first.rows * second.rows).sum(1)
    return np.where(n > 3, hsic, np.nan)


def _ratio_to_root(numerator: FloatArray, squared_denominator: FloatArray, is_defined: BoolArray) -> FloatArray:
    return np.divide(
        numerator,
        np.sqrt(np.where(is_defined, squared_denominator, 1.0)),
        out=np.full_like(numerator, np.nan),
        where=is_defined,
    )


def feature_kernel_sums(first: Array, second: Array, groups: GroupIndices) -> KernelSums:
    """The sums for two inner-product kernels, from (observation, feature) arrays."""
    x, y = first.astype(np.float64), second.astype(np.float64)
    members = [np.flatnonzero(groups == group) for group in range(_n_groups(groups))]
    diagonals = [np.square(x).sum(1), np.square(y).sum(1)]

    def products(a: FloatArray, b: FloatArray, diagonal: FloatArray) -> FloatArray:
        by_group = np.stack([(a[rows].T @ b[rows]).ravel() for rows in members])
        between = by_group @ by_group.T
        between[np.diag_indices(len(members))] -= [diagonal[rows].sum() for rows in members]
        return _leave_one_group_out(between)

    return KernelSums(
        _marginals(x @ np.stack([x[rows].sum(0) for rows in members]).T, diagonals[0], groups),
        _marginals(y @ np.stack([y[rows].sum(0) for rows in members]).T, diagonals[1], groups),
        products(x, y, diagonals[0] * diagonals[1]),
        products(x, x, np.square(diagonals[0])),
        products(y, y, np.square(diagonals[1])),
        _subset_sizes(groups),
    )


def kernel_sums(first: KernelRows, second: KernelRows, groups: GroupIndices) -> KernelSums:
    """The sums for any two kernels, a few rows of their matrices at a time."""
    size, n_groups = len(groups), _n_groups(groups)
    membership = np.eye(n_groups)[groups]
    between = np.zeros((3, n_groups, n_groups))
    sums, diagonals = np.zeros((2, size, n_groups)), np.zeros((2, size))
    for chunk in _row_chunks(size):
        columns = np.arange(chunk.start, chunk.stop)
        rows = columns - chunk.start
        blocks = [first(chunk).astype(np.float64), second(chunk).astype(np.float64)]
        for index, block in enumerate(blocks):
            diagonals[index, chunk] = block[rows, columns]
            sums[index, chunk] = block @ membership
            block[rows, columns] = 0.0
        for index, (a, b) in enumerate(((0, 1), (0, 0), (1, 1))):
            between[index] += membership[chunk].T @ ((blocks[a] * blocks[b]) @ membership)
    return KernelSums(
        _marginals(sums[0], diagonals[0], groups),
        _marginals(sums[1], diagonals[1], groups),
        *(_leave_one_group_out(products) for products in between),
        count=_subset_sizes(groups),
    )


def gaussian(vectors: Array, width: float) -> KernelRows:
    """exp(-d^2 / 2 w^2), where d is the Euclidean distance and w the width."""
    squared = _squared_distances(vectors)
    return lambda chunk: np.exp(squared(chunk) / (-2 * width**2))


def negative_distance(vectors: Array) -> KernelRows:
    """The negative Euclidean distance."""
    squared = _squared_distances(vectors)
    return lambda chunk: -np.sqrt(squared(chunk))


def inner_product(vectors: Array) -> KernelRows:
    """The dot product."""
    rows = vectors.astype(np.float64)
    return lambda chunk: rows[chunk] @ rows.T


def unit_rows(vectors: Array) -> FloatArray:
    """The rows scaled to norm 1, so that their inner product is the cosine; rows of zeros stay zero."""
    rows = vectors.astype(np.float64)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True).clip(min=1e-12)


def median_distance(vectors: Array, max_rows: int = 1000) -> float:
    """The median Euclidean distance between two of the first observations."""
    rows = vectors[:max_rows]
    squared = _squared_distances(rows)(slice(0, len(rows)))
    return float(np.sqrt(np.median(squared[np.triu_indices(len(rows), 1)])))


def kernel_spearman(first: KernelRows, second: KernelRows, groups: GroupIndices) -> FloatArray:
    """Spearman correlation over pairs of different observations, accurate to about 1e-4.

    Values are put into 256 bins with equally many pairs, and pairs of a bin share a rank. Pairs are counted for each
    two bins, with and without each group, so that ranks are those of the remaining pairs.
    """
    edges = [_quantiles(kernel, len(groups)) for kernel in (first, second)]
    n_groups = _n_groups(groups)
    touching, inside = (np.zeros((n_groups, N_BINS, N_BINS)) for _ in range(2))
    for chunk in _row_chunks(len(groups)):
        is_different = _off_diagonal(chunk, len(groups))
        first_bins, second_bins = (
            np.searchsorted(kernel_edges, kernel(chunk), side="right")
            for kernel_edges, kernel in zip(edges, (first, second), strict=True)
        )
        joint = first_bins * N_BINS + second_bins
        for group in np.unique(groups[chunk]):
            rows = groups[chunk] == group
            is_inside = is_different & (groups == group)
            touching[group] += _count_pairs(joint[rows][is_different[rows]])
            inside[group] += _count_pairs(joint[rows][is_inside[rows]])
    total = touching.sum(0)
    tables = [total]
    if n_groups > 1:
        tables += [total - 2 * touched + inner for touched, inner in zip(touching, inside, strict=True)]
    return np.array([_rank_correlation(table) for table in tables])


def _row_chunks(size: int) -> Iterator[slice]:
    step = max(1, CHUNK_CELLS // size)
    return (slice(start, min(size, start + step)) for start in range(0, size, step))


def _off_diagonal(chunk: slice, size: int) -> BoolArray:
    """(row, observation) whether the two observations differ."""
    return np.arange(chunk.start, chunk.stop)[:, None] != np.arange(size)


def _count_pairs(joint_bins: Array) -> FloatArray:
    return np.bincount(joint_bins, minlength=N_BINS**2).reshape(N_BINS, N_BINS).astype(np.float64)


def _quantiles(kernel: KernelRows, size: int) -> FloatArray:
    """(N_BINS - 1,) boundaries between bins with equally many pairs, to 1 / 65,536 of the range."""
    low, high = np.inf, -np.inf
    for chunk in _row_chunks(size):
        values = kernel(chunk)[_off_diagonal(chunk, size)]
        low, high = min(low, float(values.min())), max(high, float(values.max()))
    counts = np.zeros(N_FINE_BINS)
    width = (high - low) / N_FINE_BINS
    if not width > 0:
        return np.full(N_BINS - 1, np.inf)
    for chunk in _row_chunks(size):
        fine_bins = ((kernel(chunk)[_off_diagonal(chunk, size)] - low) / width).astype(np.intp)
        counts += np.bincount(fine_bins.clip(max=N_FINE_BINS - 1), minlength=N_FINE_BINS)
    fine_bins = np.searchsorted(np.cumsum(counts) / counts.sum(), np.arange(1, N_BINS) / N_BINS)
    return np.asarray(low + (fine_bins + 1) * width, np.float64)


def _rank_correlation(table: FloatArray) -> float:
    """Pearson correlation of middle ranks, from a table of counts."""
    counts = [table.sum(1), table.sum(0)]
    n = counts[0].sum()
    ranks = [(np.cumsum(count) - count / 2) / n - 0.5 for count in counts]
    variances = [float((count * rank**2).sum()) for count, rank in zip(counts, ranks, strict=True)]
    if min(variances) <= MIN_RANK_VARIANCE * n:
        return float("nan")
    return float(ranks[0] @ table @ ranks[1] / np.sqrt(variances[0] * variances[1]))


def _squared_distances(vectors: Array) -> KernelRows:
    # Distances do not depend on the origin, but rounding does.
    rows = vectors.astype(np.float64) - vectors.mean(0, dtype=np.float64)
    squared_norms = np.square(rows).sum(1)

    def distances(chunk: slice) -> FloatArray:
        squared = squared_norms[chunk, None] + squared_norms - 2 * (rows[chunk] @ rows.T)
        columns = np.arange(*chunk.indices(len(rows)))
        squared[columns - columns[0], columns] = 0.0
        return np.maximum(squared, 0.0, out=squared)

    return distances


def _n_groups(groups: GroupIndices) -> int:
    return int(groups.max()) + 1


def _n_subsets(n_groups: int) -> int:
    return n_groups + 1 if n_groups > 1 else 1


def _subset_sizes(groups: GroupIndices) -> FloatArray:
    return (len(groups) - np.array([0, *np.bincount(groups)], np.float64))[: _n_subsets(_n_groups(groups))]


def _leave_one_group_out(between: FloatArray) -> FloatArray:
    """(1 + group,) the sum over all pairs, and over the pairs without a member of each group."""
    touching = between.sum(0) + between.sum(1) - np.diag(between)
    return (between.sum() - np.concatenate([[0.0], touching]))[: _n_subsets(len(between))]


def _marginals(sums: FloatArray, diagonal: FloatArray, groups: GroupIndices) -> Marginals:
    """Marginals from (observation, group) sums of rows, the diagonal included."""
    is_kept = np.ones((sums.shape[1] + 1, len(groups)))
    is_kept[groups + 1, np.arange(len(groups))] = 0.0
    others = sums.sum(1) - diagonal
    rows = np.concatenate([others[None], others - sums.T]) * is_kept
    n_subsets = _n_subsets(sums.shape[1])
    return Marginals(rows[:n_subsets], (diagonal * is_kept)[:n_subsets])
