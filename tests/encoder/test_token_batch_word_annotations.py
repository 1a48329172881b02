"""Annotations along the words of all segments of an input."""

from __future__ import annotations

from dataclasses import replace

import planted
from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example
from bertology.corpus.sentence import ROOT, sentence_from_text
from bertology.encoder.token_batch import word_annotations, word_governors

FIRST = replace(sentence_from_text("a b"), governors=(1, ROOT), relations=("det", "root"), xpos=("DT", "NN"))
SECOND = replace(sentence_from_text("c d e"), governors=(ROOT, 0, 1), pos=("X", "Y", "Z"), xpos=("x", "y", "z"))
(PAIR,) = planted.recorded_inputs(Corpus((Example((FIRST, SECOND), "pair"),)))
(PARTLY_PARSED,) = planted.recorded_inputs(Corpus((Example((sentence_from_text("f"), FIRST), "pair"),)))


def test_governors_are_indices_into_all_words_of_the_input() -> None:
    assert word_governors(PAIR) == (1, ROOT, ROOT, 2, 3)
    assert word_governors(PARTLY_PARSED) == (None, 2, ROOT)


def test_the_first_available_annotation_of_a_segment_is_used() -> None:
    assert word_annotations(PAIR, "pos", "xpos") == ("DT", "NN", "X", "Y", "Z")
    assert word_annotations(PAIR, "relations") == ("det", "root", None, None, None)
