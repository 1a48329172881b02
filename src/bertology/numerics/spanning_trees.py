"""Path lengths and depths of trees given by governors, and minimum spanning trees of many distance matrices.

Ties are broken as by Kruskal's algorithm on pairs sorted by distance and then by index; the spanning tree is then
unique, whatever the algorithm.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bertology.arrays import Array, BoolArray, IntArray

NO_GOVERNOR = -1


def ancestors(governors: Sequence[int]) -> BoolArray:
    """(node, node) whether the second is the first or its ancestor; the governor of the root is `NO_GOVERNOR`."""
    above = np.asarray(governors, np.int64)
    is_ancestor = np.eye(len(above), dtype=np.bool_)
    current = above.copy()
    while (walking := np.flatnonzero(current != NO_GOVERNOR)).size:
        is_ancestor[walking, current[walking]] = True
        current[walking] = above[current[walking]]
    return is_ancestor


def tree_depths(governors: Sequence[int]) -> IntArray:
    """(node,) number of edges to the root."""
    return ancestors(governors).sum(1) - 1


def tree_distances(governors: Sequence[int]) -> IntArray:
    """(node, node) number of edges between two nodes."""
    above = ancestors(governors).astype(np.int64)
    depths = above.sum(1) - 1
    lowest_common = above @ above.T - 1
    return depths[:, None] + depths - 2 * lowest_common


def spanning_trees(distances: Array) -> IntArray:
    """(..., node - 1, 2) the edges of the minimum spanning tree of each matrix (..., node, node), smaller index first.

    Only the upper triangle is read. The edges are in the order of Prim's algorithm.
    """
    *leading, count, _ = distances.shape
    if count < 2:
        return np.zeros((*leading, 0, 2), np.int64)
    costs = _unique_costs(distances.reshape(-1, count, count))
    rows = np.arange(len(costs))
    outside = np.ones((len(costs), count), np.bool_)
    outside[:, 0] = False
    nearest = np.zeros((len(costs), count), np.int64)
    cost = costs[:, 0].copy()
    edges = np.empty((len(costs), count - 1, 2), np.int64)
    for step in range(count - 1):
        added = np.where(outside, cost, costs.shape[-1] ** 2).argmin(1)
        edges[:, step, 0], edges[:, step, 1] = nearest[rows, added], added
        outside[rows, added] = False
        closer = costs[rows, added] < cost
        nearest = np.where(closer, added[:, None], nearest)
        cost = np.where(closer, costs[rows, added], cost)
    return np.sort(edges, axis=-1).reshape(*leading, count - 1, 2)


def _unique_costs(distances: Array) -> IntArray:
    """(matrix, node, node) the rank of each pair by distance, then by index."""
    matrices, count, _ = distances.shape
    first, second = np.triu_indices(count, 1)
    order = np.argsort(distances[:, first, second], axis=1, kind="stable")
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.broadcast_to(np.arange(order.shape[1]), order.shape), axis=1)
    costs = np.full((matrices, count, count), count**2, np.int64)
    costs[:, first, second] = ranks
    costs[:, second, first] = ranks
    return costs


def shared_edges(predicted: IntArray, gold: IntArray) -> IntArray:
    """(...,) number of edges of each tree (..., edge, 2) that are gold edges (edge, 2), smaller index first."""
    count = int(max(predicted.max(initial=0), gold.max(initial=0))) + 1
    is_gold = np.zeros((count, count), np.bool_)
    is_gold[gold[:, 0], gold[:, 1]] = True
    return is_gold[predicted[..., 0], predicted[..., 1]].sum(-1)
