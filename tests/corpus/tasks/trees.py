"""Sentences with dependency trees for the tests of tasks."""

from __future__ import annotations

from dataclasses import replace

from bertology.corpus.sentence import ROOT, Sentence, sentence_from_words


def tree(text: str, governors: list[int], relations: str, pos: str = "") -> Sentence:
    """Make a sentence from governors that count from 1, with 0 for the root, as in CoNLL-U."""
    return replace(
        sentence_from_words(text.split()),
        governors=tuple(governor - 1 if governor else ROOT for governor in governors),
        relations=tuple(relations.split()),
        pos=tuple(pos.split()) or None,
    )
