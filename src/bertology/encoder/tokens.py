"""Tokens of an input aligned to its words by character offsets, and the tokeniser that makes them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum
from functools import cache, cached_property
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertology.arrays import BoolArray, IntArray
from bertology.corpus.example import TextInput
from bertology.corpus.sentence import OffsetArray
from bertology.encoder.token_lengths import TokenLengths
from bertology.errors import Refusal

Int32Array = NDArray[np.int32]
CharacterOffsets = Sequence[tuple[int, int]]
"""Start and end of spans of a text, in characters."""

NO_WORD = NO_SEGMENT = -1
LISTS_PER_CALL = 8


class SpecialToken(IntEnum):
    """Kind of a special token; NONE for all other tokens."""

    NONE = 0
    CLS = 1
    SEP = 2
    OTHER = 3


def span_tokens(word_ids: NDArray[np.integer], start: int, end: int) -> IntArray | None:
    """Positions of the first and last token of the words `start` to `end` (exclusive); None if one has no token."""
    inside = np.flatnonzero((word_ids >= start) & (word_ids < end))
    is_complete = set(word_ids[inside].tolist()) == set(range(start, end))
    return inside[[0, -1]].astype(np.int64) if is_complete else None


@dataclass(frozen=True, slots=True)
class TokenisedInput:
    """Tokens of one input.

    `word_ids[i]` is the index of token i on the word axis of the input (the words of all segments in order), -1 for
    special and unaligned tokens; `segment_ids[i]` is 0 or 1, -1 for special tokens. `n_straddling` counts tokens that
    cover more than one word, `n_unknown` unknown tokens.
    """

    ids: Int32Array
    tokens: tuple[str, ...]
    type_ids: Int32Array
    segment_ids: Int32Array
    word_ids: Int32Array
    special_kinds: Int32Array
    n_words: int
    n_straddling: int = 0
    n_unknown: int = 0

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def dropped_words(self) -> tuple[int, ...]:
        """Words without a token (zero-width characters, or words covered by a neighbour's token)."""
        return tuple(np.flatnonzero(self._tokens_per_word == 0).tolist())

    @property
    def n_unaligned(self) -> int:
        """Number of non-special tokens outside words."""
        return int(((self.word_ids == NO_WORD) & (self.special_kinds == SpecialToken.NONE)).sum())

    @property
    def n_split_words(self) -> int:
        """Number of words with more than one token."""
        return int((self._tokens_per_word > 1).sum())

    def positions_by_word(self) -> dict[int, list[int]]:
        """Token positions of each word that has any."""
        positions: dict[int, list[int]] = {}
        for position, word in enumerate(self.word_ids.tolist()):
            if word >= 0:
                positions.setdefault(word, []).append(position)
        return positions

    @property
    def _tokens_per_word(self) -> NDArray[np.intp]:
        return np.bincount(self.word_ids[self.word_ids >= 0], minlength=self.n_words)


@dataclass(frozen=True, slots=True)
class WordAlignment:
    """Word index of each token, and the number of tokens that cover more than one word."""

    word_ids: tuple[int, ...]
    n_straddling: int


def align_tokens(tokens: CharacterOffsets, words: CharacterOffsets, text: str) -> WordAlignment:
    """Align tokens to words by their character offsets in the text.

    A token belongs to the word with which it shares most visible characters, to the earlier one on a tie. A token of
    white space only (a lone SentencePiece underline, or a space trimmed by RoBERTa's tokeniser) belongs to the word
    around it, else to the next word. A token that touches no word gets -1.
    """
    word_ids, is_straddling = _align_offsets(_offset_array(tokens), _offset_array(words), text)
    return WordAlignment(tuple(word_ids.tolist()), int(is_straddling.sum()))


def _align_offsets(token_spans: IntArray, word_spans: IntArray, text: str) -> tuple[IntArray, BoolArray]:
    """The word of each token, see `align_tokens`, and whether it covers more than one."""
    start, end = _trim_whitespace(token_spans, text)
    blank = start == end
    start, end = np.where(blank, token_spans.T, (start, end))
    first, last = np.searchsorted(word_spans[:, 1], start, "right"), np.searchsorted(word_spans[:, 0], end, "left")
    has_one_word = (last - first == 1) | ((last <= first) & blank & (first < len(word_spans)))
    word_ids = np.where(has_one_word, first, NO_WORD)
    is_straddling = np.zeros(len(word_ids), np.bool_)
    for token in np.flatnonzero(last - first > 1).tolist():
        candidates = word_spans[first[token] : last[token]]
        overlaps = (text[max(start[token], low) : min(end[token], high)] for low, high in candidates.tolist())
        counts = [len(overlap if blank[token] else "".join(overlap.split())) for overlap in overlaps]
        is_straddling[token] = sum(count > 0 for count in counts) > 1
        word_ids[token] = first[token] + counts.index(max(counts))
    return word_ids, is_straddling


def _offset_array(offsets: CharacterOffsets) -> IntArray:
    """(span, 2) start and end of each span."""
    return np.fromiter(chain.from_iterable(offsets), np.int64, 2 * len(offsets)).reshape(-1, 2)


def _trim_whitespace(offsets: IntArray, text: str) -> tuple[IntArray, IntArray]:
    """Start and end of spans without surrounding white space; both are the end for spans of white space only."""
    is_space = _whitespace_table()
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    visible = ~is_space[np.minimum(codes, len(is_space) - 1)]
    indices = np.arange(len(codes))
    following = np.minimum.accumulate(np.append(np.where(visible, indices, len(codes)), len(codes))[::-1])[::-1]
    preceding = np.maximum.accumulate(np.append(0, np.where(visible, indices + 1, 0)))
    start = np.minimum(following[offsets[:, 0]], offsets[:, 1])
    return start, np.maximum(preceding[offsets[:, 1]], start)


@cache
def _whitespace_table() -> BoolArray:
    """Whether each code point is white space; U+3000 is the last one, and the last row stands for all beyond."""
    return np.array([chr(code).isspace() for code in range(0x3002)])


@contextmanager
def refuse_panics() -> Generator[None]:
    """Refuse a definition that the library of tokenisers panics on, which is no ordinary exception."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise Refusal(
            f"The tokeniser contradicts itself ({' '.join(str(error).split())[:200]})",
            "a tokenizer.json that the tokeniser itself has written",
            "Copy the model again",
        ) from error


class Tokeniser:
    """A fast tokeniser that maps text inputs to aligned tokens.

    A private copy of the tokeniser's definition without truncation and padding: transformers switches both on and off
    in place, which must not change recordings. Token strings are shared by all inputs.
    """

    def __init__(
        self,
        definition: str,
        *,
        cls_ids: frozenset[int],
        sep_ids: frozenset[int],
        unknown_id: int | None,
        split_special: bool,
    ) -> None:
        """`definition` is the content of a tokenizer.json."""
        from tokenizers import Tokenizer  # 40 ms, which `bertology list` should not wait for

        fields = json.loads(definition)
        fields["truncation"] = fields["padding"] = None
        self._definition = json.dumps(fields, sort_keys=True)
        with refuse_panics():
            self._tokenizer = Tokenizer.from_str(self._definition)
        self._tokenizer.encode_special_tokens = split_special
        self._roles = [sorted(cls_ids), sorted(sep_ids), unknown_id, split_special]
        self._unknown_id = unknown_id
        vocabulary: dict[str, int] = self._tokenizer.get_vocab(with_added_tokens=True)
        size = max(vocabulary.values(), default=-1) + 1
        self._strings = [""] * size
        for token, token_id in vocabulary.items():
            self._strings[token_id] = token
        self._token_lengths: TokenLengths | None = None
        if TokenLengths.are_known(fields):
            self._token_lengths = TokenLengths(fields, self._tokenizer.normalizer, vocabulary)
        self._special_kinds = np.full(size, SpecialToken.OTHER, np.int32)
        self._special_kinds[sorted(sep_ids)] = SpecialToken.SEP
        self._special_kinds[sorted(cls_ids)] = SpecialToken.CLS

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the definition and of the roles of the special tokens."""
        return hashlib.sha256((self._definition + json.dumps(self._roles)).encode()).hexdigest()[:32]

    @property
    def token_strings(self) -> Sequence[str]:
        """The string of each token id."""
        return self._strings

    def tokenise(self, inputs: Sequence[TextInput]) -> list[TokenisedInput]:
        """Tokens of each input, special tokens included, without truncation."""
        return self._align(inputs, self._encode(inputs))

    def _encode(self, inputs: Sequence[TextInput]) -> list[Any]:
        texts = [tuple(segment.text for segment in text_input.segments) for text_input in inputs]
        with refuse_panics():
            return self._tokenizer.encode_batch([pair[0] if len(pair) == 1 else pair for pair in texts])

    def pretoken_ids(self, inputs: Sequence[TextInput]) -> list[Int32Array]:
        """The word of each token as the tokeniser itself splits the text, by segment; -1 for special tokens.

        BERT's tokeniser splits at punctuation, so that `haven't` is three words, whatever the words of the corpus.
        """
        ids: list[Int32Array] = []
        for encoding in self._encode(inputs):
            words = list(zip(encoding.sequence_ids, encoding.word_ids, strict=True))
            numbers = {word: number for number, word in enumerate(dict.fromkeys(words))}
            ids.append(np.array([NO_WORD if None in word else numbers[word] for word in words], np.int32))
        return ids

    def _align(self, inputs: Sequence[TextInput], encodings: Sequence[Any]) -> list[TokenisedInput]:
        """The tokens of each input, aligned to its words; all inputs at once, because each NumPy call costs time."""
        id_lists: list[list[int]] = [encoding.ids for encoding in encodings]
        lengths = np.array([len(ids) for ids in id_lists], np.int64)
        n_tokens = int(lengths.sum())
        if not n_tokens:
            return [self._without_tokens(text_input) for text_input in inputs]
        ids = _join_lists(id_lists, np.int32)
        type_lists: list[list[int]] = [encoding.type_ids for encoding in encodings]
        type_ids = _join_lists(type_lists, np.int32) if any(map(any, type_lists)) else np.zeros(n_tokens, np.int32)
        segment_ids = _segment_ids(encodings)
        input_of_token = np.repeat(np.arange(len(inputs)), lengths)
        in_text, segment = _tokens_in_text(inputs, input_of_token, segment_ids)
        spans = self._spans(inputs, encodings, ids, input_of_token, in_text, segment)
        word_ids, is_straddling = np.full(n_tokens, NO_WORD, np.int32), np.zeros(n_tokens, np.bool_)
        word_ids[in_text], is_straddling[in_text] = _align_segments(inputs, input_of_token[in_text], segment, spans)
        special_kinds = np.where(segment_ids >= 0, np.int32(SpecialToken.NONE), self._special_kinds[ids])
        is_unknown = (ids == (-1 if self._unknown_id is None else self._unknown_id)) & (segment_ids >= 0)
        n_straddling, n_unknown = (
            np.bincount(input_of_token[flags], minlength=len(inputs)).tolist() for flags in (is_straddling, is_unknown)
        )
        ends = np.cumsum(lengths).tolist()
        strings = self._strings
        tokenised: list[TokenisedInput] = []
        for index, text_input in enumerate(inputs):
            part = slice(ends[index] - len(id_lists[index]), ends[index])
            tokenised.append(
                TokenisedInput(
                    ids=ids[part],
                    tokens=tuple(map(strings.__getitem__, id_lists[index])),
                    type_ids=type_ids[part],
                    segment_ids=segment_ids[part],
                    word_ids=word_ids[part],
                    special_kinds=special_kinds[part],
                    n_words=sum(map(len, text_input.segments)),
                    n_straddling=n_straddling[index],
                    n_unknown=n_unknown[index],
                )
            )
        return tokenised

    def _spans(
        self,
        inputs: Sequence[TextInput],
        encodings: Sequence[Any],
        ids: Int32Array,
        input_of_token: IntArray,
        in_text: IntArray,
        segment: IntArray,
    ) -> IntArray:
        """(token in text, 2) start and end of each token in its segment.

        Read from the tokeniser only where lengths do not say it: a Python object for each number takes longest of all.
        """
        if self._token_lengths is None:
            return _join_offsets(encoding.offsets for encoding in encodings)[in_text]
        texts = [sentence.text for text_input in inputs for sentence in text_input.segments]
        spans, is_right = self._token_lengths.offsets(ids[in_text], segment, texts)
        missing = np.flatnonzero(~is_right[segment])
        if len(missing):
            has_missing = np.bincount(input_of_token[in_text[missing]], minlength=len(inputs)) > 0
            offsets = np.zeros((len(ids), 2), np.int64)
            offsets[has_missing[input_of_token]] = _join_offsets(
                encodings[index].offsets for index in np.flatnonzero(has_missing).tolist()
            )
            spans[missing] = offsets[in_text[missing]]
        return spans

    def _without_tokens(self, text_input: TextInput) -> TokenisedInput:
        nothing = np.empty(0, np.int32)
        n_words = sum(map(len, text_input.segments))
        return TokenisedInput(nothing, (), nothing, nothing, nothing, nothing, n_words)


def _join_lists(lists: Iterable[Iterable[int]], dtype: type[np.integer[Any]]) -> NDArray[Any]:
    """All numbers in one array, in calls for a few lists each: a longer call would keep other threads waiting."""
    remaining, parts = iter(lists), list[NDArray[Any]]()
    while group := list(islice(remaining, LISTS_PER_CALL)):
        parts.append(np.fromiter(chain.from_iterable(group), dtype))
    return np.concatenate(parts)


def _join_offsets(offsets: Iterable[CharacterOffsets]) -> IntArray:
    """(span, 2) starts and ends of all spans."""
    return _join_lists(map(chain.from_iterable, offsets), np.int64).reshape(-1, 2)


def _segment_ids(encodings: Sequence[Any]) -> Int32Array:
    """The segment of each token, -1 for special tokens; the tokens of a segment are adjacent."""
    runs: list[tuple[int, int]] = []
    for encoding in encodings:
        values: list[int | None] = encoding.sequence_ids
        position = 0
        starts = sorted((values.index(n), n) for n in range(encoding.n_sequences) if n in values)
        for start, segment in starts:
            size = values.count(segment)
            runs += ((NO_SEGMENT, start - position), (segment, size))
            position = start + size
        runs.append((NO_SEGMENT, len(values) - position))
    segments, sizes = np.array(runs).T
    return np.repeat(segments.astype(np.int32), sizes)


def _tokens_in_text(
    inputs: Sequence[TextInput], input_of_token: IntArray, segment_ids: Int32Array
) -> tuple[IntArray, IntArray]:
    """Positions of the tokens that are in a segment, and its number among the segments of all inputs."""
    n_segments = np.array([len(text_input.segments) for text_input in inputs], np.int64)
    first_segments = np.cumsum(n_segments) - n_segments
    in_text = np.flatnonzero(segment_ids >= 0)
    return in_text, first_segments[input_of_token[in_text]] + segment_ids[in_text]


def _align_segments(
    inputs: Sequence[TextInput], input_of_token: IntArray, segment: IntArray, spans: IntArray
) -> tuple[IntArray, BoolArray]:
    """The word of each token in its input, and whether it covers more than one; `segment` is as in `_tokens_in_text`.

    All texts are joined, with a space between them, so that the tokens of all inputs are aligned at once.
    """
    segments = [segment for text_input in inputs for segment in text_input.segments]
    n_segments = np.array([len(text_input.segments) for text_input in inputs], np.int64)
    n_words = np.array([len(segment) for segment in segments], np.int64)
    sizes = np.array([len(segment.text) + 1 for segment in segments], np.int64)
    starts = np.cumsum(sizes) - sizes
    arrays = [segment.offsets.array for segment in segments if isinstance(segment.offsets, OffsetArray)]
    is_array = len(arrays) == len(segments)
    word_spans = np.concatenate(arrays) if is_array else _join_offsets(segment.offsets for segment in segments)
    word_spans += np.repeat(starts, n_words)[:, None]
    text = " ".join([sentence.text for sentence in segments])
    words, straddles = _align_offsets(spans + starts[segment][:, None], word_spans, text)
    # A blank token at the end of a text would belong to the first word of the next one.
    first_words = np.cumsum(n_words) - n_words
    words = np.where(words < (first_words + n_words)[segment], words, NO_WORD)
    first_segments = np.cumsum(n_segments) - n_segments
    first_of_input = np.append(first_words, len(word_spans))[first_segments][input_of_token]
    return np.where(words >= 0, words - first_of_input, NO_WORD), straddles
