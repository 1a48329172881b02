"""Aligns pieces to words by their characters, for tokens that come without offsets.

Markers of word pieces (##), of byte pairs (Ġ) and of SentencePiece (▁) are taken off; case, accents and compatibility
forms do not count, so that cased words match an uncased model's tokens. [UNK] and [MASK] match what their neighbours
leave over, preferably a whole word.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cache

from bertology.encoder.pieces import NOWHERE, Alignment, Special

CLS = frozenset({"[CLS]", "<s>", "<cls>", "<bos>", "<|startoftext|>"})
SEP = frozenset({"[SEP]", "</s>", "<sep>", "<eos>", "<|endoftext|>"})
PADDING = frozenset({"[PAD]", "<pad>", "<|padding|>"})
UNKNOWN = frozenset({"[UNK]", "<unk>"})
UNREADABLE = UNKNOWN | {"[MASK]", "<mask>"}

WORDS_OF_ONE_UNKNOWN = 3


def special_kind(token: str) -> Special:
    """Which kind of special token this is, by its usual spellings."""
    if token in CLS:
        return Special.CLS
    if token in SEP:
        return Special.SEP
    return Special.OTHER if token in PADDING else Special.NONE


def is_byte_level(tokens: Sequence[str]) -> bool:
    """Whether tokens are written in GPT-2's alphabet of bytes, in which Ġ is a space."""
    return any("Ġ" in token for token in tokens)


def words_of(tokens: Sequence[str], *, byte_level: bool) -> list[str]:
    """The words that tokens spell, where none are given: pieces put together again, markers taken off."""
    marked = byte_level or any("▁" in token for token in tokens)
    words: list[str] = []
    for token, text in zip(tokens, _texts(tokens, byte_level), strict=True):
        continues = not token.startswith(("Ġ", "▁")) if marked else token.startswith("##") and len(token) > 2
        if words and continues:
            words[-1] += text
        else:
            words.append(text)
    return [word for word in words if word]


def align_by_characters(tokens: Sequence[str], words: Sequence[str], *, byte_level: bool) -> Alignment | int:
    """The word of each token, or the first word that the tokens do not spell."""
    letters = [_plain(word) for word in words]
    ends: list[int] = []
    for word in letters:
        ends.append((ends[-1] if ends else 0) + len(word))
    pieces = [None if t in UNREADABLE else _plain(x) for t, x in zip(tokens, _texts(tokens, byte_level), strict=True)]
    spans = _match(pieces, "".join(letters), ends)
    if isinstance(spans, int):
        return min(bisect_right(ends, spans), len(words) - 1)
    assigned: list[int] = []
    straddling = 0
    for token, (start, end) in zip(tokens, spans, strict=True):
        if start == end:
            # A lone marker stands before its word; the later bytes of a character stay with the first.
            following = bisect_right(ends, start)
            if not token.strip("▁Ġ") and following < len(words):
                assigned.append(following)
            else:
                assigned.append(bisect_right(ends, start - 1) if start else NOWHERE)
            continue
        first, last = bisect_right(ends, start), bisect_right(ends, end - 1)
        straddling += last > first
        assigned.append(max(range(first, last + 1), key=lambda w: (_shared(start, end, ends, w), -w)))
    return Alignment(tuple(assigned), straddling)


def _shared(start: int, end: int, ends: Sequence[int], word: int) -> int:
    return min(end, ends[word]) - max(start, ends[word - 1] if word else 0)


def _match(pieces: Sequence[str | None], text: str, ends: Sequence[int]) -> list[tuple[int, int]] | int:
    """The span of each piece in the text, trying the likeliest first and going back where that fails.

    Returns the furthest place reached where there is no match.
    """
    spans: list[tuple[int, int]] = []
    choices: list[Iterator[int]] = []
    hopeless: set[tuple[int, int]] = set()
    position = furthest = 0
    while True:
        number = len(spans)
        if number == len(pieces) and position == len(text):
            return spans
        if number < len(pieces) and (number, position) not in hopeless:
            choices.append(_ends_of(pieces[number], text, position, ends))
        elif not choices:
            return furthest
        else:
            position, _ = spans.pop()
        # Take the next choice of the last piece that has one left.
        while (end := next(choices[-1], None)) is None:
            hopeless.add((len(spans), position))
            choices.pop()
            if not choices:
                return furthest
            position, _ = spans.pop()
        spans.append((position, end))
        position = end
        furthest = max(furthest, position)


def _ends_of(piece: str | None, text: str, position: int, ends: Sequence[int]) -> Iterator[int]:
    if piece is not None:
        if text.startswith(piece, position):
            yield position + len(piece)
        return
    word = bisect_right(ends, position)
    if word < len(ends):
        yield ends[word]
        yield from range(ends[word] - 1, position, -1)
        yield from ends[word + 1 : word + WORDS_OF_ONE_UNKNOWN]
    yield position  # of characters that the tokeniser dropped, nothing is left over


def _plain(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return "".join(c for c in decomposed if unicodedata.category(c)[0] not in "ZC" and unicodedata.category(c) != "Mn")


def _texts(tokens: Sequence[str], byte_level: bool) -> list[str]:
    if byte_level:
        return _decoded(tokens)
    return [_without_marker(token) for token in tokens]


def _without_marker(token: str) -> str:
    if token.startswith("##") and len(token) > 2:
        return token[2:]
    return token.lstrip("▁") if token.startswith("▁") else token


def _decoded(tokens: Sequence[str]) -> list[str]:
    """The text of byte-level tokens; a character spread over several tokens belongs to the first of them."""
    table = _byte_of()
    content = bytearray()
    owners: list[int] = []
    for number, token in enumerate(tokens):
        raw = bytes(table[c] for c in token) if all(c in table for c in token) else token.encode()
        content += raw
        owners += [number] * len(raw)
    texts = [""] * len(tokens)
    position = 0
    for character in content.decode("utf-8", errors="surrogateescape"):
        texts[owners[position]] += "" if character.isspace() else character
        position += len(character.encode("utf-8", errors="surrogateescape"))
    return texts


@cache
def _byte_of() -> dict[str, int]:
    """GPT-2's alphabet: printable bytes stand for themselves, the others for characters from 256 on."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(b): b for b in printable} | {chr(256 + n): b for n, b in enumerate(others)}
