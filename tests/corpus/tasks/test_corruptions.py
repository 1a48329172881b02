"""Corruption tasks: clauses with a subject are exchanged, with capitals and punctuation adjusted."""

from __future__ import annotations

from tests.corpus.tasks.trees import tree

from bertology.corpus.tasks.corruptions import _clause_boundaries, _invert_clauses  # pyright: ignore[reportPrivateUsage]


def test_clauses_are_exchanged() -> None:
    sentence = tree(
        "The dog slept , but we left .",
        [2, 3, 0, 7, 7, 7, 3, 3],
        "det nsubj root punct cc nsubj conj punct",
        "DET NOUN VERB PUNCT CCONJ PRON VERB PUNCT",
    )
    boundaries = _clause_boundaries(sentence)
    assert boundaries is not None
    assert " ".join(_invert_clauses(sentence, *boundaries)) == "We left , but the dog slept ."


def test_a_clause_without_a_subject_is_not_exchanged() -> None:
    sentence = tree("The dog slept and left .", [2, 3, 0, 5, 3, 3], "det nsubj root cc conj punct")
    assert _clause_boundaries(sentence) is None
