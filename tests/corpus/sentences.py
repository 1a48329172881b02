"""Sentences of the tests of corpora: two short ones, and one with every annotation."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from bertology.corpus.sentence import SemanticFrame, Span, sentence_from_text

FIRST, SECOND = sentence_from_text("Dogs bark."), replace(sentence_from_text("Cats?"), entities=(), label="q")
FULL = replace(
    sentence_from_text("Dogs bark", id="1"),
    document="d",
    lemmas=("dog", "bark"),
    pos=("NOUN", "VERB"),
    xpos=("NNS", "VBP"),
    morphology=("Number=Plur", "_"),
    governors=(1, -1),
    relations=("nsubj", "root"),
    tags=("B-X", "O"),
    senses=("dog.n.01", None),
    further_senses=(("frump.n.01", "cad.n.01"), ()),
    chunks=(Span(0, 1, "NP"),),
    entities=(Span(0, 1, "X"),),
    mentions=(Span(0, 2, "0"), Span(0, 1, "1")),
    answer_spans=(),
    frames=(SemanticFrame(1, "bark.01", (Span(0, 1, "ARG0"),)),),
    label="yes",
    marked_words=MappingProxyType({"target": (1,), "nothing": ()}),
    word_labels=MappingProxyType({"mood": ("glad", "")}),
    span_labels=MappingProxyType({"part": (Span(0, 2, "all"),), "empty": ()}),
)
