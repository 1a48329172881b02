"""Dependency trees of CoNLL-U: every tree passes, every other graph is malformed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertology.corpus.readers.conllu import check_tree
from bertology.corpus.sentence import ROOT, subtree
from bertology.corpus.text_files import ParseError


@st.composite
def trees(draw: st.DrawFn) -> list[int]:
    """A random tree: in a random order of words, each word depends on a previous one."""
    order = draw(st.permutations(range(draw(st.integers(1, 12)))))
    governors = [ROOT] * len(order)
    for index, word in enumerate(order[1:], start=1):
        governors[word] = order[draw(st.integers(0, index - 1))]
    return governors


def path_to_root(governors: list[int], word: int) -> list[int]:
    path = [word]
    while governors[path[-1]] != ROOT:
        path.append(governors[path[-1]])
    return path


@given(trees())
def test_a_tree_passes_and_a_subtree_has_the_words_whose_path_contains_its_root(governors: list[int]) -> None:
    check_tree(governors, range(1, len(governors) + 1))
    words = range(len(governors))
    for root in words:
        assert subtree(governors, root) == [word for word in words if root in path_to_root(governors, word)]


@given(st.lists(st.integers(-1, 6), min_size=1, max_size=6))
def test_a_graph_passes_only_if_every_word_reaches_a_single_root(governors: list[int]) -> None:
    def reaches_root(word: int) -> bool:
        for _ in governors:
            if not ROOT <= governors[word] < len(governors):
                return False
            if governors[word] == ROOT:
                return True
            word = governors[word]
        return False

    is_tree = governors.count(ROOT) == 1 and all(reaches_root(word) for word in range(len(governors)))
    if is_tree:
        check_tree(governors, range(1, len(governors) + 1))
    else:
        with pytest.raises(ParseError):
            check_tree(governors, range(1, len(governors) + 1))


def test_a_branch_can_be_excluded_from_a_subtree() -> None:
    assert subtree([1, ROOT, 1, 2, 3], 1, exclude=3) == [0, 1, 2]
