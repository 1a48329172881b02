"""Recordings of models one cannot run: attention maps or hidden states that somebody else saved, with their tokens.

What makes numbers wrong is refused: shapes that do not fit the tokens, NaN, negative weights, rows that do not sum
to 1, words that the tokens do not spell.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertology.corpus.corpus import Corpus, Input, Item
from bertology.corpus.sentence import Sentence, sentence
from bertology.encoder.pieces import NOWHERE, Pieces, Special
from bertology.errors import Refusal
from bertology.recording.entry import Entry
from bertology.recording.plan import count_alignment
from bertology.recording.recording import EncoderCard, Recording
from bertology.recording.shards import Array
from bertology.recording.spelling import PADDING, UNKNOWN, align_by_characters, is_byte_level, special_kind, words_of

Part = Sentence | Sequence[str]
Words = Part | tuple[Part, ...]

DECIMALS = 1e-4
"""Published maps are often float16 rounded to four decimals: each weight may be off by half of this."""


def from_arrays(
    tokens: Sequence[Sequence[str]],
    *,
    attention: Sequence[ArrayLike] | None = None,
    hidden: Sequence[ArrayLike] | None = None,
    words: Sequence[Words | None] | None = None,
    name: str = "arrays",
    corpus: str = "arrays",
    causal: bool | None = None,
    reach: Sequence[int | None] = (),
    renormalise: bool = False,
) -> Recording:
    """A recording from plain arrays, one of each an input.

    `tokens` include the special ones ([CLS], </s>, ...); tokens after the first [SEP] are the second part of a pair.
    `attention` is (layer, head, from, to), `hidden` is (layer+1, piece, width), layer 0 the embeddings; at least one
    of them is there. `words` are those of the input: a list of strings or a `Sentence` with its annotation, two of
    them for a pair; where there are none the tokens are put together. `causal` says whether a piece sees only
    what is before it, and is seen from the maps where it is not given. `reach` says of each layer how many pieces away
    a piece sees, None for all; it is never guessed, as heads may look near by that could look further.

    Rows must sum to 1 up to rounding; `renormalise` divides them by their sum instead and counts those that were off.
    Padding at the end or at the beginning is cut away and counted. The ids of the pieces are numbered within the
    recording: equal tokens, equal ids.
    """
    if attention is None and hidden is None:
        raise Refusal("Neither attention nor hidden states were given", "arrays of at least one", "Give `attention`")
    _refuse_lengths(tokens, attention=attention, hidden=hidden, words=words)
    counts: Counter[str] = Counter(inputs=len(tokens))
    vocabulary = {token: number for number, token in enumerate(sorted({t for ts in tokens for t in ts}))}
    byte_level = is_byte_level(list(vocabulary))
    items: list[Item] = []
    entries: list[Entry] = []
    maps: list[Array] = []
    states: list[Array] = []
    for index, given in enumerate(tokens):
        kept = _without_padding(given, index)
        counts["padding pieces removed"] += len(given) - len(kept)
        where = f"Input {index + 1}"
        if attention is not None:
            whole = _checked(attention[index], (None, None, len(given), len(given)), where, "attention")
            cut = whole[:, :, kept.start : kept.stop, kept.start : kept.stop]
            maps.append(_with_sum_one(cut, where, renormalise, counts))
        if hidden is not None:
            states.append(_checked(hidden[index], (None, len(given), None), where, "hidden")[:, kept.start : kept.stop])
        own = [given[i] for i in kept]
        reading = _read(own, words[index] if words else None, vocabulary, byte_level, where)
        items.append(Item(reading.parts, "pair" if len(reading.parts) > 1 else "sentence"))
        entries.append(Entry(index, 0, 0, Input(reading.parts), reading.pieces))
    _refuse_different(maps, "attention", (0, 1))
    _refuse_different(states, "hidden", (0, 2))
    count_alignment(entries, counts)
    sites: dict[str, Sequence[Array]] = {"attention": maps} if maps else {}
    sites |= {"hidden": states} if states else {}
    layers = maps[0].shape[0] if maps else states[0].shape[0] - 1
    _refuse_reach(reach, layers, maps)
    card = EncoderCard(
        name,
        _fingerprint(tokens, sites),
        layers=layers,
        heads=maps[0].shape[1] if maps else 0,
        width=states[0].shape[2] if states else 0,
        causal=_is_causal(maps) if causal is None else causal,
        reach=tuple(reach),
    )
    policy = {"source": "arrays", "renormalise": renormalise}
    found = {key: count for key, count in counts.items() if count}
    return Recording(card, Corpus(tuple(items), name=corpus, format="arrays"), tuple(entries), sites, policy, found)


def _refuse_lengths(tokens: Sequence[Sequence[str]], **given: Sequence[Any] | None) -> None:
    if not tokens:
        raise Refusal("There are no inputs", "at least one list of tokens", "Give the tokens of each input")
    for name, values in given.items():
        if values is not None and len(values) != len(tokens):
            raise Refusal(
                f"There are {len(values)} {name} for {len(tokens)} inputs",
                f"one of `{name}` an input, in the same order as `tokens`",
                "Check that none is missing",
            )


def _without_padding(tokens: Sequence[str], index: int) -> range:
    real = [position for position, token in enumerate(tokens) if token not in PADDING]
    if not real or len(real) != real[-1] - real[0] + 1:
        raise Refusal(
            f"Input {index + 1} has {'padding between its tokens' if real else 'no tokens but padding'}",
            "tokens, with padding only before or after them",
            "Check the tokens, or leave this input out",
        )
    return range(real[0], real[-1] + 1)


def _checked(values: ArrayLike, shape: tuple[int | None, ...], where: str, site: str) -> Array:
    array = np.asarray(values)
    if array.dtype.kind not in "fiu":
        raise Refusal(f"{where} has {site} of type {array.dtype}", "real numbers", "Save it as float16 or float32")
    fits = array.ndim == len(shape) and all(want in (None, have) for want, have in zip(shape, array.shape, strict=True))
    if not fits or 0 in array.shape:
        axes = ("layer", "head", "from", "to") if site == "attention" else ("layer+1", "piece", "width")
        expected = ", ".join(f"{axis} {size}" if size else axis for axis, size in zip(axes, shape, strict=True))
        raise Refusal(
            f"{where} has {site} of shape {array.shape}",
            f"({expected}), as many pieces as tokens",
            "Check that tokens and arrays belong together, and take off a batch axis with array[0]",
        )
    if not np.isfinite(array).all():
        bad = int((~np.isfinite(array)).sum())
        raise Refusal(
            f"{where} has {bad} values in its {site} that are NaN or infinite",
            "finite numbers",
            "Save it again in float32: half precision may have overflowed; or leave this input out",
        )
    return array if array.dtype.name in {"float16", "float32"} else array.astype(np.float32)


def _with_sum_one(maps: Array, where: str, renormalise: bool, counts: Counter[str]) -> Array:
    sums = maps.sum(axis=-1, dtype=np.float64)
    # Half a unit of the fourth decimal a weight, and float16's own relative error.
    tolerance = maps.shape[-1] * DECIMALS / 2 + 2**-10
    if maps.min() < 0:
        raise Refusal(
            f"{where} has negative attention weights, {maps.min():.3g} the lowest",
            "weights after the softmax",
            "If these are scores, apply the softmax over the last axis first",
        )
    off = np.abs(sums - 1) > tolerance
    if not off.any():
        return maps
    layer, head, row = np.argwhere(off)[0]
    example = f"row {row + 1} of head {layer + 1}-{head + 1} sums to {sums[layer, head, row]:.4f}"
    if not renormalise:
        raise Refusal(
            f"{where} has {int(off.sum())} rows that do not sum to 1: {example}",
            f"rows that sum to 1 within {tolerance:.4f}",
            "Check that the last axis is the piece attended to; where weights were dropped on purpose, "
            "renormalise=True divides each row by its sum and counts it",
        )
    if (sums <= 0).any():
        raise Refusal(f"{where} has rows without any attention: {example}", "a positive sum", "Leave this input out")
    counts["rows renormalised"] += int(off.sum())
    return (maps / sums[..., None]).astype(np.float32)


@dataclass(frozen=True)
class _Reading:
    parts: tuple[Sentence, ...]
    pieces: Pieces


def _read(
    tokens: Sequence[str], words: Words | None, vocabulary: dict[str, int], byte_level: bool, where: str
) -> _Reading:
    """Which tokens are special, which part each belongs to, and which word."""
    special = np.asarray([special_kind(token) for token in tokens], np.int32)
    part = _parts(special)
    count = max(1, int(part.max()) + 1)
    of_part = [[i for i, own in enumerate(part.tolist()) if own == index] for index in range(count)]
    spelled = [words_of([tokens[i] for i in here], byte_level=byte_level) for here in of_part]
    given = _given_parts(words, where) if words is not None else tuple(sentence(own) for own in spelled)
    if len(given) != count:
        raise Refusal(
            f"{where} has {count} part{'s' * (count > 1)} by its [SEP] tokens and words for {len(given)}",
            "one list of words a part",
            "Give the words of a pair as a tuple of two lists",
        )
    word = np.full(len(tokens), NOWHERE, np.int32)
    straddling = first = 0
    for here, sentence_ in zip(of_part, given, strict=True):
        found = align_by_characters([tokens[i] for i in here], sentence_.words, byte_level=byte_level)
        if isinstance(found, int):
            raise _not_spelled(where, [tokens[i] for i in here], sentence_.words, found)
        aligned = np.asarray(found.word, np.int32)
        word[here] = np.where(aligned >= 0, aligned + first, NOWHERE)
        straddling += found.straddling
        first += len(sentence_)
    unknown = sum(token in UNKNOWN for token in tokens)
    ids = np.asarray([vocabulary[token] for token in tokens], np.int32)
    types = np.maximum.accumulate(np.maximum(part, 0)).astype(np.int32)
    return _Reading(given, Pieces(ids, tuple(tokens), types, part, word, special, first, straddling, unknown))


def _parts(special: NDArray[np.int32]) -> NDArray[np.int32]:
    """0 for ordinary tokens up to the first [SEP] behind one, 1 for those after it, -1 for special tokens."""
    ordinary = special == Special.NONE
    ends = np.flatnonzero((special == Special.SEP) & (np.cumsum(ordinary) > 0))
    after = np.arange(len(special)) > (ends[0] if len(ends) else len(special))
    return np.where(ordinary, after, NOWHERE).astype(np.int32)


def _given_parts(words: Words, where: str) -> tuple[Sentence, ...]:
    if isinstance(words, Sentence):
        return (words,)
    if not words or all(isinstance(word, str) for word in words):
        return (sentence(cast("Sequence[str]", words)),)
    if any(isinstance(part, str) for part in words):
        raise Refusal(
            f"{where} mixes words and lists of words", "a list of words, or two for a pair", "Correct `words`"
        )
    parts = cast("Sequence[Part]", words)
    return tuple(part if isinstance(part, Sentence) else sentence(part) for part in parts)


def _not_spelled(where: str, tokens: Sequence[str], words: Sequence[str], at: int) -> Refusal:
    near = " ".join(words[max(0, at - 2) : at + 3])
    return Refusal(
        f"{where}: its tokens ({' '.join(tokens[:8])} ...) do not spell its words from word {at + 1} on ({near})",
        "tokens that are the words cut into pieces, case and accents aside",
        "Check that tokens and words belong together, or leave the words out",
    )


def _refuse_different(arrays: Sequence[Array], site: str, axes: tuple[int, int]) -> None:
    for index, array in enumerate(arrays):
        here, first = ([a.shape[axis] for axis in axes] for a in (array, arrays[0]))
        if here != first:
            raise Refusal(
                f"Input {index + 1} has {site} of another size than input 1: {array.shape} and {arrays[0].shape}",
                "arrays of one model: as many layers, heads and dimensions everywhere",
                "Keep the arrays of different models in recordings of their own",
            )


def _refuse_reach(reach: Sequence[int | None], layers: int, maps: Sequence[Array]) -> None:
    if reach and len(reach) != layers:
        raise Refusal(
            f"`reach` says of {len(reach)} layers how far they see, and there are {layers}",
            "one number a layer, None for a layer that sees all",
            "Leave `reach` out where no layer looks through a window",
        )
    for layer, far in enumerate(reach):
        for index, array in enumerate(maps):
            if far is not None and (np.triu(array[layer], far + 1).any() or np.tril(array[layer], -far - 1).any()):
                raise Refusal(
                    f"Input {index + 1} has attention over more than {far} pieces in layer {layer + 1}",
                    "weights of 0 beyond what `reach` says",
                    "Correct `reach`: it counts the pieces to one side",
                )


def _is_causal(maps: Sequence[Array]) -> bool:
    """Whether no piece of any input looks ahead."""
    longer = [array for array in maps if array.shape[-1] > 1]
    return bool(longer) and not any(np.triu(array, 1).any() for array in longer)


def _fingerprint(tokens: Sequence[Sequence[str]], sites: dict[str, Sequence[Array]]) -> str:
    digest = hashlib.sha256(repr([list(map(str, given)) for given in tokens]).encode())
    for site, arrays in sites.items():
        digest.update(site.encode())
        for array in arrays:
            digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()[:32]
