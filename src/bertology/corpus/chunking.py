"""Derive flat phrase chunks, as in CoNLL-2000, from dependency trees.

A noun, pronoun or independent numeral with its preceding modifiers (determiner, adjectives, numerals, compounds,
possessors) is an NP; a verb with its auxiliaries, `to` and the adverbs between them is a VP; a preposition alone is a
PP. Independent adjectives and adverbs, particles and subordinators are ADJP, ADVP, PRT and SBAR. All other words are
outside chunks.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from bertology.corpus.sentence import ROOT, Sentence, Span

_NOMINAL_TAGS = ("NOUN", "PROPN", "PRON", "NUM")
_NP_RELATIONS = ("det", "amod", "nummod", "compound", "nmod:poss", "poss", "nn", "flat", "advmod", "det:predet", "num")
_VP_RELATIONS = ("aux", "aux:pass", "auxpass", "advmod", "neg", "mark", "cop")
_LABEL_BY_TAG = {"ADP": "PP", "ADJ": "ADJP", "ADV": "ADVP", "SCONJ": "SBAR", "VERB": "VP", "AUX": "VP"}


def sentence_chunks(sentence: Sentence) -> tuple[Span, ...] | None:
    """Return the annotated chunks, else those derived from the tree, else None."""
    if sentence.chunks is not None:
        return sentence.chunks
    if sentence.governors is None or sentence.relations is None or sentence.pos is None:
        return None
    chunked_words: set[int] = set()
    chunks: list[Span] = []
    # Nouns come first: they take the adjectives, adverbs and numerals that would otherwise form chunks.
    for word in (
        *_words_with_tags(sentence, _NOMINAL_TAGS),
        *_words_with_tags(sentence, ("VERB", "AUX")),
        *_words_with_tags(sentence, tuple(_LABEL_BY_TAG)),
    ):
        if word not in chunked_words:
            start = _chunk_start(sentence, word, chunked_words)
            chunked_words.update(range(start, word + 1))
            chunks.append(Span(start, word + 1, _chunk_label(sentence, word)))
    return tuple(sorted(chunks, key=lambda span: span.start))


def runs_outside_chunks(sentence: Sentence, chunks: tuple[Span, ...]) -> Iterator[Span]:
    """Yield the runs of words outside chunks, labelled O."""
    chunked_words = {word for span in chunks for word in range(span.start, span.end)}
    for is_outside, run in groupby(range(len(sentence)), key=lambda word: word not in chunked_words):
        if is_outside:
            first, *rest = run
            yield Span(first, first + len(rest) + 1, "O")


def _words_with_tags(sentence: Sentence, tags: tuple[str, ...]) -> Iterator[int]:
    """Yield words with one of the tags from right to left, so that the last noun of a compound takes the others."""
    pos = sentence.pos or ()
    return (word for word in range(len(sentence) - 1, -1, -1) if pos[word] in tags)


def _chunk_start(sentence: Sentence, last_word: int, chunked_words: set[int]) -> int:
    """Return the first word of the chunk that ends in `last_word`."""
    tag = (sentence.pos or ())[last_word]
    inner = _NP_RELATIONS if tag in _NOMINAL_TAGS else _VP_RELATIONS if tag in ("VERB", "AUX") else ()
    governors, relations, start = sentence.governors or (), sentence.relations or (), last_word
    for word in range(last_word - 1, -1, -1):
        ancestor = word
        while ancestor != ROOT and not start <= ancestor <= last_word and relations[ancestor] in (*inner, "case"):
            ancestor = governors[ancestor]
        # A preposition is not part of a noun phrase, a possessive 's is.
        is_possessive = relations[word] == "case" and word > 0 and governors[word] < word
        is_inner = relations[word] in inner or is_possessive
        if word in chunked_words or not start <= ancestor <= last_word or not is_inner:
            break
        start = word
    return start


def _chunk_label(sentence: Sentence, last_word: int) -> str:
    tag, relation = (sentence.pos or ())[last_word], (sentence.relations or ())[last_word]
    if relation in ("compound:prt", "prt"):
        return "PRT"
    return "NP" if tag in _NOMINAL_TAGS else _LABEL_BY_TAG[tag]
