"""Maximum spanning tree of a directed graph (Chu and Liu 1965; Edmonds 1967)."""

from __future__ import annotations

import numpy as np

from bertology.arrays import Array, FloatArray, IntArray


def max_spanning_tree(scores: Array) -> IntArray:
    """(node,) governor of each node in the tree with the highest sum of scores; exactly one node is below the root.

    `scores` is (node, 1 + node): column 0 is the root, column 1 + i is node i. Governors are numbered in the same way.
    """
    n_nodes = len(scores)
    with_root = np.full((n_nodes + 1, n_nodes + 1), -np.inf)
    with_root[1:] = scores
    np.fill_diagonal(with_root, -np.inf)
    # A penalty on edges from the root that no tree with a second one can make up for.
    finite = with_root[np.isfinite(with_root)]
    with_root[1:, 0] -= (n_nodes + 1) * (float(np.ptp(finite)) + 1.0) if finite.size else 0.0
    return _max_arborescence(with_root)[1:]


def _max_arborescence(scores: FloatArray) -> IntArray:
    """Governors of all nodes; node 0 is the root and its own governor."""
    governors = scores.argmax(1)
    governors[0] = 0
    cycle = _find_cycle(governors)
    if not cycle.size:
        return governors
    # Contract the cycle into one node, solve the smaller graph, and expand.
    rest = np.setdiff1d(np.arange(len(governors)), cycle)
    leaving = scores[np.ix_(rest, cycle)]
    entering = scores[np.ix_(cycle, rest)] - scores[cycle, governors[cycle]][:, None]
    contracted = len(rest)
    small = np.full((contracted + 1, contracted + 1), -np.inf)
    small[:contracted, :contracted] = scores[np.ix_(rest, rest)]
    small[:contracted, contracted], small[contracted, :contracted] = leaving.max(1), entering.max(0)
    small_governors = _max_arborescence(small)
    for index, node in enumerate(rest[1:], start=1):
        is_in_cycle = small_governors[index] == contracted
        governors[node] = cycle[leaving[index].argmax()] if is_in_cycle else rest[small_governors[index]]
    entry = small_governors[contracted]
    governors[cycle[entering[:, entry].argmax()]] = rest[entry]
    return governors


def _find_cycle(governors: IntArray) -> IntArray:
    """The nodes of one cycle without the root; empty if there is none."""
    visited_from = np.zeros(len(governors), np.int64)
    visited_from[0] = -1
    for start in range(1, len(governors)):
        node = start
        while visited_from[node] == 0:
            visited_from[node] = start
            node = int(governors[node])
        if visited_from[node] == start:
            cycle = [node]
            while (node := int(governors[node])) != cycle[0]:
                cycle.append(node)
            return np.array(sorted(cycle))
    return np.empty(0, np.int64)
