"""Role schemes: paths are leaves of a binary tree, and rare roles are replaced by the nearest frequent one."""

from __future__ import annotations

from bertology.analyses.geometry.tensor_products.role_schemes import (
    random_paths,
    random_tree,
    role_numbering,
    tree_paths,
)
from bertology.corpus.sentence import ROOT
from planted import make_corpus, recorded_inputs

TREES = ((ROOT, 0, 1, 2), (1, ROOT, 1, 2), (3, 0, 0, ROOT), (2, 2, ROOT, 2))


def test_paths_are_turns_in_a_binary_tree() -> None:
    # ((the dog) (saw (a cat)))
    assert tree_paths([1, 2, ROOT, 4, 2]) == [(0, 0), (0, 1), (1, 0), (1, 1, 0), (1, 1, 1)]
    assert tree_paths([ROOT]) == [()]
    assert tree_paths([ROOT, 0, ROOT, 2]) == [(0, 0), (0, 1), (1, 0), (1, 1)]  # two sentences
    for n_words in (1, 2, 9):
        paths = random_paths(n_words, 3)
        assert len(set(paths)) == n_words and sum(0.5 ** len(path) for path in paths) == 1  # a binary tree


def test_paths_are_the_leaves_of_one_binary_tree() -> None:
    for governors in TREES:
        assert sum(0.5 ** len(path) for path in tree_paths(governors)) == 1


def test_rare_roles_are_replaced_by_the_nearest() -> None:
    number = role_numbering("left to right", [[(position,)] for position in range(4) for _ in range(6)])
    assert [number((position,)) for position in (0, 3, 4, 100)] == [0, 3, 3, 3]
    number = role_numbering("tree", [[()], [(0,)], [(1, 0)]] * 6)
    assert number((1, 0, 1)) == number((1, 0)) and number((1, 1)) == number(()) != number((0,))
    number = role_numbering("bidirectional", [[(0, 5)], [(5, 0)], [(-1,)]] * 6)
    assert number((1, 4)) == number((0, 5)) and number((-1,)) != number((5, 0))


def test_random_trees_differ_by_sentence_and_seed() -> None:
    """Sentences of one length that end alike have trees of their own; otherwise roles would be positions."""
    corpus = make_corpus(*(f"w{number} and some more words to come ." for number in range(20)))
    inputs = recorded_inputs(corpus)
    first, second = ([tuple(random_tree(seed)(recorded)) for recorded in inputs] for seed in (0, 1))
    assert len(set(first)) > 15 and sum(a == b for a, b in zip(first, second, strict=True)) < 5
    assert first == [tuple(random_tree(0)(recorded)) for recorded in inputs]
