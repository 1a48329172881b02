"""The heaviest trees are networkx's, and those found by trying all."""

from __future__ import annotations

from itertools import product
from typing import Any

import networkx
import numpy as np
import pytest

from bertology.maths.arborescence import Floats, best_heads


def total(scores: Floats, heads: Any) -> float:
    return float(sum(scores[node, head] for node, head in enumerate(heads)))


def is_tree(heads: Any) -> bool:
    for node in range(1, len(heads) + 1):
        seen: set[int] = set()
        while node and node not in seen:
            seen.add(node)
            node = heads[node - 1]
        if node:
            return False
    return True


@pytest.mark.parametrize("seed", range(20))
def test_it_is_the_best_of_all_trees_with_one_root(seed: int) -> None:
    scores = np.random.default_rng(seed).normal(size=(4, 5))
    every = [heads for heads in product(range(5), repeat=4) if is_tree(heads) and heads.count(0) == 1]
    found = best_heads(scores)
    assert total(scores, found) == pytest.approx(max(total(scores, heads) for heads in every))
    assert is_tree(found.tolist()) and found.tolist().count(0) == 1


@pytest.mark.parametrize("size", [1, 2, 9, 25])
def test_it_equals_networkx(size: int) -> None:
    scores = np.random.default_rng(size).normal(size=(size, size + 1))
    graph: Any = networkx.DiGraph()
    for node, head in product(range(1, size + 1), range(size + 1)):
        if node != head:
            # A root so dear that one edge from it is all that networkx takes, too.
            graph.add_edge(head, node, weight=scores[node - 1, head] - (1_000 if head == 0 else 0))
    tree: Any = networkx.maximum_spanning_arborescence(graph)
    expected = {node: head for head, node in tree.edges}
    assert best_heads(scores).tolist() == [expected[node] for node in range(1, size + 1)]


def test_a_tree_that_is_there_is_found() -> None:
    heads = [2, 0, 2, 5, 3]
    scores = np.full((5, 6), -5.0)
    scores[np.arange(5), heads] = 1.0
    assert best_heads(scores).tolist() == heads
