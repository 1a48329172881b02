"""What an attention probe is trained and tested on: word-level maps, word vectors and gold heads, in padded batches.

Maps between words are kept whole, in float16: 2 bytes x layers x heads x words squared, about 110 kB a sentence of
running text for 144 heads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bertology.encoder.encoder import Encoder
from bertology.measures.word_vectors import word_vectors
from bertology.recording.annotation import word_heads, word_layer
from bertology.recording.entry import Entry
from bertology.recording.recording import Recording
from bertology.recording.sites import reduction

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attend import LayerActivations
    from bertology.maths.arc_probe import ArcBatch
    from bertology.recording.frame import Frame
    from bertology.recording.word_level import Words

Numbers = NDArray[Any]

WORDS_AT_ONCE = 512
"""Words in a batch, padding included: about thirty sentences."""


def _prepare(frame: Frame) -> Words:
    from bertology.recording.word_level import words_of

    return words_of(frame)


@reduction(
    "heads.probe.words",
    axes=("from_word", "to_word"),
    about="attention between words in float16: 2 bytes x layers x heads x words squared; only for probes",
    prepare=_prepare,
)
def MAPS(layer: LayerActivations, frame: Frame, prepared: Words) -> Tensor:
    """(batch, head, from_word, to_word)."""
    from bertology.recording.word_level import to_words

    return to_words(layer.attention, prepared).half()


@reduction(
    "heads.probe.edges",
    axes=("word", "place"),
    labels=("to [CLS]", "to [SEP]", "from [CLS]", "from [SEP]"),
    about="attention between each word and the special tokens around the sentence, in float16",
    prepare=_prepare,
)
def EDGES(layer: LayerActivations, frame: Frame, prepared: Words) -> Tensor:
    """(batch, head, word, 4)."""
    import torch

    from bertology.recording.word_level import Place, to_words

    maps, words = to_words(layer.attention, prepared, special=True), prepared.count
    places = slice(words + Place.CLS, words + Place.SEP + 1)
    given, got = maps[..., :words, places], maps[..., places, :words].transpose(-1, -2)
    return torch.cat([given, got], -1).half()


@dataclass(frozen=True)
class Lessons:
    """Sentences with trees, in an order of their own: `maps` is (map, from, to), `edges` (map, word, 4) an entry."""

    entries: tuple[Entry, ...]
    maps: tuple[Numbers, ...]
    edges: tuple[Numbers, ...]
    vectors: tuple[Numbers, ...]


def lessons(recording: Recording, table: Encoder, chosen: Sequence[int]) -> Lessons:
    """The chosen entries that have a tree, in an order that depends on their words alone."""
    kept = [i for i in chosen if any(head is not None for head in word_heads(recording.entries[i]))]
    kept.sort(key=lambda i: recording.entries[i].input.words)
    entries = tuple(recording.entries[i] for i in kept)
    maps, edges = (tuple(_all_heads(recording[site][i]) for i in kept) for site in (MAPS, EDGES))
    return Lessons(entries, maps, edges, tuple(word_vectors(table, entries)))


def _all_heads(array: Numbers) -> Numbers:
    return array.reshape(-1, *array.shape[2:])


def gold_heads(entry: Entry) -> Numbers:
    """(word,) each word's head as a candidate: 0 the ROOT, w + 1 the word w; -1 for words that do not count."""
    present = set(entry.pieces.word.tolist())
    found = [
        -1 if head is None or word not in present or (head >= 0 and head not in present) else head + 1
        for word, head in enumerate(word_heads(entry))
    ]
    return np.array(found, np.int64)


def scored(entry: Entry) -> Numbers:
    """(word,) which words the score counts: those with a head that are no punctuation."""
    plain = [(relation or "").split(":")[0] != "punct" for relation in word_layer(entry, "relations")]
    return np.array(plain, np.bool_) & (gold_heads(entry) >= 0)


def batched(lessons: Lessons) -> list[tuple[tuple[int, ...], ArcBatch]]:
    """Sentences of similar length together, each batch with the places of its sentences."""
    from bertology.recording.plan import batches

    lengths = [len(vectors) for vectors in lessons.vectors]
    return [(some, _padded(lessons, some)) for some in batches(lengths, WORDS_AT_ONCE)]


def _padded(lessons: Lessons, some: Sequence[int]) -> ArcBatch:
    import torch

    from bertology.maths.arc_probe import UNSCORED, ArcBatch

    count, width = max(len(lessons.vectors[i]) for i in some), lessons.vectors[some[0]].shape[1]
    heads = len(lessons.maps[some[0]])
    maps = torch.zeros(len(some), count, heads, count, dtype=torch.float16)
    edges = torch.zeros(len(some), count, heads, 4, dtype=torch.float16)
    vectors = torch.zeros(len(some), count, width)
    gold = torch.full((len(some), count), UNSCORED)
    there = torch.zeros(len(some), count, dtype=torch.bool)
    for row, i in enumerate(some):
        n = len(lessons.vectors[i])
        maps[row, :n, :, :n] = torch.from_numpy(np.array(lessons.maps[i])).transpose(0, 1)
        edges[row, :n] = torch.from_numpy(np.array(lessons.edges[i])).transpose(0, 1)
        vectors[row, :n] = torch.from_numpy(lessons.vectors[i])
        gold[row, :n] = torch.from_numpy(gold_heads(lessons.entries[i]))
        there[row, :n] = True
    return ArcBatch(maps, edges, vectors, gold, there)
