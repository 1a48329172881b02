"""The heaviest tree that reaches every node from one root (Chu and Liu 1965; Edmonds 1967); no BERT here."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def best_heads(scores: NDArray[Any]) -> Ints:
    """(node,) the head of each node in the tree with the highest sum of scores; exactly one node has the root as head.

    `scores` is (node, 1 + node): column 0 is the root above all nodes, column 1 + i node i. The result counts in the
    same way: 0 for the root, 1 + i for node i.
    """
    count = len(scores)
    whole = np.full((count + 1, count + 1), -np.inf)
    whole[1:] = scores
    np.fill_diagonal(whole, -np.inf)
    # Every edge from the root is made so dear that a second one never pays.
    finite = whole[np.isfinite(whole)]
    whole[1:, 0] -= (count + 1) * (float(np.ptp(finite)) + 1.0) if finite.size else 0.0
    return _tree(whole)[1:]


def _tree(scores: Floats) -> Ints:
    """Heads of all nodes; the first is the root and its own head."""
    heads = scores.argmax(1)
    heads[0] = 0
    cycle = _cycle(heads)
    if not cycle.size:
        return heads
    rest = np.setdiff1d(np.arange(len(heads)), cycle)
    leaving = scores[np.ix_(rest, cycle)]
    entering = scores[np.ix_(cycle, rest)] - scores[cycle, heads[cycle]][:, None]
    last = len(rest)
    small = np.full((last + 1, last + 1), -np.inf)
    small[:last, :last] = scores[np.ix_(rest, rest)]
    small[:last, last], small[last, :last] = leaving.max(1), entering.max(0)
    found = _tree(small)
    for place, node in enumerate(rest[1:], start=1):
        inside = found[place] == last
        heads[node] = cycle[leaving[place].argmax()] if inside else rest[found[place]]
    heads[cycle[entering[:, found[last]].argmax()]] = rest[found[last]]
    return heads


def _cycle(heads: Ints) -> Ints:
    """The nodes of one cycle that does not hold the root; none where there is no such cycle."""
    state = np.zeros(len(heads), np.int64)
    state[0] = -1
    for start in range(1, len(heads)):
        node = start
        while state[node] == 0:
            state[node] = start
            node = int(heads[node])
        if state[node] == start:
            found = [node]
            while (node := int(heads[node])) != found[0]:
                found.append(node)
            return np.array(sorted(found))
    return np.empty(0, np.int64)
