"""Pairs of occurrences of one word, with the same sense or not: sampled from annotated senses, or read from WiC."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertology.analyses.probing.dataset import WORD_SITE
from bertology.analyses.probing.train_test_split import TrainTestSplit, train_mask
from bertology.analyses.word_senses.occurrences import (
    SenseAnnotations,
    WordOccurrences,
    collect_occurrences,
    last_layers,
    sense_occurrences,
)
from bertology.corpus.readers.wic import DIFFERENT, SAME
from bertology.corpus.sentence import Sentence
from bertology.encoder.encoder import Encoder
from bertology.errors import Refusal
from bertology.numerics.nearest_neighbours import FloatArray, IndexArray
from bertology.recording.recording import Recording

TARGET = "target"


@dataclass(frozen=True)
class OccurrencePairs:
    """Indices of the two occurrences of each pair, and whether they have the same sense."""

    first: IndexArray
    second: IndexArray
    same_sense: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.first)

    def subset(self, mask: NDArray[np.bool_]) -> OccurrencePairs:
        """The pairs selected by a mask."""
        return OccurrencePairs(self.first[mask], self.second[mask], self.same_sense[mask])


@dataclass(frozen=True)
class OccurrencePairSplits:
    """For each split, the pairs of `train` to choose a threshold on and the pairs of `test` to score.

    `unused` are training sentences left out, as entries of the sample.
    """

    train: WordOccurrences
    test: WordOccurrences
    pair_splits: tuple[tuple[OccurrencePairs, OccurrencePairs], ...]
    unused: Mapping[str, int]


def build_pair_splits(
    recording: Recording, encoder: Encoder | None, split: TrainTestSplit, *, analysis_name: str
) -> OccurrencePairSplits:
    """Pairs sampled for each seed from a sense-annotated corpus, or the pairs of a WiC corpus.

    Both halves come from the recording, or the first from --train-corpus.
    """
    unused: dict[str, int] = {}
    if split.train_corpus:
        data = split.split(recording, encoder, (WORD_SITE,), analysis_name=analysis_name, annotations=())
        first, second = _collect_pairable(*data.train), _collect_pairable(*data.test)
        unused = data.sample
        halves = [(_make_pairs(*first, seed), _make_pairs(*second, seed)) for seed in split.seeds]
    else:
        first = second = _collect_pairable(recording, range(len(recording)))
        halves = [_split_pairs(*first, split.train_fraction, seed) for seed in split.seeds] if len(first[0]) else []
    pair_splits = tuple(half for half in halves if len(half[0]) and len(half[1]))
    if not pair_splits:
        raise Refusal(
            f"{analysis_name} found {len(second[0])} annotated words in {recording.corpus.name}, and "
            "no training and test pairs "
            "of one word from two documents",
            "a corpus in which words occur several times with each of two senses, or one in WiC format",
            "Use another corpus, for example english",
        )
    return OccurrencePairSplits(first[0], second[0], pair_splits, unused)


def _collect_pairable(recording: Recording, indices: Sequence[int]) -> tuple[WordOccurrences, OccurrencePairs | None]:
    """The annotated words, and the pairs of a corpus that has pairs instead of senses."""
    if recording.corpus.annotations["senses"]:
        return sense_occurrences(recording, indices), None
    occurrences = collect_occurrences(recording, indices, _target_annotations)
    return occurrences, _wic_pairs(occurrences)


def _make_pairs(occurrences: WordOccurrences, corpus_pairs: OccurrencePairs | None, seed: int) -> OccurrencePairs:
    if corpus_pairs is not None:
        return corpus_pairs
    return sample_pairs(occurrences, np.arange(len(occurrences)), np.random.default_rng([seed, 11]))


def _target_annotations(sentence: Sentence) -> SenseAnnotations:
    marked = sentence.marked_words.get(TARGET, ())
    return [(sentence.label, sentence, marked[0])] if marked and sentence.label in (SAME, DIFFERENT) else []


def _wic_pairs(occurrences: WordOccurrences) -> OccurrencePairs:
    """The pairs of a WiC corpus: the two sentences of each document."""
    by_pair: dict[str, list[int]] = defaultdict(list)
    for index, document in enumerate(occurrences.documents.tolist()):
        by_pair[document].append(index)
    complete = [indices for _, indices in sorted(by_pair.items()) if len(indices) == 2]
    pairs = np.array(complete, np.intp).reshape(-1, 2)
    return OccurrencePairs(pairs[:, 0], pairs[:, 1], occurrences.senses[pairs[:, 0]] == SAME)


def _split_pairs(
    occurrences: WordOccurrences, corpus_pairs: OccurrencePairs | None, train_fraction: float, seed: int
) -> tuple[OccurrencePairs, OccurrencePairs]:
    """Training pairs from a fraction of the documents, and test pairs from the others."""
    is_train = train_mask(occurrences.examples.inputs, train_fraction, seed=seed)[occurrences.examples.input_index]
    if corpus_pairs is not None:
        return corpus_pairs.subset(is_train[corpus_pairs.first]), corpus_pairs.subset(~is_train[corpus_pairs.first])
    generator = np.random.default_rng([seed, 11])
    train = sample_pairs(occurrences, np.flatnonzero(is_train), generator)
    return train, sample_pairs(occurrences, np.flatnonzero(~is_train), generator)


def sample_pairs(occurrences: WordOccurrences, indices: IndexArray, generator: np.random.Generator) -> OccurrencePairs:
    """As many same-sense as different-sense pairs of each word; no occurrence is in two pairs of one kind.

    Pairs cross documents, because a document has a topic, and its words tend to share a sense.
    """
    pairs: list[tuple[int, int, bool]] = []
    for lemma in sorted(set(occurrences.lemmas[indices].tolist())):
        order = generator.permutation(indices[occurrences.lemmas[indices] == lemma]).tolist()
        same, different = (_match_pairs(occurrences, order, same_sense) for same_sense in (True, False))
        for same_pair, different_pair in zip(same, different, strict=False):
            pairs += [(*same_pair, True), (*different_pair, False)]
    columns = np.array(pairs, np.intp).reshape(-1, 3)
    return OccurrencePairs(columns[:, 0], columns[:, 1], columns[:, 2].astype(np.bool_))


def _match_pairs(occurrences: WordOccurrences, order: list[int], same_sense: bool) -> list[tuple[int, int]]:
    """Pair each occurrence with the next free one from another document with the same, or another, sense."""
    free = list(order)
    pairs: list[tuple[int, int]] = []
    while free:
        first = free.pop(0)
        candidates = (
            other
            for other in free
            if (occurrences.senses[other] == occurrences.senses[first]) == same_sense
            and occurrences.documents[other] != occurrences.documents[first]
        )
        second = next(candidates, None)
        if second is not None:
            free.remove(second)
            pairs.append((first, second))
    return pairs


def pair_cosines(occurrences: WordOccurrences, pairs: OccurrencePairs) -> FloatArray:
    """(layer + 1, pair) cosines in each layer, then in the last four layers concatenated."""
    first, second = (
        occurrences.examples.features[:, indices].astype(np.float64) for indices in (pairs.first, pairs.second)
    )
    last = last_layers(len(first))

    def append_last_layers(sums: NDArray[Any]) -> FloatArray:
        return np.concatenate([sums, sums[last].sum(0, keepdims=True)])

    products = append_last_layers((first * second).sum(-1))
    scale = np.sqrt(append_last_layers(np.square(first).sum(-1)) * append_last_layers(np.square(second).sum(-1)))
    return np.divide(products, scale, out=np.zeros_like(products), where=scale > 0)
