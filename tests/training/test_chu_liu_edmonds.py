"""Maximum spanning trees equal those of networkx and of an exhaustive search."""

from __future__ import annotations

from itertools import product
from typing import Any

import networkx
import numpy as np
import pytest

from bertology.arrays import FloatArray
from bertology.training.chu_liu_edmonds import max_spanning_tree


def total_score(scores: FloatArray, governors: Any) -> float:
    return float(sum(scores[node, governor] for node, governor in enumerate(governors)))


def is_tree(governors: Any) -> bool:
    for node in range(1, len(governors) + 1):
        visited: set[int] = set()
        while node and node not in visited:
            visited.add(node)
            node = governors[node - 1]
        if node:
            return False
    return True


@pytest.mark.parametrize("seed", range(20))
def test_the_tree_is_the_best_of_all_trees_with_one_root(seed: int) -> None:
    scores = np.random.default_rng(seed).normal(size=(4, 5))
    trees = [tree for tree in product(range(5), repeat=4) if is_tree(tree) and tree.count(0) == 1]
    governors = max_spanning_tree(scores)
    assert total_score(scores, governors) == pytest.approx(max(total_score(scores, tree) for tree in trees))
    assert is_tree(governors.tolist()) and governors.tolist().count(0) == 1


@pytest.mark.parametrize("size", [1, 2, 9, 25])
def test_the_tree_equals_that_of_networkx(size: int) -> None:
    scores = np.random.default_rng(size).normal(size=(size, size + 1))
    graph: Any = networkx.DiGraph()
    for node, governor in product(range(1, size + 1), range(size + 1)):
        if node != governor:
            # With this penalty networkx, too, uses a single edge from the root.
            graph.add_edge(governor, node, weight=scores[node - 1, governor] - (1_000 if governor == 0 else 0))
    tree: Any = networkx.maximum_spanning_arborescence(graph)
    expected = {node: governor for governor, node in tree.edges}
    assert max_spanning_tree(scores).tolist() == [expected[node] for node in range(1, size + 1)]


def test_scores_that_form_a_tree_give_this_tree() -> None:
    governors = [2, 0, 2, 5, 3]
    scores = np.full((5, 6), -5.0)
    scores[np.arange(5), governors] = 1.0
    assert max_spanning_tree(scores).tolist() == governors
