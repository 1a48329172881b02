"""Trees from governors and from distances equal those of SciPy and of a plain Kruskal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse.csgraph import minimum_spanning_tree, shortest_path

from bertology.numerics.spanning_trees import shared_edges, spanning_trees, tree_depths, tree_distances


def random_governors(count: int, seed: int) -> list[int]:
    """A random tree: every node but the first has an earlier one as governor, and then all are renumbered."""
    generator = np.random.default_rng(seed)
    names = generator.permutation(count)
    governors = [-1] * count
    for node in range(1, count):
        governors[names[node]] = int(names[generator.integers(node)])
    return governors


def kruskal(distances: NDArray[Any]) -> set[tuple[int, int]]:
    """All pairs in both directions, sorted by distance alone, joined by union-find."""
    count = len(distances)
    pairs = [(i, j) for i in range(count) for j in range(count) if i != j]
    parent = list(range(count))

    def root(node: int) -> int:
        return node if parent[node] == node else root(parent[node])

    edges: set[tuple[int, int]] = set()
    for i, j in sorted(pairs, key=lambda pair: distances[pair]):
        if root(i) != root(j):
            parent[root(i)] = root(j)
            edges.add((min(i, j), max(i, j)))
    return edges


def edges_of(governors: list[int]) -> set[tuple[int, int]]:
    return {(min(word, governor), max(word, governor)) for word, governor in enumerate(governors) if governor >= 0}


@pytest.mark.parametrize("count", [1, 2, 3, 11, 40])
def test_distances_and_depths_are_those_of_shortest_paths(count: int) -> None:
    governors = random_governors(count, count)
    graph = np.zeros((count, count))
    for a, b in edges_of(governors):
        graph[a, b] = 1
    paths = shortest_path(graph, directed=False, unweighted=True)
    np.testing.assert_array_equal(tree_distances(governors), paths)
    np.testing.assert_array_equal(tree_depths(governors), paths[governors.index(-1)])


def test_trees_of_many_matrices_equal_those_of_scipy() -> None:
    points = np.random.default_rng(0).normal(size=(2, 3, 17, 4))
    distances = np.linalg.norm(points[..., None, :] - points[..., None, :, :], axis=-1)
    trees = spanning_trees(distances)
    for i, j in np.ndindex(2, 3):
        tree = minimum_spanning_tree(np.triu(distances[i, j])).tocoo()
        expected = {(min(e), max(e)) for e in zip(tree.row.tolist(), tree.col.tolist(), strict=True)}
        assert {tuple(edge) for edge in trees[i, j].tolist()} == expected


@given(st.integers(2, 9), st.integers(0, 1000))
def test_ties_are_broken_by_index_as_kruskal_does(count: int, seed: int) -> None:
    samples = np.random.default_rng(seed).integers(1, 4, size=(count, count))
    distances = np.triu(samples, 1) + np.triu(samples, 1).T
    assert {tuple(edge) for edge in spanning_trees(distances).tolist()} == kruskal(distances)


def test_the_tree_of_tree_distances_is_the_tree() -> None:
    governors = random_governors(25, 3)
    assert {tuple(edge) for edge in spanning_trees(tree_distances(governors)).tolist()} == edges_of(governors)


def test_one_node_has_no_edges() -> None:
    assert spanning_trees(np.zeros((4, 1, 1))).shape == (4, 0, 2)


def test_shared_edges_are_counted() -> None:
    gold = np.array([[0, 1], [1, 2], [2, 3]])
    predicted = np.array([[[0, 1], [1, 2], [2, 3]], [[0, 3], [0, 2], [0, 1]]])
    assert shared_edges(predicted, gold).tolist() == [3, 1]
    assert shared_edges(np.zeros((2, 0, 2), np.int64), np.zeros((0, 2), np.int64)).tolist() == [0, 0]
