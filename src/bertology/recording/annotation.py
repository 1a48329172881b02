"""Annotation along the word axis of an entry: the words of all its parts, one after the other."""

from __future__ import annotations

from typing import Literal

from bertology.corpus.sentence import ROOT
from bertology.recording.entry import Entry

Layer = Literal["pos", "xpos", "relations", "lemmas", "features"]


def word_layer(entry: Entry, *layers: Layer) -> tuple[str | None, ...]:
    """What each word is in the first of the layers that its part carries; None where it carries none of them."""
    found: list[str | None] = []
    for part in entry.input.parts:
        carried = [getattr(part, layer) for layer in layers if getattr(part, layer) is not None]
        found.extend(carried[0] if carried else [None] * len(part))
    return tuple(found)


def word_heads(entry: Entry) -> tuple[int | None, ...]:
    """The index of each word's head on the word axis, `ROOT` for roots; None where the part has no tree."""
    found: list[int | None] = []
    for part in entry.input.parts:
        start = len(found)
        heads = part.heads
        found.extend([None] * len(part) if heads is None else [h if h == ROOT else h + start for h in heads])
    return tuple(found)


def pieces_of_words(entry: Entry) -> dict[int, list[int]]:
    """The pieces of each word that has any."""
    found: dict[int, list[int]] = {}
    for piece, word in enumerate(entry.pieces.word.tolist()):
        if word >= 0:
            found.setdefault(word, []).append(piece)
    return found
