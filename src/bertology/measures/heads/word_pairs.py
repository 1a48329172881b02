"""Pairs of words with a dependency relation, and pairs without one to tell them from (reif2019, section 3.1)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertology.recording.annotation import word_heads, word_layer
from bertology.recording.entry import Entry
from bertology.recording.recording import Recording
from bertology.recording.sites import ReducedSite

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attend import LayerActivations
    from bertology.recording.frame import Frame
    from bertology.recording.word_level import Words

Numbers = NDArray[Any]
Negatives = Literal["any", "matched"]

DIRECTIONS = 2
NONE = -1


class _Prepared(NamedTuple):
    """`places` are the batch row, word, pair, dependent and head of each pair of a batch; `pairs` a word."""

    words: Words
    places: tuple[Tensor, ...]
    pairs: int


def pairs_of(entry: Entry, negatives: Negatives, draws: Sequence[int]) -> Numbers:
    """(word, 1 + draw, 2): each word and its head, then a pair without a relation for each draw; `NONE` without.

    `any`: the word and any other word of its sentence that is neither its head nor its dependent. `matched`: two words
    of the sentence without a relation, as far apart and in the same order as the word and its head. Which it is
    depends on the words of the sentence and the draw alone.
    """
    heads, present = word_heads(entry), set(entry.pieces.word.tolist())
    edges = {(word, head) for word, head in enumerate(heads) if head is not None and head >= 0}
    related = edges | {(head, word) for word, head in edges}
    free = _same_part(entry) & _among(present, len(heads))
    for word, other in related:
        free[word, other] = False
    found = np.full((len(heads), 1 + len(draws), 2), NONE)
    for word, head in edges:
        if word in present and head in present:
            found[word, 0] = word, head
    for place, draw in enumerate(draws, start=1):
        generator = _generator(entry, draw)
        for word in np.flatnonzero(found[:, 0, 0] >= 0).tolist():
            step = int(found[word, 0, 1]) - word
            others = np.argwhere(free[word]) if negatives == "any" else np.argwhere(np.diagonal(free, step))
            if len(others):
                chosen = int(others[generator.integers(len(others)), 0])
                start = word if negatives == "any" else chosen + max(0, -step)
                found[word, place] = start, chosen if negatives == "any" else start + step
    return found


def _same_part(entry: Entry) -> NDArray[np.bool_]:
    """(word, word) which are different words of one sentence."""
    part = np.repeat(np.arange(len(entry.input.parts)), [len(part) for part in entry.input.parts])
    return (part[:, None] == part[None, :]) & ~np.eye(len(part), dtype=np.bool_)


def _among(present: set[int], words: int) -> NDArray[np.bool_]:
    there = np.array([word in present for word in range(words)], np.bool_)
    return there[:, None] & there[None, :]


def _generator(entry: Entry, draw: int) -> np.random.Generator:
    digest = hashlib.sha256("\n".join([str(draw), *entry.input.words]).encode("utf-8", "surrogatepass")).digest()
    return np.random.default_rng(int.from_bytes(digest[:8], "little"))


@cache
def pair_attention(negatives: Negatives, draws: tuple[int, ...]) -> ReducedSite:
    """The site that holds each pair's attention: (word, pair, direction), from dependent to head and back."""
    numbers = "_".join(str(draw) for draw in draws)
    return ReducedSite(
        f"heads.relations.{negatives}.{numbers}",
        ("word", "pair", "direction"),
        "attention from each word to its head and back, and between words without a relation",
        _reduce,
        prepare=_prepared(negatives, draws),
    )


def _prepared(negatives: Negatives, draws: tuple[int, ...]) -> Callable[[Frame], _Prepared]:
    def prepare(frame: Frame) -> _Prepared:
        import torch

        from bertology.recording.word_level import words_of

        found: list[Numbers] = [np.zeros((0, 5), np.int64)]
        for row, entry in enumerate(frame.entries):
            pairs = pairs_of(entry, negatives, draws)
            word, pair = np.nonzero(pairs[..., 0] >= 0)
            found.append(np.column_stack([np.full(len(word), row), word, pair, pairs[word, pair]]))
        places = torch.from_numpy(np.concatenate(found).astype(np.int64)).to(frame.device)
        return _Prepared(words_of(frame), places.unbind(1), 1 + len(draws))

    return prepare


def _reduce(layer: LayerActivations, frame: Frame, prepared: _Prepared) -> Tensor:
    """(batch, head, word, pair, 2); NaN where there is no such pair."""
    import torch

    from bertology.recording.word_level import to_words

    maps = to_words(layer.attention, prepared.words)
    row, word, pair, dependent, head = prepared.places
    found = maps.new_full((*maps.shape[:2], prepared.words.count, prepared.pairs, DIRECTIONS), torch.nan)
    found[row, :, word, pair, 0] = maps[row, :, dependent, head]
    found[row, :, word, pair, 1] = maps[row, :, head, dependent]
    return found


@dataclass(frozen=True)
class Pairs:
    """Words with a head: `features` is (word, 1 + draw, direction x head), `offsets` and `forms` (word, 1 + draw).

    The first pair is the word and its head, the others are pairs without a relation; NaN where there is none.
    """

    sentence: Numbers
    relation: Numbers
    features: Numbers
    offsets: Numbers
    forms: Numbers

    def only(self, kept: Numbers) -> Pairs:
        """The words chosen."""
        return Pairs(*(getattr(self, name)[kept] for name in self.__dataclass_fields__))

    @property
    def drawn(self) -> Numbers:
        """(draw, word): whether there is such a pair without a relation."""
        return np.isfinite(self.features[:, 1:, 0]).T


def recorded_pairs(recording: Recording, places: Sequence[int], negatives: Negatives, draws: tuple[int, ...]) -> Pairs:
    """The pairs of the entries at these places, in an order that depends on the entries' words alone."""
    values = recording[pair_attention(negatives, draws)]
    width = recording.encoder.layers * recording.encoder.heads * DIRECTIONS
    parts: list[Pairs] = [_empty(len(draws), width)]
    for number, place in enumerate(sorted(places, key=lambda i: recording.entries[i].input.words)):
        entry = recording.entries[place]
        named = np.array([relation or "" for relation in word_layer(entry, "relations")], object)
        pairs = pairs_of(entry, negatives, draws)
        plain = np.array([name.split(":")[0] != "punct" for name in named], np.bool_)
        own = np.flatnonzero((pairs[:, 0, 0] >= 0) & plain)
        # (layer, head, word, pair, direction) -> (word, pair, direction, layer, head)
        attention = (
            np.asarray(values[place])[:, :, own].transpose(2, 3, 4, 0, 1).reshape(len(own), 1 + len(draws), width)
        )
        forms = np.array([word.lower() for word in entry.input.words], object)[pairs[own, :, 0]]
        steps = pairs[own, :, 1] - pairs[own, :, 0]
        parts.append(Pairs(np.full(len(own), number), named[own], attention.astype(np.float32), steps, forms))
    return Pairs(*(np.concatenate([getattr(part, name) for part in parts]) for name in Pairs.__dataclass_fields__))


def _empty(draws: int, width: int) -> Pairs:
    pairs = (0, 1 + draws)
    return Pairs(
        np.zeros(0, np.int64),
        np.zeros(0, object),
        np.zeros((*pairs, width), np.float32),
        np.zeros(pairs, np.int64),
        np.zeros(pairs, object),
    )
