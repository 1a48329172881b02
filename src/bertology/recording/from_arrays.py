"""Recordings of models that cannot be run here: attention or hidden states saved elsewhere, with their tokens.

Input that would give wrong numbers is refused: shapes that do not fit the tokens, NaN, negative weights, rows that do
not sum to 1, words that the tokens do not spell.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertology.arrays import Array
from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example, TextInput
from bertology.corpus.sentence import Sentence, sentence_from_words
from bertology.encoder.token_batch import RecordedInput
from bertology.encoder.tokens import NO_WORD, SpecialToken, TokenisedInput
from bertology.errors import Refusal
from bertology.recording.character_alignment import (
    PADDING_TOKENS,
    UNKNOWN_TOKENS,
    SubwordMarker,
    align_by_characters,
    join_tokens,
    special_kind,
    subword_marker,
)
from bertology.recording.plan import count_alignment
from bertology.recording.recording import EncoderSummary, Recording
from bertology.recording.sites import RAW_SITES

SegmentWords = Sentence | Sequence[str]
InputWords = SegmentWords | tuple[SegmentWords, ...] | Example

NO_SPECIAL_TOKENS: Mapping[str, SpecialToken] = MappingProxyType({})
ROUNDING_STEP = 1e-4
"""Published attention is often float16 rounded to four decimals: each weight may be off by half of this."""


def from_arrays(
    tokens: Sequence[Sequence[str]],
    *,
    attention: Sequence[ArrayLike] | None = None,
    hidden: Sequence[ArrayLike] | None = None,
    words: Sequence[InputWords | None] | None = None,
    name: str = "arrays",
    corpus: str = "arrays",
    causal: bool | None = None,
    attention_windows: Sequence[int | None] = (),
    renormalise: bool = False,
    special_tokens: Mapping[str, SpecialToken] = NO_SPECIAL_TOKENS,
) -> Recording:
    """A recording from plain arrays, one per input.

    `tokens` include special tokens ([CLS], </s>, ...); tokens after the first [SEP] are the second segment of a pair.
    `attention` is (layer, head, from, to), `hidden` is (layer+1, token, width) with the embeddings as layer 0; at least
    one of them is required. `words` are the words of each input: a list of strings or an annotated `Sentence`, a tuple
    of two for a pair, or an `Example` of a corpus; without them, words are joined from the tokens. `causal` says
    whether a token attends to earlier tokens only; by default it is inferred from the attention. `attention_windows`
    is the number of tokens to one side that each layer attends to, None for all; it is never inferred, because heads
    may attend locally without a window. `special_tokens` are special tokens with unusual spellings and their kinds.

    Rows must sum to 1 up to rounding; `renormalise` divides them by their sum instead, and counts those that did not.
    Padding at the end or at the beginning is removed and counted. Token ids are assigned within the recording: equal
    tokens have equal ids.
    """
    if attention is None and hidden is None:
        raise Refusal("Neither attention nor hidden states were given", "arrays of at least one", "Give `attention`")
    _check_lengths(tokens, attention=attention, hidden=hidden, words=words)
    counts: Counter[str] = Counter(inputs=len(tokens))
    vocabulary = {token: index for index, token in enumerate(sorted({t for ts in tokens for t in ts}))}
    marker = subword_marker(vocabulary.keys() - special_tokens.keys())
    examples: list[Example] = []
    inputs: list[RecordedInput] = []
    weights: list[Array] = []
    states: list[Array] = []
    for index, padded_tokens in enumerate(tokens):
        n_tokens = len(padded_tokens)
        token_range = _token_range(padded_tokens, index)
        counts["padding tokens removed"] += n_tokens - len(token_range)
        location = f"Input {index + 1}"
        if attention is not None:
            padded = _check_array(attention[index], (None, None, n_tokens, n_tokens), location, "attention")
            unpadded = padded[:, :, token_range.start : token_range.stop, token_range.start : token_range.stop]
            weights.append(_normalise_rows(unpadded, location, renormalise, counts))
        if hidden is not None:
            padded = _check_array(hidden[index], (None, n_tokens, None), location, "hidden")
            states.append(padded[:, token_range.start : token_range.stop])
        input_tokens = [padded_tokens[i] for i in token_range]
        kinds = [_special_kind(token, special_tokens) for token in input_tokens]
        given = words[index] if words else None
        text, tokenised = _align_tokens(input_tokens, kinds, given, vocabulary, marker, location)
        examples.append(given if isinstance(given, Example) else _make_example(text))
        inputs.append(RecordedInput(index, 0, 0, text, tokenised))
    _check_same_sizes(weights, "attention", (0, 1))
    _check_same_sizes(states, "hidden", (0, 2))
    count_alignment(inputs, counts)
    sites: dict[str, Sequence[Array]] = {"attention": weights} if weights else {}
    sites |= {"hidden": states} if states else {}
    layers = weights[0].shape[0] if weights else states[0].shape[0] - 1
    _check_attention_windows(attention_windows, layers, weights)
    encoder = EncoderSummary(
        name,
        _fingerprint(tokens, sites),
        layers=layers,
        heads=weights[0].shape[1] if weights else 0,
        width=states[0].shape[2] if states else 0,
        causal=_is_causal(weights) if causal is None else causal,
        attention_windows=tuple(attention_windows),
    )
    return Recording(
        encoder,
        Corpus(tuple(examples), name=corpus, format="arrays"),
        tuple(inputs),
        sites,
        {"source": "arrays", "renormalise": renormalise},
        {name: count for name, count in counts.items() if count},
    )


def _check_lengths(tokens: Sequence[Sequence[str]], **arrays: Sequence[Any] | None) -> None:
    if not tokens:
        raise Refusal("No inputs were given", "at least one list of tokens", "Give the tokens of each input")
    for name, values in arrays.items():
        if values is not None and len(values) != len(tokens):
            raise Refusal(
                f"There are {len(values)} {name} for {len(tokens)} inputs",
                f"one element of `{name}` per input, in the order of `tokens`",
                "Check that none is missing",
            )


def _token_range(tokens: Sequence[str], input_index: int) -> range:
    positions = [position for position, token in enumerate(tokens) if token not in PADDING_TOKENS]
    if not positions or len(positions) != positions[-1] - positions[0] + 1:
        raise Refusal(
            f"Input {input_index + 1} has {'padding between its tokens' if positions else 'no tokens but padding'}",
            "tokens, with padding only before or after them",
            "Check the tokens, or leave this input out",
        )
    return range(positions[0], positions[-1] + 1)


def _check_array(values: ArrayLike, shape: tuple[int | None, ...], location: str, site: str) -> Array:
    array = np.asarray(values)
    if array.dtype.kind not in "fiu":
        raise Refusal(f"{location} has {site} of type {array.dtype}", "real numbers", "Save it as float16 or float32")
    matches = array.ndim == len(shape) and all(
        expected in (None, actual) for expected, actual in zip(shape, array.shape, strict=True)
    )
    if not matches or 0 in array.shape:
        axes = zip(RAW_SITES[site].axes, shape, strict=True)
        expected_shape = ", ".join(f"{axis} {size}" if size else axis for axis, size in axes)
        raise Refusal(
            f"{location} has {site} of shape {array.shape}",
            f"({expected_shape}), with one position per token",
            "Check that tokens and arrays belong together, and remove a batch axis with array[0]",
        )
    if not np.isfinite(array).all():
        n_invalid = int((~np.isfinite(array)).sum())
        raise Refusal(
            f"{location} has {n_invalid} values of {site} that are NaN or infinite",
            "finite numbers",
            "Save it again in float32: half precision may have overflowed; or leave this input out",
        )
    return array if array.dtype.name in {"float16", "float32"} else array.astype(np.float32)


def _normalise_rows(attention: Array, location: str, renormalise: bool, counts: Counter[str]) -> Array:
    sums = attention.sum(axis=-1, dtype=np.float64)
    # Half a unit of the fourth decimal per weight, and the relative error of float16.
    tolerance = attention.shape[-1] * ROUNDING_STEP / 2 + 2**-10
    if attention.min() < 0:
        raise Refusal(
            f"{location} has negative attention weights (lowest: {attention.min():.3g})",
            "weights after the softmax",
            "If these are scores, apply the softmax over the last axis first",
        )
    is_off = np.abs(sums - 1) > tolerance
    if not is_off.any():
        return attention
    layer, head, row = np.argwhere(is_off)[0]
    example = f"row {row + 1} of head {layer + 1}-{head + 1} sums to {sums[layer, head, row]:.4f}"
    if not renormalise:
        raise Refusal(
            f"{location} has {int(is_off.sum())} rows that do not sum to 1: {example}",
            f"rows that sum to 1 within {tolerance:.4f}",
            "Check that the last axis is the attended token; if weights were dropped on purpose, "
            "renormalise=True divides each row by its sum and counts it",
        )
    if (sums <= 0).any():
        raise Refusal(f"{location} has rows without attention: {example}", "a positive sum", "Leave this input out")
    counts["rows renormalised"] += int(is_off.sum())
    return (attention / sums[..., None]).astype(np.float32)


def _make_example(text: TextInput) -> Example:
    first = text.segments[0]
    return Example(text.segments, "pair" if len(text.segments) > 1 else "sentence", first.label, id=first.id)


def _special_kind(token: str, special_tokens: Mapping[str, SpecialToken]) -> SpecialToken:
    usual = special_kind(token)
    return special_tokens.get(token, usual) if usual is SpecialToken.NONE else usual


def _align_tokens(
    tokens: Sequence[str],
    kinds: Sequence[SpecialToken],
    words: InputWords | None,
    vocabulary: dict[str, int],
    marker: SubwordMarker,
    location: str,
) -> tuple[TextInput, TokenisedInput]:
    """The segments of an input, and its tokens with their special kinds, segments and words."""
    special_kinds = np.asarray(kinds, np.int32)
    segment_ids = _segment_ids(special_kinds)
    n_segments = max(1, int(segment_ids.max()) + 1)
    positions = [np.flatnonzero(segment_ids == index).tolist() for index in range(n_segments)]
    segment_tokens = [[tokens[i] for i in segment_positions] for segment_positions in positions]
    if words is None:
        segments = tuple(sentence_from_words(join_tokens(part, marker)) for part in segment_tokens)
    else:
        segments = _parse_words(words, location)
    if len(segments) != n_segments:
        raise Refusal(
            f"{location} has {n_segments} segment{'s' * (n_segments > 1)} by its [SEP] tokens "
            f"and words for {len(segments)}",
            "one list of words per segment",
            "Give the words of a pair as a tuple of two lists",
        )
    word_ids = np.full(len(tokens), NO_WORD, np.int32)
    n_straddling = first_word = 0
    for segment_positions, part, sentence in zip(positions, segment_tokens, segments, strict=True):
        alignment = align_by_characters(part, sentence.words, marker)
        if isinstance(alignment, int):
            raise _spelling_refusal(location, part, sentence.words, alignment)
        aligned = np.asarray(alignment.word_ids, np.int32)
        word_ids[segment_positions] = np.where(aligned >= 0, aligned + first_word, NO_WORD)
        n_straddling += alignment.n_straddling
        first_word += len(sentence)
    ids = np.asarray([vocabulary[token] for token in tokens], np.int32)
    type_ids = np.maximum.accumulate(np.maximum(segment_ids, 0)).astype(np.int32)
    return TextInput(segments), TokenisedInput(
        ids,
        tuple(tokens),
        type_ids,
        segment_ids,
        word_ids,
        special_kinds,
        n_words=first_word,
        n_straddling=n_straddling,
        n_unknown=sum(token in UNKNOWN_TOKENS for token in tokens),
    )


def _segment_ids(special_kinds: NDArray[np.int32]) -> NDArray[np.int32]:
    """0 for non-special tokens before the first [SEP] that follows one, 1 for those after it, -1 for special tokens."""
    non_special = special_kinds == SpecialToken.NONE
    separators = np.flatnonzero((special_kinds == SpecialToken.SEP) & (np.cumsum(non_special) > 0))
    is_second = np.arange(len(special_kinds)) > (separators[0] if len(separators) else len(special_kinds))
    return np.where(non_special, is_second, NO_WORD).astype(np.int32)


def _parse_words(words: InputWords, location: str) -> tuple[Sentence, ...]:
    if isinstance(words, Example):
        if len(words.text_inputs) != 1:
            raise Refusal(
                f"{location} is an example of kind {words.kind}, which has {len(words.text_inputs)} inputs",
                "an example with one input: a sentence, a pair or a question",
                "Give the words of each input instead",
            )
        return words.segments
    if isinstance(words, Sentence):
        return (words,)
    if not words or all(isinstance(word, str) for word in words):
        return (sentence_from_words(cast("Sequence[str]", words)),)
    if any(isinstance(segment, str) for segment in words):
        raise Refusal(
            f"{location} mixes words and lists of words", "a list of words, or two for a pair", "Correct `words`"
        )
    segments = cast("Sequence[SegmentWords]", words)
    return tuple(s if isinstance(s, Sentence) else sentence_from_words(s) for s in segments)


def _spelling_refusal(location: str, tokens: Sequence[str], words: Sequence[str], word_index: int) -> Refusal:
    excerpt = " ".join(words[max(0, word_index - 2) : word_index + 3])
    return Refusal(
        f"{location}: the tokens ({' '.join(tokens[:8])} ...) do not spell the words "
        f"from word {word_index + 1} on ({excerpt})",
        "tokens that spell the words, apart from case and accents",
        "Check that tokens and words belong together, or leave the words out",
    )


def _check_same_sizes(arrays: Sequence[Array], site: str, axes: tuple[int, int]) -> None:
    for index, array in enumerate(arrays):
        sizes, first_sizes = ([a.shape[axis] for axis in axes] for a in (array, arrays[0]))
        if sizes != first_sizes:
            raise Refusal(
                f"Input {index + 1} has {site} of another size than input 1: {array.shape} and {arrays[0].shape}",
                "arrays of one model, with equal numbers of layers, heads and dimensions",
                "Make a separate recording for each model",
            )


def _check_attention_windows(attention_windows: Sequence[int | None], layers: int, attention: Sequence[Array]) -> None:
    if attention_windows and len(attention_windows) != layers:
        raise Refusal(
            f"`attention_windows` has {len(attention_windows)} elements for {layers} layers",
            "one number per layer, None for a layer without a window",
            "Leave `attention_windows` out if no layer has a window",
        )
    for layer, window in enumerate(attention_windows):
        for index, array in enumerate(attention):
            if window is None:
                continue
            if np.triu(array[layer], window + 1).any() or np.tril(array[layer], -window - 1).any():
                raise Refusal(
                    f"Input {index + 1} has attention over more than {window} tokens in layer {layer + 1}",
                    "weights of 0 outside the attention window",
                    "Correct `attention_windows`: it counts the tokens to one side",
                )


def _is_causal(attention: Sequence[Array]) -> bool:
    """Whether no token of any input attends to later tokens."""
    longer = [array for array in attention if array.shape[-1] > 1]
    return bool(longer) and not any(np.triu(array, 1).any() for array in longer)


def _fingerprint(tokens: Sequence[Sequence[str]], sites: dict[str, Sequence[Array]]) -> str:
    digest = hashlib.sha256(repr([list(map(str, input_tokens)) for input_tokens in tokens]).encode())
    for site, arrays in sites.items():
        digest.update(site.encode())
        for array in arrays:
            digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()[:32]
