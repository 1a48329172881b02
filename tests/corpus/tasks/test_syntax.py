"""Syntactic tasks: top constituents and depth of a tree."""

from __future__ import annotations

from tests.corpus.tasks.trees import tree

from bertology.corpus.sentence import ROOT
from bertology.corpus.tasks.syntax import max_depth, top_constituents


def test_the_top_constituents_of_clauses_questions_and_fragments() -> None:
    plain = tree("The dog slept .", [2, 3, 0, 3], "det nsubj root punct", "DET NOUN VERB PUNCT")
    assert top_constituents(plain) == ["NP", "VP", "."]
    question = tree("Is she here ?", [3, 3, 0, 3], "cop nsubj root punct", "AUX PRON ADV PUNCT")
    assert top_constituents(question) == ["AUX", "NP", "VP", "?"]
    copula = tree("She is a dog", [4, 4, 4, 0], "nsubj cop det root", "PRON AUX DET NOUN")
    assert top_constituents(copula) == ["NP", "VP"]
    fragment = tree("A big dog", [3, 3, 0], "det amod root", "DET ADJ NOUN")
    assert top_constituents(fragment) == ["NP"]


def test_the_depth_of_a_tree_is_its_longest_path() -> None:
    assert max_depth([1, 2, ROOT, 2]) == 2
    assert max_depth([ROOT]) == 0
