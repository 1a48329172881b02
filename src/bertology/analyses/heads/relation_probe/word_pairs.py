"""Word pairs with a dependency relation and negative pairs without one (Reif et al. 2019, section 3.1)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from bertology.analyses.word_relations import segment_of_words
from bertology.arrays import Array
from bertology.encoder.token_batch import RecordedInput, TokenBatch, word_annotations, word_governors
from bertology.lazy import torch
from bertology.recording.recording import Recording
from bertology.recording.sites import ReducedSite
from bertology.statistics.words import WordSlots, word_attention, word_slots

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attention_hook import LayerActivations

NegativeSampling = Literal["any", "distance-matched"]

N_DIRECTIONS = 2
NO_PAIR = -1


class _PairIndex(NamedTuple):
    """The pairs of a batch: `indices` are batch row, word, pair, dependent and governor of each."""

    word_slots: WordSlots
    indices: tuple[Tensor, ...]
    pairs_per_word: int


def positive_and_negative_pairs(
    recorded_input: RecordedInput, negatives: NegativeSampling, seeds: Sequence[int]
) -> Array:
    """(word, 1 + seed, 2): each word with its governor, then one negative pair per seed; `NO_PAIR` if there is none.

    `any`: the word and any other word of its sentence that is neither its governor nor its dependent.
    `distance-matched`: two unrelated words of the sentence at the same distance and in the same order as the word and
    its governor. Negative pairs depend only on the words of the sentence and the seed.
    """
    governors, present = word_governors(recorded_input), set(recorded_input.tokens.word_ids.tolist())
    edges = {(word, governor) for word, governor in enumerate(governors) if governor is not None and governor >= 0}
    segments, in_input = segment_of_words(recorded_input), np.isin(np.arange(len(governors)), list(present))
    unrelated = (segments[:, None] == segments) & in_input[:, None] & in_input & ~np.eye(len(segments), dtype=np.bool_)
    for word, governor in edges:
        unrelated[word, governor] = unrelated[governor, word] = False
    pairs = np.full((len(governors), 1 + len(seeds), 2), NO_PAIR)
    for word, governor in edges:
        if word in present and governor in present:
            pairs[word, 0] = word, governor
    for index, seed in enumerate(seeds, start=1):
        rng = _generator(recorded_input, seed)
        for word in np.flatnonzero(pairs[:, 0, 0] >= 0).tolist():
            offset = int(pairs[word, 0, 1]) - word
            options = np.argwhere(unrelated[word] if negatives == "any" else np.diagonal(unrelated, offset))
            if len(options):
                option = int(options[rng.integers(len(options)), 0])
                start = word if negatives == "any" else option + max(0, -offset)
                pairs[word, index] = start, option if negatives == "any" else start + offset
    return pairs


def _generator(recorded_input: RecordedInput, seed: int) -> np.random.Generator:
    digest = hashlib.sha256(
        "\n".join([str(seed), *recorded_input.text.words]).encode("utf-8", "surrogatepass")
    ).digest()
    return np.random.default_rng(int.from_bytes(digest[:8], "little"))


@cache
def pair_attention_site(negatives: NegativeSampling, seeds: tuple[int, ...]) -> ReducedSite:
    """The site with the attention of each pair: (word, pair, direction), from dependent to governor and back."""
    return ReducedSite(
        f"heads.relations.{negatives.replace('-', '_')}.{'_'.join(map(str, seeds))}",
        ("word", "pair", "direction"),
        "attention from each word to its governor and back, and between unrelated words",
        _reduce,
        prepare=_prepare_pairs(negatives, seeds),
    )


def _prepare_pairs(negatives: NegativeSampling, seeds: tuple[int, ...]) -> Callable[[TokenBatch], _PairIndex]:
    def prepare(batch: TokenBatch) -> _PairIndex:
        indices: list[Array] = [np.zeros((0, 5), np.int64)]
        for row, recorded_input in enumerate(batch.inputs):
            pairs = positive_and_negative_pairs(recorded_input, negatives, seeds)
            word, pair = np.nonzero(pairs[..., 0] >= 0)
            indices.append(np.column_stack([np.full(len(word), row), word, pair, pairs[word, pair]]))
        stacked = torch.from_numpy(np.concatenate(indices).astype(np.int64)).to(batch.device)
        return _PairIndex(word_slots(batch), stacked.unbind(1), 1 + len(seeds))

    return prepare


def _reduce(layer: LayerActivations, batch: TokenBatch, prepared: _PairIndex) -> Tensor:
    """(batch, head, word, pair, 2); NaN if there is no such pair."""
    attention = word_attention(layer.attention, prepared.word_slots)
    row, word, pair, dependent, governor = prepared.indices
    values = attention.new_full(
        (*attention.shape[:2], prepared.word_slots.max_words, prepared.pairs_per_word, N_DIRECTIONS), torch.nan
    )
    values[row, :, word, pair, 0] = attention[row, :, dependent, governor]
    values[row, :, word, pair, 1] = attention[row, :, governor, dependent]
    return values


@dataclass(frozen=True)
class DependencyPairs:
    """Words with a governor.

    `features` is (word, 1 + seed, direction x head), `pairs` (word, 1 + seed, 2) the numbers of both words, and
    `word_forms` (word, 1 + seed) the form of the first. The first pair is the word and its governor, the others are
    negative pairs; NaN or `NO_PAIR` if there is none. `input_index` is the input in its recording, `sentence_index` its
    rank by words.
    """

    sentence_index: Array
    input_index: Array
    relation: Array
    features: Array
    pairs: Array
    word_forms: Array

    def subset(self, mask: Array) -> DependencyPairs:
        """The words selected by the mask."""
        return DependencyPairs(*(getattr(self, name)[mask] for name in self.__dataclass_fields__))

    def of_seed(self, index: int) -> DependencyPairs:
        """The same words with the negative pairs of one seed."""
        columns = [0, index + 1]
        return replace(
            self,
            features=self.features[:, columns],
            pairs=self.pairs[:, columns],
            word_forms=self.word_forms[:, columns],
        )

    def random_half(self, seed: int) -> DependencyPairs:
        """The words of a random half of the sentences."""
        sentences = np.unique(self.sentence_index)
        half = np.random.default_rng([seed, len(sentences)]).permutation(sentences)[: max(1, round(len(sentences) / 2))]
        return self.subset(np.isin(self.sentence_index, half))

    @property
    def offsets(self) -> Array:
        """(word, 1 + seed): the signed distance of both words."""
        return self.pairs[..., 1] - self.pairs[..., 0]

    @property
    def has_negative(self) -> Array:
        """(seed, word): whether the word has a negative pair."""
        return np.isfinite(self.features[:, 1:, 0]).T


def pair_dataset(
    recording: Recording, indices: Sequence[int], negatives: NegativeSampling, seeds: tuple[int, ...]
) -> DependencyPairs:
    """The pairs of the inputs at `indices`, in an order that depends only on the words of the inputs."""
    values = recording[pair_attention_site(negatives, seeds)]
    width = recording.encoder.layers * recording.encoder.heads * N_DIRECTIONS
    parts: list[DependencyPairs] = [_empty_pairs(len(seeds), width)]
    for sentence, index in enumerate(sorted(indices, key=lambda i: recording.inputs[i].text.words)):
        recorded_input = recording.inputs[index]
        relations = np.array([relation or "" for relation in word_annotations(recorded_input, "relations")], object)
        pairs = positive_and_negative_pairs(recorded_input, negatives, seeds)
        not_punctuation = np.array([name.split(":")[0] != "punct" for name in relations], np.bool_)
        words = np.flatnonzero((pairs[:, 0, 0] >= 0) & not_punctuation)
        # (layer, head, word, pair, direction) -> (word, pair, direction, layer, head)
        attention = np.asarray(values[index])[:, :, words].transpose(2, 3, 4, 0, 1)
        features = attention.reshape(len(words), 1 + len(seeds), width).astype(np.float32)
        forms = np.array([word.lower() for word in recorded_input.text.words], object)[pairs[words, :, 0]]
        sentences, inputs = (np.full(len(words), number) for number in (sentence, index))
        parts.append(DependencyPairs(sentences, inputs, relations[words], features, pairs[words], forms))
    return DependencyPairs(
        *(np.concatenate([getattr(part, name) for part in parts]) for name in DependencyPairs.__dataclass_fields__)
    )


def _empty_pairs(n_negatives: int, width: int) -> DependencyPairs:
    shape = (0, 1 + n_negatives)
    return DependencyPairs(
        np.zeros(0, np.int64),
        np.zeros(0, np.int64),
        np.zeros(0, object),
        np.zeros((*shape, width), np.float32),
        np.zeros((*shape, 2), np.int64),
        np.zeros(shape, object),
    )
