"""Sentences: words, their character offsets, and optional annotations.

Word indices count from 0 everywhere; spans are half-open. A governor (syntactic parent) is a word index, or `ROOT` (-1)
for the root of the tree, whatever the file format counts from.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from types import MappingProxyType
from typing import Literal, overload

import numpy as np
from numpy.typing import NDArray

from bertology.errors import unknown_name

ROOT = -1

WordSplitting = Literal["text", "spaces"]
NON_SPACE = re.compile(r"\S+")
_UNCOMMON = re.compile(r"[^\u0000-\u02ff\u2010-\u205f\u20a0-\u20cf\u2100-\u214f]")
"""Characters outside blocks without combining marks and without scripts written without spaces."""
_COMMON_WORD = re.compile(r"\w+(?:['’-]\w+)*|\S")
"""A word of a text without uncommon characters; a regular expression is several times faster than a loop."""


_LETTER, _SPACE, _JOINT = 1, 2, 3
"""Classes of characters: part of a word, white space, and what joins two parts of a word."""


class OffsetArray(Sequence[tuple[int, int]]):
    """Starts and ends of words in one array, equal to the tuple of pairs, which takes several times the memory."""

    __slots__ = ("array",)

    def __init__(self, array: NDArray[np.int64]) -> None:
        """`array` is (word, 2)."""
        self.array = array

    @overload
    def __getitem__(self, index: int) -> tuple[int, int]: ...
    @overload
    def __getitem__(self, index: slice) -> OffsetArray: ...
    def __getitem__(self, index: int | slice) -> tuple[int, int] | OffsetArray:
        if isinstance(index, slice):
            return OffsetArray(self.array[index])
        start, end = self.array[index].tolist()
        return start, end

    def __len__(self) -> int:
        return len(self.array)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        starts, ends = self.array.T.tolist()
        return zip(starts, ends, strict=True)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, OffsetArray):
            return np.array_equal(self.array, other.array)
        return tuple(self) == other

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))


CharacterOffsets = tuple[tuple[int, int], ...] | OffsetArray


@dataclass(frozen=True, slots=True)
class Span:
    """A labelled run of words, from `start` to `end` (exclusive)."""

    start: int
    end: int
    label: str = ""


@dataclass(frozen=True, slots=True)
class SemanticFrame:
    """A predicate and the spans that fill its semantic roles."""

    predicate: int
    sense: str
    arguments: tuple[Span, ...]


NO_MARKED_WORDS: Mapping[str, tuple[int, ...]] = MappingProxyType({})
NO_WORD_LABELS: Mapping[str, tuple[str, ...]] = MappingProxyType({})
NO_SPAN_LABELS: Mapping[str, tuple[Span, ...]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Sentence:
    """A text, its words and their annotations.

    `text[offsets[i][0]:offsets[i][1]]` is the surface form of word i. An annotation is None if the source lacks it; an
    empty tuple means that the source is annotated and the sentence contains nothing to annotate.
    `further_senses` has the gold senses of each word besides that in `senses`. `marked_words` maps a role, such as
    target or antecedent, to the indices of the words that have it. `word_labels` and `span_labels` are further labels
    under the names that the source gives them, one per word ("" for a word without this label) or one per span.
    """

    words: tuple[str, ...]
    text: str
    offsets: CharacterOffsets
    id: str = ""
    document: str = ""
    lemmas: tuple[str, ...] | None = None
    pos: tuple[str, ...] | None = None
    xpos: tuple[str, ...] | None = None
    morphology: tuple[str, ...] | None = None
    governors: tuple[int, ...] | None = None
    relations: tuple[str, ...] | None = None
    tags: tuple[str, ...] | None = None
    senses: tuple[str | None, ...] | None = None
    further_senses: tuple[tuple[str, ...], ...] | None = None
    chunks: tuple[Span, ...] | None = None
    entities: tuple[Span, ...] | None = None
    mentions: tuple[Span, ...] | None = None
    answer_spans: tuple[Span, ...] | None = None
    frames: tuple[SemanticFrame, ...] | None = None
    label: str | None = None
    marked_words: Mapping[str, tuple[int, ...]] = field(default_factory=lambda: NO_MARKED_WORDS)
    word_labels: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: NO_WORD_LABELS)
    span_labels: Mapping[str, tuple[Span, ...]] = field(default_factory=lambda: NO_SPAN_LABELS)

    def __len__(self) -> int:
        return len(self.words)

    def annotations(self) -> frozenset[str]:
        """Return the names of the annotations that are present."""
        present = {name for name in ANNOTATIONS if getattr(self, name) is not None}
        return frozenset(present | ({"marked_words"} if self.marked_words else set()))

    def with_single_spaces(self) -> Sentence:
        """Return the same words separated by single spaces, so that no token can cover two words."""
        text, offsets = join_words(self.words)
        return replace(self, text=text, offsets=offsets)


LABEL_FIELDS: tuple[str, ...] = ("word_labels", "span_labels")
ANNOTATIONS: tuple[str, ...] = tuple(
    f.name
    for f in fields(Sentence)
    if f.name not in {"words", "text", "offsets", "id", "document", "marked_words", *LABEL_FIELDS}
)
WORD_ANNOTATIONS: tuple[str, ...] = (
    "lemmas", "pos", "xpos", "morphology", "governors", "relations", "tags", "senses",
    "further_senses",
)  # fmt: skip
SPAN_ANNOTATIONS: tuple[str, ...] = ("chunks", "entities", "mentions", "answer_spans")


def join_words(words: Sequence[str], space_after: Sequence[bool] | None = None) -> tuple[str, CharacterOffsets]:
    """Return the text that the words form, and the offsets of each word in it."""
    text: list[str] = []
    offsets: list[tuple[int, int]] = []
    position = 0
    for index, word in enumerate(words):
        offsets.append((position, position + len(word)))
        gap = " " if index + 1 < len(words) and (space_after is None or space_after[index]) else ""
        text.append(word + gap)
        position += len(word) + len(gap)
    return "".join(text), tuple(offsets)


def locate_words(words: Sequence[str], text: str) -> CharacterOffsets | None:
    """Return the offsets of the words in the text, or None if the text is not these words in this order."""
    offsets: list[tuple[int, int]] = []
    position = 0
    for word in words:
        start = text.find(word, position)
        if start < 0 or text[position:start].strip():
            return None
        position = start + len(word)
        offsets.append((start, position))
    return None if text[position:].strip() else tuple(offsets)


def sentence_from_words(words: Sequence[str], *, space_after: Sequence[bool] | None = None, id: str = "") -> Sentence:
    """Make an unannotated sentence from words."""
    text, offsets = join_words(words, space_after)
    return Sentence(words=tuple(words), text=text, offsets=offsets, id=id)


def sentence_from_text(text: str, *, id: str = "") -> Sentence:
    """Split running text into words: runs of letters and digits; every other visible character is a word.

    Apostrophes and hyphens inside a word belong to it. In scripts written without spaces each character is a word.
    """
    return _sentence_from_offsets(text, tuple(_word_spans(text)), id)


def sentences_from_texts(texts: Sequence[str]) -> list[Sentence]:
    """`sentence_from_text` for each text, all at once: several times faster for texts without uncommon characters."""
    is_common = [text.isascii() or _UNCOMMON.search(text) is None for text in texts]
    common = iter(_split_common_texts([text for text, flag in zip(texts, is_common, strict=True) if flag]))
    return [next(common) if flag else sentence_from_text(text) for text, flag in zip(texts, is_common, strict=True)]


def _split_common_texts(texts: Sequence[str]) -> Iterator[Sentence]:
    """The words of `_COMMON_WORD` in texts without uncommon characters, found in the joined texts."""
    codes = np.frombuffer("\n".join([*texts, ""]).encode("utf-32-le"), np.uint32)
    classes = _character_classes()[codes]
    is_letter, is_visible, is_joint = classes == _LETTER, classes != _SPACE, classes == _JOINT
    is_joint[1:-1] &= is_letter[:-2] & is_letter[2:]
    is_joint[:1] = False
    in_word = is_letter | is_joint
    is_inside = in_word[1:] & in_word[:-1]
    is_start, is_end = is_visible.copy(), is_visible.copy()
    is_start[1:] &= ~is_inside
    is_end[:-1] &= ~is_inside
    starts, ends = np.flatnonzero(is_start), np.flatnonzero(is_end) + 1
    # Words are cut out of a text that has nothing else between them than one line break.
    line_breaks = np.cumsum(is_start, dtype=np.int32)[is_visible]
    line_breaks += np.arange(-1, len(line_breaks) - 1, dtype=np.int32)
    lines = np.full(len(line_breaks) + len(starts), ord("\n"), np.uint32)
    lines[line_breaks] = codes[is_visible]
    words = lines.tobytes().decode("utf-32-le").split("\n")
    spans = np.stack([starts, ends], 1)
    text_ends = np.cumsum([len(text) + 1 for text in texts])
    first = 0
    for text, end, last in zip(texts, text_ends.tolist(), np.searchsorted(starts, text_ends).tolist(), strict=True):
        offsets = OffsetArray(spans[first:last] - (end - len(text) - 1))
        yield Sentence(words=tuple(words[first:last]), text=text, offsets=offsets)
        first = last


@cache
def _character_classes() -> NDArray[np.uint8]:
    """The class of each code point that is not uncommon."""
    characters = list(map(chr, range(0x2150)))
    return np.select(
        [
            [character.isalnum() or character == "_" for character in characters],
            [character.isspace() for character in characters],
            [character in "'’-" for character in characters],
        ],
        [np.uint8(_LETTER), np.uint8(_SPACE), np.uint8(_JOINT)],
    )


def split_at_spaces(text: str, *, id: str = "") -> Sentence:
    """Split tokenised text into words at white space only."""
    return _sentence_from_offsets(text, tuple(match.span() for match in NON_SPACE.finditer(text)), id)


def split_words(text: str, word_splitting: WordSplitting = "text", *, id: str = "") -> Sentence:
    """Split a text into words: `text` separates words and punctuation, `spaces` splits at white space only."""
    if word_splitting == "text":
        return sentence_from_text(text, id=id)
    if word_splitting == "spaces":
        return split_at_spaces(text, id=id)
    raise unknown_name("word splitting", word_splitting, ("text", "spaces"))


def subtree(governors: Sequence[int], root: int, *, exclude: int | None = None) -> list[int]:
    """Return the word `root` and its descendants in order, without `exclude` and its descendants."""
    children: dict[int, list[int]] = {}
    for word, governor in enumerate(governors):
        children.setdefault(governor, []).append(word)
    words: list[int] = []
    pending = [root]
    while pending:
        word = pending.pop()
        if word != exclude:
            words.append(word)
            pending.extend(children.get(word, ()))
    return sorted(words)


def _sentence_from_offsets(text: str, offsets: CharacterOffsets, id: str) -> Sentence:
    return Sentence(words=tuple(text[start:end] for start, end in offsets), text=text, offsets=offsets, id=id)


def _word_spans(text: str) -> list[tuple[int, int]]:
    if _UNCOMMON.search(text) is None:
        return [match.span() for match in _COMMON_WORD.finditer(text)]
    spans: list[tuple[int, int]] = []
    position = 0
    while position < len(text):
        if text[position].isspace():
            position += 1
            continue
        end = position + 1
        if _is_word_character(text[position]):
            while end < len(text) and (_is_word_character(text[end]) or _is_word_internal(text, end)):
                end += 1
        spans.append((position, end))
        position = end
    return spans


def _is_word_character(character: str) -> bool:
    is_combining = unicodedata.category(character) in {"Mn", "Mc"}
    return (character.isalnum() or character == "_" or is_combining) and not _is_spaceless(character)


def _is_word_internal(text: str, position: int) -> bool:
    is_inside = text[position] in "'’-" and position + 1 < len(text)
    return is_inside and _is_word_character(text[position - 1]) and _is_word_character(text[position + 1])


def _is_spaceless(character: str) -> bool:
    """Whether the script (Han, Hiragana, Katakana) is written without spaces between words."""
    code = ord(character)
    return (
        0x3040 <= code <= 0x30FF or 0x3400 <= code <= 0x9FFF or 0xF900 <= code <= 0xFAFF or 0x20000 <= code <= 0x3134F
    )
