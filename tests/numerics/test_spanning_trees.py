"""Trees from heads and from distances, beside scipy's and a plain Kruskal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse.csgraph import minimum_spanning_tree, shortest_path

from bertology.numerics.spanning_trees import shared_edges, spanning_trees, tree_depths, tree_distances


def random_heads(count: int, seed: int) -> list[int]:
    """A random tree: every node but the first hangs below an earlier one, and then all are renumbered."""
    generator = np.random.default_rng(seed)
    names = generator.permutation(count)
    heads = [-1] * count
    for node in range(1, count):
        heads[names[node]] = int(names[generator.integers(node)])
    return heads


def kruskal(distances: NDArray[Any]) -> set[tuple[int, int]]:
    """All pairs in both directions, sorted by distance alone, joined by union-find."""
    count = len(distances)
    pairs = [(i, j) for i in range(count) for j in range(count) if i != j]
    parent = list(range(count))

    def top(node: int) -> int:
        return node if parent[node] == node else top(parent[node])

    found: set[tuple[int, int]] = set()
    for i, j in sorted(pairs, key=lambda pair: distances[pair]):
        if top(i) != top(j):
            parent[top(i)] = top(j)
            found.add((min(i, j), max(i, j)))
    return found


def edges_of(heads: list[int]) -> set[tuple[int, int]]:
    return {(min(word, head), max(word, head)) for word, head in enumerate(heads) if head >= 0}


@pytest.mark.parametrize("count", [1, 2, 3, 11, 40])
def test_distances_and_depths_are_those_of_shortest_paths(count: int) -> None:
    heads = random_heads(count, count)
    graph = np.zeros((count, count))
    for a, b in edges_of(heads):
        graph[a, b] = 1
    paths = shortest_path(graph, directed=False, unweighted=True)
    np.testing.assert_array_equal(tree_distances(heads), paths)
    np.testing.assert_array_equal(tree_depths(heads), paths[heads.index(-1)])


def test_many_matrices_at_once_give_the_trees_scipy_finds() -> None:
    points = np.random.default_rng(0).normal(size=(2, 3, 17, 4))
    distances = np.linalg.norm(points[..., None, :] - points[..., None, :, :], axis=-1)
    found = spanning_trees(distances)
    for i, j in np.ndindex(2, 3):
        tree = minimum_spanning_tree(np.triu(distances[i, j])).tocoo()
        expected = {(min(e), max(e)) for e in zip(tree.row.tolist(), tree.col.tolist(), strict=True)}
        assert {tuple(edge) for edge in found[i, j].tolist()} == expected


@given(st.integers(2, 9), st.integers(0, 1000))
def test_ties_are_broken_by_index_as_kruskal_does(count: int, seed: int) -> None:
    drawn = np.random.default_rng(seed).integers(1, 4, size=(count, count))
    distances = np.triu(drawn, 1) + np.triu(drawn, 1).T
    assert {tuple(edge) for edge in spanning_trees(distances).tolist()} == kruskal(distances)


def test_the_tree_of_tree_distances_is_the_tree() -> None:
    heads = random_heads(25, 3)
    assert {tuple(edge) for edge in spanning_trees(tree_distances(heads)).tolist()} == edges_of(heads)


def test_one_node_has_no_edges() -> None:
    assert spanning_trees(np.zeros((4, 1, 1))).shape == (4, 0, 2)


def test_shared_edges_are_counted() -> None:
    gold = np.array([[0, 1], [1, 2], [2, 3]])
    found = np.array([[[0, 1], [1, 2], [2, 3]], [[0, 3], [0, 2], [0, 1]]])
    assert shared_edges(found, gold).tolist() == [3, 1]
    assert shared_edges(np.zeros((2, 0, 2), np.int64), np.zeros((0, 2), np.int64)).tolist() == [0, 0]
