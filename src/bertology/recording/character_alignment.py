"""Align tokens to words by their characters, for tokens without character offsets.

Markers of WordPiece (##), byte-level BPE (Ġ) and SentencePiece (▁) are removed; case, accents and compatibility forms
are ignored, so that cased words match the tokens of an uncased model. [UNK] and [MASK] match the characters that
adjacent tokens leave, preferably a whole word.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import accumulate

from bertology.encoder.tokens import NO_WORD, SpecialToken, WordAlignment

CLS_TOKENS = frozenset({"[CLS]", "<s>", "<cls>", "<bos>", "<|startoftext|>"})
SEP_TOKENS = frozenset({"[SEP]", "</s>", "<sep>", "<eos>", "<|endoftext|>"})
PADDING_TOKENS = frozenset({"[PAD]", "<pad>", "<|padding|>"})
UNKNOWN_TOKENS = frozenset({"[UNK]", "<unk>"})
WILDCARD_TOKENS = UNKNOWN_TOKENS | {"[MASK]", "<mask>"}

MAX_WORDS_PER_UNKNOWN = 3


def special_kind(token: str) -> SpecialToken:
    """The kind of a special token, recognised by its usual spellings."""
    if token in CLS_TOKENS:
        return SpecialToken.CLS
    if token in SEP_TOKENS:
        return SpecialToken.SEP
    return SpecialToken.OTHER if token in PADDING_TOKENS else SpecialToken.NONE


def is_byte_level(tokens: Sequence[str]) -> bool:
    """Whether tokens are written in GPT-2's byte alphabet, in which Ġ is a space."""
    return any("Ġ" in token for token in tokens)


def join_tokens(tokens: Sequence[str], *, byte_level: bool) -> list[str]:
    """The words that tokens spell: tokens joined, markers removed."""
    marks_word_starts = byte_level or any("▁" in token for token in tokens)
    words: list[str] = []
    for token, text in zip(tokens, _token_texts(tokens, byte_level), strict=True):
        if marks_word_starts:
            is_continuation = not token.startswith(("Ġ", "▁"))
        else:
            is_continuation = token.startswith("##") and len(token) > 2
        if words and is_continuation:
            words[-1] += text
        else:
            words.append(text)
    return [word for word in words if word]


def align_by_characters(tokens: Sequence[str], words: Sequence[str], *, byte_level: bool) -> WordAlignment | int:
    """The word of each token, or the index of the first word that the tokens do not spell."""
    letters = [_normalise(word) for word in words]
    ends = list(accumulate(map(len, letters)))
    token_texts = [
        None if token in WILDCARD_TOKENS else _normalise(text)
        for token, text in zip(tokens, _token_texts(tokens, byte_level), strict=True)
    ]
    spans = _match(token_texts, "".join(letters), ends)
    if isinstance(spans, int):
        return min(bisect_right(ends, spans), len(words) - 1)
    word_ids: list[int] = []
    n_straddling = 0
    for token, (start, end) in zip(tokens, spans, strict=True):
        if start == end:
            # A lone marker belongs to the word after it; later bytes of a character belong to the word of the first.
            following = bisect_right(ends, start)
            if not token.strip("▁Ġ") and following < len(words):
                word_ids.append(following)
            else:
                word_ids.append(bisect_right(ends, start - 1) if start else NO_WORD)
            continue
        first, last = bisect_right(ends, start), bisect_right(ends, end - 1)
        n_straddling += last > first
        # The word with the largest overlap, the first of equals.
        overlaps = [min(end, ends[w]) - max(start, ends[w - 1] if w else 0) for w in range(first, last + 1)]
        word_ids.append(first + overlaps.index(max(overlaps)))
    return WordAlignment(tuple(word_ids), n_straddling)


def _match(token_texts: Sequence[str | None], text: str, ends: Sequence[int]) -> list[tuple[int, int]] | int:
    """The character span of each token in the text, found by backtracking, most likely spans first.

    Returns the furthest character position reached if there is no match.
    """
    spans: list[tuple[int, int]] = []
    choices: list[Iterator[int]] = []
    failed: set[tuple[int, int]] = set()
    position = furthest = 0
    while True:
        token_index = len(spans)
        if token_index == len(token_texts) and position == len(text):
            return spans
        if token_index < len(token_texts) and (token_index, position) not in failed:
            choices.append(_candidate_ends(token_texts[token_index], text, position, ends))
        elif not choices:
            return furthest
        else:
            position, _ = spans.pop()
        # Try the next span of the last token that has one left.
        while (end := next(choices[-1], None)) is None:
            failed.add((len(spans), position))
            choices.pop()
            if not choices:
                return furthest
            position, _ = spans.pop()
        spans.append((position, end))
        position = end
        furthest = max(furthest, position)


def _candidate_ends(token_text: str | None, text: str, position: int, ends: Sequence[int]) -> Iterator[int]:
    if token_text is not None:
        if text.startswith(token_text, position):
            yield position + len(token_text)
        return
    word = bisect_right(ends, position)
    if word < len(ends):
        yield ends[word]
        yield from range(ends[word] - 1, position, -1)
        yield from ends[word + 1 : word + MAX_WORDS_PER_UNKNOWN]
    yield position  # the tokeniser dropped the characters, nothing is left to match


def _normalise(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return "".join(c for c in decomposed if unicodedata.category(c)[0] not in "ZC" and unicodedata.category(c) != "Mn")


def _token_texts(tokens: Sequence[str], byte_level: bool) -> list[str]:
    if byte_level:
        return _decode_bytes(tokens)
    return [token[2:] if token.startswith("##") and len(token) > 2 else token.lstrip("▁") for token in tokens]


def _decode_bytes(tokens: Sequence[str]) -> list[str]:
    """The text of byte-level tokens; a character split over several tokens belongs to the first of them."""
    table = _byte_alphabet()
    content = bytearray()
    token_of_byte: list[int] = []
    for index, token in enumerate(tokens):
        raw = bytes(table[c] for c in token) if all(c in table for c in token) else token.encode()
        content += raw
        token_of_byte += [index] * len(raw)
    texts = [""] * len(tokens)
    position = 0
    for character in content.decode("utf-8", errors="surrogateescape"):
        texts[token_of_byte[position]] += "" if character.isspace() else character
        position += len(character.encode("utf-8", errors="surrogateescape"))
    return texts


@cache
def _byte_alphabet() -> dict[str, int]:
    """GPT-2's alphabet: printable bytes represent themselves, the others are characters from 256 on."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    unprintable = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + n): byte for n, byte in enumerate(unprintable)}
