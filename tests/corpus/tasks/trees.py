"""Sentences with dependency trees for the tests of tasks."""

from __future__ import annotations

from dataclasses import replace

from bertology.corpus.sentence import ROOT, Sentence, sentence_from_words


def tree(text: str, heads: list[int], relations: str, pos: str = "") -> Sentence:
    """Make a sentence with governors that count from 1, as in CoNLL-U."""
    return replace(
        sentence_from_words(text.split()),
        governors=tuple(head - 1 if head else ROOT for head in heads),
        relations=tuple(relations.split()),
        pos=tuple(pos.split()) or None,
    )
