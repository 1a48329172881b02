"""A tag for each word of a text, from whatever layer of annotation has one; spans give BIO tags."""

from __future__ import annotations

from bertology.corpus.bio import encode
from bertology.corpus.sentence import Sentence

SPAN_LAYERS = ("entities", "chunks")
LAYERS = ("tags", "pos", "entities", "chunks", "xpos", "relations")
"""What gives words tags; the first that a corpus has, where none is named."""


def word_tags(part: Sentence, layer: str) -> tuple[str, ...] | None:
    """The tags of the words by one of `LAYERS`, None where the text lacks it; of spans that overlap the last counts."""
    found = getattr(part, layer)
    return encode(found, len(part)) if layer in SPAN_LAYERS and found is not None else found
