"""Words, their character offsets, and the optional layers of annotation above them.

Word indices are 0-based everywhere; a span is half-open. A dependency head is the index of the head word and
`ROOT` (-1) for the root, whatever the file format counts from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType

ROOT = -1

Offsets = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Span:
    """Words `start` to `end` (exclusive) and what they are."""

    start: int
    end: int
    label: str = ""


@dataclass(frozen=True, slots=True)
class Frame:
    """One predicate and the spans that fill its roles."""

    predicate: int
    sense: str
    arguments: tuple[Span, ...]


NO_MARKS: Mapping[str, tuple[int, ...]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Sentence:
    """One stretch of text, its words, and whatever is known about them.

    `text[offsets[i][0]:offsets[i][1]]` is the surface of word i. Each layer is None where the source has none:
    an empty tuple means "annotated, and there is nothing".
    """

    words: tuple[str, ...]
    text: str
    offsets: Offsets
    id: str = ""
    document: str = ""
    lemmas: tuple[str, ...] | None = None
    pos: tuple[str, ...] | None = None
    xpos: tuple[str, ...] | None = None
    features: tuple[str, ...] | None = None
    heads: tuple[int, ...] | None = None
    relations: tuple[str, ...] | None = None
    tags: tuple[str, ...] | None = None
    senses: tuple[str | None, ...] | None = None
    chunks: tuple[Span, ...] | None = None
    entities: tuple[Span, ...] | None = None
    mentions: tuple[Span, ...] | None = None
    answers: tuple[Span, ...] | None = None
    frames: tuple[Frame, ...] | None = None
    label: str | None = None
    marks: Mapping[str, tuple[int, ...]] = field(default_factory=lambda: NO_MARKS)

    def __len__(self) -> int:
        return len(self.words)

    def layers(self) -> frozenset[str]:
        """The names of the annotation layers that are present."""
        present = {name for name in LAYERS if getattr(self, name) is not None}
        return frozenset(present | ({"marks"} if self.marks else set()))

    def respaced(self) -> Sentence:
        """The same words written with one space between them, so that no piece can straddle two words."""
        text, offsets = spell(self.words)
        return replace(self, text=text, offsets=offsets)


LAYERS: tuple[str, ...] = tuple(
    f.name for f in fields(Sentence) if f.name not in {"words", "text", "offsets", "id", "document", "marks"}
)
PER_WORD: tuple[str, ...] = ("lemmas", "pos", "xpos", "features", "heads", "relations", "tags", "senses")
SPANS: tuple[str, ...] = ("chunks", "entities", "mentions", "answers")


def spell(words: Sequence[str], space_after: Sequence[bool] | None = None) -> tuple[str, Offsets]:
    """The text that the words make, and the offsets of each word in it."""
    text: list[str] = []
    offsets: list[tuple[int, int]] = []
    position = 0
    for index, word in enumerate(words):
        offsets.append((position, position + len(word)))
        gap = " " if index + 1 < len(words) and (space_after is None or space_after[index]) else ""
        text.append(word + gap)
        position += len(word) + len(gap)
    return "".join(text), tuple(offsets)


def locate(words: Sequence[str], text: str) -> Offsets | None:
    """The offsets at which the words stand in the text in order, or None where they do not."""
    offsets: list[tuple[int, int]] = []
    position = 0
    for word in words:
        start = text.find(word, position)
        if start < 0 or text[position:start].strip():
            return None
        position = start + len(word)
        offsets.append((start, position))
    return None if text[position:].strip() else tuple(offsets)


def sentence(words: Sequence[str], *, space_after: Sequence[bool] | None = None, id: str = "") -> Sentence:
    """A sentence without annotation from its words alone."""
    text, offsets = spell(words, space_after)
    return Sentence(words=tuple(words), text=text, offsets=offsets, id=id)


def from_text(text: str, *, id: str = "") -> Sentence:
    """A sentence from running text: words are runs of letters and digits, each other visible character alone.

    Apostrophes and hyphens inside a word stay in it. Scripts written without spaces give one word a character.
    """
    offsets = tuple(_word_spans(text))
    return Sentence(words=tuple(text[a:b] for a, b in offsets), text=text, offsets=offsets, id=id)


def _word_spans(text: str) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    position = 0
    while position < len(text):
        if text[position].isspace():
            position += 1
            continue
        end = position + 1
        if _in_word(text[position]):
            while end < len(text) and (_in_word(text[end]) or _joins(text, end)):
                end += 1
        spans.append((position, end))
        position = end
    return spans


def _in_word(character: str) -> bool:
    return (character.isalnum() or character == "_" or _is_combining(character)) and not _is_spaceless(character)


def _is_combining(character: str) -> bool:
    import unicodedata

    return unicodedata.category(character) in {"Mn", "Mc"}


def _joins(text: str, position: int) -> bool:
    inside = text[position] in "'’-" and position + 1 < len(text)
    return inside and _in_word(text[position - 1]) and _in_word(text[position + 1])


def _is_spaceless(character: str) -> bool:
    """Han, Hiragana, Katakana: scripts whose words are not set off by spaces."""
    code = ord(character)
    return (
        0x3040 <= code <= 0x30FF or 0x3400 <= code <= 0x9FFF or 0xF900 <= code <= 0xFAFF or 0x20000 <= code <= 0x3134F
    )
