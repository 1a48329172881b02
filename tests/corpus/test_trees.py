"""Trees: every tree passes, every graph that is none is told apart, subtrees are what hangs below."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.corpus.checks import DETERMINED

from bertology.corpus.faults import Fault
from bertology.corpus.sentence import ROOT
from bertology.corpus.trees import check_tree, subtree


@st.composite
def trees(draw: st.DrawFn) -> list[int]:
    """A random tree: each word in a random order hangs on one placed before it."""
    order = draw(st.permutations(range(draw(st.integers(1, 12)))))
    heads = [ROOT] * len(order)
    for place, word in enumerate(order[1:], start=1):
        heads[word] = order[draw(st.integers(0, place - 1))]
    return heads


def climbs(heads: list[int], word: int) -> list[int]:
    path = [word]
    while heads[path[-1]] != ROOT:
        path.append(heads[path[-1]])
    return path


@DETERMINED
@given(trees())
def test_a_tree_passes_and_its_subtrees_are_those_that_climb_to_the_top(heads: list[int]) -> None:
    check_tree(heads, range(1, len(heads) + 1))
    for top in range(len(heads)):
        assert subtree(heads, top) == [word for word in range(len(heads)) if top in climbs(heads, word)]


@DETERMINED
@given(st.lists(st.integers(-1, 6), min_size=1, max_size=6))
def test_a_graph_passes_only_if_every_word_reaches_one_root(heads: list[int]) -> None:
    def reaches(word: int) -> bool:
        for _ in heads:
            if not ROOT <= heads[word] < len(heads):
                return False
            if heads[word] == ROOT:
                return True
            word = heads[word]
        return False

    is_tree = heads.count(ROOT) == 1 and all(reaches(word) for word in range(len(heads)))
    if is_tree:
        check_tree(heads, range(1, len(heads) + 1))
    else:
        with pytest.raises(Fault):
            check_tree(heads, range(1, len(heads) + 1))


def test_a_branch_can_be_left_out() -> None:
    assert subtree([1, ROOT, 1, 2, 3], 1, without=3) == [0, 1, 2]
