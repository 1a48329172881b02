"""Running text to words: by letters and punctuation, or at the blanks of text that is tokenised already."""

from __future__ import annotations

import re
from typing import Literal

from bertology.corpus.sentence import Sentence, from_text
from bertology.errors import unknown_name

Words = Literal["text", "spaces"]
TOKEN = re.compile(r"\S+")


def worded(text: str, words: Words = "text", *, id: str = "") -> Sentence:
    """The text as a sentence: `text` splits words and punctuation, `spaces` only at blanks."""
    if words == "text":
        return from_text(text, id=id)
    if words == "spaces":
        return from_spaces(text, id=id)
    raise unknown_name("way to split words", words, ("text", "spaces"))


def from_spaces(text: str, *, id: str = "") -> Sentence:
    """A sentence whose words are what stands between blanks."""
    offsets = tuple(match.span() for match in TOKEN.finditer(text))
    return Sentence(words=tuple(text[a:b] for a, b in offsets), text=text, offsets=offsets, id=id)
