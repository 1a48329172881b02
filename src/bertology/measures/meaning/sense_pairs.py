"""Pairs of occurrences of one word, with the same sense or not: drawn from annotated senses, or read as pairs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertology.corpus.readers.wic import OTHER, SAME
from bertology.corpus.sentence import Sentence
from bertology.encoder.encoder import Encoder
from bertology.errors import Refusal
from bertology.maths.neighbours import Floats, Places
from bertology.measures.division import Division, training_part
from bertology.measures.meaning.sense_material import (
    Occurrences,
    Occurring,
    gathered,
    last_layers,
    occurrences,
)
from bertology.measures.probes.probe_material import WORD_SITE
from bertology.recording.recording import Recording

TARGET = "target"


@dataclass(frozen=True)
class Pairs:
    """Places of two occurrences each, and whether they have the same sense."""

    first: Places
    second: Places
    same: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.first)

    def only(self, kept: NDArray[np.bool_]) -> Pairs:
        """Some of the pairs."""
        return Pairs(self.first[kept], self.second[kept], self.same[kept])


@dataclass(frozen=True)
class PairMaterial:
    """For each division the pairs to choose a threshold on, of `known`, and those to report on, of `asked`."""

    known: Occurrences
    asked: Occurrences
    halves: tuple[tuple[Pairs, Pairs], ...]


def pair_material(
    recording: Recording, encoder: Encoder | None, division: Division, seeds: int, *, purpose: str
) -> PairMaterial:
    """Pairs drawn anew for each seed from a corpus with senses, or the pairs of a corpus of such.

    Both halves are of the recording, or the first is of another corpus.
    """
    chosen = range(division.seed, division.seed + seeds)
    if division.corpus:
        first, second = (
            _pairable(*part) for part in division.parts(recording, encoder, (WORD_SITE,), purpose=purpose, layers=())
        )
        halves = [(_pairs(*first, seed), _pairs(*second, seed)) for seed in chosen]
    else:
        first = second = _pairable(recording, range(len(recording)))
        halves = [_halves(*first, division.share, seed) for seed in chosen] if len(first[0]) else []
    kept = tuple(half for half in halves if len(half[0]) and len(half[1]))
    if not kept:
        raise Refusal(
            f"{purpose} found {len(second[0])} words with a sense or a mark in {recording.corpus.name}, and no pairs "
            "of one word from two documents to choose a threshold on and to report on",
            "a corpus in which words occur several times with each of two senses, or pairs in the form of WiC",
            "Give another corpus, for example english",
        )
    return PairMaterial(first[0], second[0], kept)


def _pairable(recording: Recording, places: Sequence[int]) -> tuple[Occurrences, Pairs | None]:
    """The words that can make pairs; and the pairs themselves, where the corpus has pairs and no senses."""
    if recording.corpus.layers["senses"]:
        return occurrences(recording, places), None
    own = gathered(recording, places, _with_mark)
    return own, _read(own)


def _pairs(own: Occurrences, read: Pairs | None, seed: int) -> Pairs:
    return drawn(own, np.arange(len(own)), np.random.default_rng([seed, 11])) if read is None else read


def _with_mark(part: Sentence) -> Occurring:
    marked = part.marks.get(TARGET, ())
    return [(part.label, part, marked[0])] if marked and part.label in (SAME, OTHER) else []


def _read(own: Occurrences) -> Pairs:
    """The pairs of WiC: two sentences of one document each."""
    by_pair: dict[str, list[int]] = defaultdict(list)
    for place, document in enumerate(own.documents.tolist()):
        by_pair[document].append(place)
    whole = [places for _, places in sorted(by_pair.items()) if len(places) == 2]
    table = np.array(whole, np.intp).reshape(-1, 2)
    return Pairs(table[:, 0], table[:, 1], own.sense[table[:, 0]] == SAME)


def _halves(own: Occurrences, read: Pairs | None, share: float, seed: int) -> tuple[Pairs, Pairs]:
    """Pairs of the documents that belong to the share, and of the others."""
    chosen = training_part(own.examples.entries, share, seed=seed)[own.examples.entry]
    if read is not None:
        return read.only(chosen[read.first]), read.only(~chosen[read.first])
    generator = np.random.default_rng([seed, 11])
    return drawn(own, np.flatnonzero(chosen), generator), drawn(own, np.flatnonzero(~chosen), generator)


def drawn(own: Occurrences, places: Places, generator: np.random.Generator) -> Pairs:
    """As many pairs of the same sense as of different ones, of each word; no occurrence is in two of one kind.

    The two of a pair are from different documents, for a document has a topic, and neighbours in it share a sense.
    """
    found: list[tuple[int, int, bool]] = []
    for lemma in sorted(set(own.lemma[places].tolist())):
        order = generator.permutation(places[own.lemma[places] == lemma]).tolist()
        same, other = (_matched(own, order, kind) for kind in (True, False))
        for alike, apart in zip(same, other, strict=False):
            found += [(*alike, True), (*apart, False)]
    columns = np.array(found, np.intp).reshape(-1, 3)
    return Pairs(columns[:, 0], columns[:, 1], columns[:, 2].astype(np.bool_))


def _matched(own: Occurrences, order: list[int], same: bool) -> list[tuple[int, int]]:
    """Each occurrence with the next free one from another document that has the same sense, or another."""
    free = list(order)
    pairs: list[tuple[int, int]] = []
    while free:
        first = free.pop(0)
        fitting = (
            other
            for other in free
            if (own.sense[other] == own.sense[first]) == same and own.documents[other] != own.documents[first]
        )
        second = next(fitting, None)
        if second is not None:
            free.remove(second)
            pairs.append((first, second))
    return pairs


def pair_cosines(own: Occurrences, pairs: Pairs) -> Floats:
    """(layer + 1, pair) the cosine of each pair's vectors in each layer, then in the last four end to end."""
    first, second = (own.examples.features[:, places].astype(np.float64) for places in (pairs.first, pairs.second))
    last = last_layers(len(first))

    def with_last(sums: NDArray[Any]) -> Floats:
        return np.concatenate([sums, sums[last].sum(0, keepdims=True)])

    products = with_last((first * second).sum(-1))
    scale = np.sqrt(with_last(np.square(first).sum(-1)) * with_last(np.square(second).sum(-1)))
    return np.divide(products, scale, out=np.zeros_like(products), where=scale > 0)
