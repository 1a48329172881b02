"""Trees over points: path lengths and depths from heads, and minimum spanning trees of many matrices; no BERT here.

Ties are broken as Kruskal's algorithm does over pairs sorted by distance, equal ones in the order of their indices: the
spanning tree is then unique, whatever algorithm finds it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[Any]
Ints = NDArray[np.int64]

NO_HEAD = -1


def ancestors(heads: Sequence[int]) -> NDArray[np.bool_]:
    """(node, node): whether the second is the first itself or above it; `heads` has `NO_HEAD` for the root."""
    above = np.asarray(heads, np.int64)
    found = np.eye(len(above), dtype=np.bool_)
    current = above.copy()
    while (walking := np.flatnonzero(current != NO_HEAD)).size:
        found[walking, current[walking]] = True
        current[walking] = above[current[walking]]
    return found


def tree_depths(heads: Sequence[int]) -> Ints:
    """(node,) edges up to the root, 0 for the root itself."""
    return ancestors(heads).sum(1) - 1


def tree_distances(heads: Sequence[int]) -> Ints:
    """(node, node) edges on the path between two nodes of one tree."""
    above = ancestors(heads).astype(np.int64)
    depths = above.sum(1) - 1
    lowest_common = above @ above.T - 1
    return depths[:, None] + depths - 2 * lowest_common


def spanning_trees(distances: Numbers) -> Ints:
    """(..., node - 1, 2) the edges of the minimum spanning tree of each matrix (..., node, node), smaller index first.

    Only the part above the diagonal is read. The edges come in the order in which Prim's algorithm takes them.
    """
    *several, count, _ = distances.shape
    if count < 2:
        return np.zeros((*several, 0, 2), np.int64)
    costs = _unique_costs(distances.reshape(-1, count, count))
    rows = np.arange(len(costs))
    outside = np.ones((len(costs), count), np.bool_)
    outside[:, 0] = False
    nearest = np.zeros((len(costs), count), np.int64)
    cost = costs[:, 0].copy()
    edges = np.empty((len(costs), count - 1, 2), np.int64)
    for step in range(count - 1):
        taken = np.where(outside, cost, costs.shape[-1] ** 2).argmin(1)
        edges[:, step, 0], edges[:, step, 1] = nearest[rows, taken], taken
        outside[rows, taken] = False
        closer = costs[rows, taken] < cost
        nearest = np.where(closer, taken[:, None], nearest)
        cost = np.where(closer, costs[rows, taken], cost)
    return np.sort(edges, axis=-1).reshape(*several, count - 1, 2)


def _unique_costs(distances: Numbers) -> Ints:
    """(matrix, node, node) the place of each pair among all pairs in order of distance, then of index."""
    matrices, count, _ = distances.shape
    first, second = np.triu_indices(count, 1)
    order = np.argsort(distances[:, first, second], axis=1, kind="stable")
    places = np.empty_like(order)
    np.put_along_axis(places, order, np.broadcast_to(np.arange(order.shape[1]), order.shape), axis=1)
    costs = np.full((matrices, count, count), count**2, np.int64)
    costs[:, first, second] = places
    costs[:, second, first] = places
    return costs


def shared_edges(found: Ints, gold: Ints) -> Ints:
    """(...,) how many edges of each tree (..., edge, 2) are among the gold ones (edge, 2), smaller index first."""
    count = int(max(found.max(initial=0), gold.max(initial=0))) + 1
    there = np.zeros((count, count), np.bool_)
    there[gold[:, 0], gold[:, 1]] = True
    return there[found[..., 0], found[..., 1]].sum(-1)
