"""Chunks from dependency trees: flat phrases that do not overlap, after CoNLL-2000's, where a corpus has only trees.

A noun, pronoun or free numeral with what stands before it and belongs to it (determiner, adjectives, numerals,
compounds, owners) is an NP; a verb with its auxiliaries, `to` and adverbs between them a VP; a preposition alone a PP,
as there. Free adjectives and adverbs, particles and subordinators make ADJP, ADVP, PRT and SBAR. Everything else is in
no chunk.
"""

from __future__ import annotations

from collections.abc import Iterator

from bertology.corpus.sentence import ROOT, Sentence, Span

_NOMINAL = ("NOUN", "PROPN", "PRON", "NUM")
_IN_NP = ("det", "amod", "nummod", "compound", "nmod:poss", "poss", "nn", "flat", "advmod", "det:predet", "num")
_IN_VP = ("aux", "aux:pass", "auxpass", "advmod", "neg", "mark", "cop")
_ALONE = {"ADP": "PP", "ADJ": "ADJP", "ADV": "ADVP", "SCONJ": "SBAR", "VERB": "VP", "AUX": "VP"}


def chunks_of(sentence: Sentence) -> tuple[Span, ...] | None:
    """The annotated chunks, or those that the tree gives, or None where there is neither."""
    if sentence.chunks is not None:
        return sentence.chunks
    if sentence.heads is None or sentence.relations is None or sentence.pos is None:
        return None
    taken: set[int] = set()
    found: list[Span] = []
    # Heads of noun phrases first: they take the adjectives, adverbs and numerals that would stand alone.
    for own in (*_heads(sentence, _NOMINAL), *_heads(sentence, ("VERB", "AUX")), *_heads(sentence, tuple(_ALONE))):
        if own not in taken:
            start = _beginning(sentence, own, taken)
            taken.update(range(start, own + 1))
            found.append(Span(start, own + 1, _label(sentence, own)))
    return tuple(sorted(found, key=lambda span: span.start))


def outside(sentence: Sentence, chunks: tuple[Span, ...]) -> Iterator[Span]:
    """Runs of words in no chunk, labelled O."""
    inside = {word for span in chunks for word in range(span.start, span.end)}
    start = None
    for word in range(len(sentence) + 1):
        free = word < len(sentence) and word not in inside
        if free and start is None:
            start = word
        elif not free and start is not None:
            yield Span(start, word, "O")
            start = None


def _heads(sentence: Sentence, tags: tuple[str, ...]) -> Iterator[int]:
    """Words of these classes, from the right, so that the last noun of a compound takes the others."""
    pos = sentence.pos or ()
    return (word for word in range(len(sentence) - 1, -1, -1) if pos[word] in tags)


def _beginning(sentence: Sentence, head: int, taken: set[int]) -> int:
    """The first word of the head's chunk."""
    tag = (sentence.pos or ())[head]
    inner = _IN_NP if tag in _NOMINAL else _IN_VP if tag in ("VERB", "AUX") else ()
    heads, relations, start = sentence.heads or (), sentence.relations or (), head
    for word in range(head - 1, -1, -1):
        above = word
        while above != ROOT and not start <= above <= head and relations[above] in (*inner, "case"):
            above = heads[above]
        # A preposition belongs to no noun phrase, the 's of an owner does.
        owner = relations[word] == "case" and word > 0 and heads[word] < word
        if word in taken or not start <= above <= head or (relations[word] not in inner and not owner):
            break
        start = word
    return start


def _label(sentence: Sentence, head: int) -> str:
    tag, relation = (sentence.pos or ())[head], (sentence.relations or ())[head]
    if relation in ("compound:prt", "prt"):
        return "PRT"
    return "NP" if tag in _NOMINAL else _ALONE[tag]
