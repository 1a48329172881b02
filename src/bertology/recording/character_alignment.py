"""Align tokens to words by their characters, for tokens without character offsets.

Subword markers are removed: those of WordPiece (##), byte-level BPE (Ġ), SentencePiece (▁) and OpenAI GPT (</w>), and
the blank that BertViz puts in the place of Ġ and ▁. Case, accents and compatibility forms are ignored, so that cased
words match the tokens of an uncased model. [UNK] and [MASK] match the characters that adjacent tokens leave, preferably
a whole word.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import accumulate
from typing import Literal

from bertology.encoder.tokens import NO_WORD, SpecialToken, WordAlignment

CLS_TOKENS = frozenset({"[CLS]", "<s>", "<cls>", "<bos>", "<|startoftext|>"})
SEP_TOKENS = frozenset({"[SEP]", "</s>", "<sep>", "<eos>", "<|endoftext|>"})
PADDING_TOKENS = frozenset({"[PAD]", "<pad>", "<|padding|>"})
UNKNOWN_TOKENS = frozenset({"[UNK]", "<unk>"})
WILDCARD_TOKENS = UNKNOWN_TOKENS | {"[MASK]", "<mask>"}

MAX_WORDS_PER_UNKNOWN = 3

SubwordMarker = Literal["##", "Ġ", "▁", " ", "</w>"]
"""How a tokeniser marks words: before a continuation (##), before the first token (Ġ, ▁, blank), after the last."""
WORD_END = "</w>"


def special_kind(token: str) -> SpecialToken:
    """The kind of a special token, recognised by its usual spellings."""
    if token in CLS_TOKENS:
        return SpecialToken.CLS
    if token in SEP_TOKENS:
        return SpecialToken.SEP
    return SpecialToken.OTHER if token in PADDING_TOKENS else SpecialToken.NONE


def subword_marker(tokens: Iterable[str]) -> SubwordMarker:
    """The marker that these tokens are written with; ## if there is none. Ġ implies GPT-2's byte alphabet."""
    vocabulary = [token for token in tokens if special_kind(token) is SpecialToken.NONE]
    if any(token.endswith(WORD_END) for token in vocabulary):
        return WORD_END
    markers: tuple[SubwordMarker, ...] = ("Ġ", "▁")
    for marker in markers:
        if any(marker in token for token in vocabulary):
            return marker
    return " " if any(token.startswith(" ") and token.strip() for token in vocabulary) else "##"


def word_starts(tokens: Sequence[str], marker: SubwordMarker) -> list[bool]:
    """Whether each token starts a word, by its marker; the first token and one after a special token always do."""
    starts: list[bool] = []
    for index, token in enumerate(tokens):
        previous = tokens[index - 1] if index else ""
        if not index or special_kind(previous) is not SpecialToken.NONE:
            starts.append(True)
        elif marker == WORD_END:
            starts.append(previous.endswith(WORD_END))
        elif marker == "##":
            starts.append(not _is_continuation(token))
        else:
            starts.append(token.startswith(marker))
    return starts


def join_tokens(tokens: Sequence[str], marker: SubwordMarker) -> list[str]:
    """The words that tokens spell: tokens joined, markers removed."""
    words: list[str] = []
    texts = _token_texts(tokens, marker)
    for text, starts_word in zip(texts, word_starts(tokens, marker), strict=True):
        if starts_word:
            words.append(text)
        else:
            words[-1] += text
    return [word for word in words if word]


def align_by_characters(tokens: Sequence[str], words: Sequence[str], marker: SubwordMarker) -> WordAlignment | int:
    """The word of each token, or the index of the first word that the tokens do not spell."""
    letters = [_normalise(word) for word in words]
    ends = list(accumulate(map(len, letters)))
    token_texts = [
        None if token in WILDCARD_TOKENS else _normalise(text)
        for token, text in zip(tokens, _token_texts(tokens, marker), strict=True)
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
            if not token.strip("▁Ġ ") and following < len(words):
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


def _is_continuation(token: str) -> bool:
    return token.startswith("##") and len(token) > 2


def _token_texts(tokens: Sequence[str], marker: SubwordMarker) -> list[str]:
    match marker:
        case "Ġ":
            return _decode_bytes(tokens)
        case " ":
            return _texts_after_blanks(tokens)
        case "</w>":
            return [token.removesuffix(WORD_END) for token in tokens]
        case _:
            return [token[2:] if _is_continuation(token) else token.lstrip("▁") for token in tokens]


def _texts_after_blanks(tokens: Sequence[str]) -> list[str]:
    """The text of tokens with leading blanks: BertViz writes them for Ġ, leaving other bytes encoded, and for ▁."""
    encoded = ["".join("Ġ" if c == " " else c for c in token) for token in tokens]
    table = _byte_alphabet()
    if all(character in table for token in encoded for character in token):
        try:
            bytes(table[character] for token in encoded for character in token).decode()
            return _decode_bytes(encoded)
        except UnicodeDecodeError:
            pass  # plain text with accents
    return [token.strip() for token in tokens]


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
