"""Training and test data of the parsing probe: attention between words, word vectors and gold governors, in batches.

Attention between words is stored in full, in float16: 2 bytes x layers x heads x words squared, about 110 kB per
sentence of running text for 144 heads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bertology.arrays import Array
from bertology.corpus.hashing import seeded_hash
from bertology.encoder.encoder import Encoder
from bertology.encoder.static import word_vectors
from bertology.encoder.token_batch import RecordedInput, TokenBatch, word_annotations, word_governors
from bertology.lazy import torch
from bertology.recording.plan import length_batches
from bertology.recording.recording import Recording
from bertology.recording.sites import reduction
from bertology.statistics.words import NonWordSlot, WordSlots, word_attention, word_slots

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.analyses.heads.parsing_probe.models import ArcBatch
    from bertology.encoder.attention_hook import LayerActivations


BATCH_WORDS = 512
"""Words per batch, including padding: about thirty sentences."""


@reduction(
    "heads.parsing_probe.words",
    axes=("from_word", "to_word"),
    description="attention between words in float16: 2 bytes x layers x heads x words squared; only for probes",
    prepare=word_slots,
)
def word_attention_site(layer: LayerActivations, batch: TokenBatch, slots: WordSlots) -> Tensor:
    """(batch, head, from_word, to_word)."""
    return word_attention(layer.attention, slots).half()


@reduction(
    "heads.parsing_probe.special",
    axes=("word", "special_token"),
    labels=("to [CLS]", "to [SEP]", "from [CLS]", "from [SEP]"),
    description="attention between each word and the special tokens around the sentence, in float16",
    prepare=word_slots,
)
def special_attention_site(layer: LayerActivations, batch: TokenBatch, slots: WordSlots) -> Tensor:
    """(batch, head, word, 4)."""
    attention, n_words = word_attention(layer.attention, slots, include_special=True), slots.max_words
    special = slice(n_words + NonWordSlot.CLS, n_words + NonWordSlot.SEP + 1)
    to_special, from_special = attention[..., :n_words, special], attention[..., special, :n_words].transpose(-1, -2)
    return torch.cat([to_special, from_special], -1).half()


@dataclass(frozen=True)
class ArcDataset:
    """Sentences with trees.

    Per sentence `attention` is (head, from, to), `special_attention` (head, word, 4), `word_vectors` (word, width).
    """

    inputs: tuple[RecordedInput, ...]
    attention: tuple[Array, ...]
    special_attention: tuple[Array, ...]
    word_vectors: tuple[Array, ...]

    def random_half(self, seed: int) -> ArcDataset:
        """Half of the sentences, at least one, by a hash of the words and the seed."""
        texts = [" ".join(recorded_input.text.words) for recorded_input in self.inputs]
        order = sorted(range(len(texts)), key=lambda index: seeded_hash(f"half\n{texts[index]}", seed))
        half = sorted(order[: max(1, len(order) // 2)])
        return ArcDataset(
            tuple(self.inputs[index] for index in half),
            tuple(self.attention[index] for index in half),
            tuple(self.special_attention[index] for index in half),
            tuple(self.word_vectors[index] for index in half),
        )


def arc_dataset(recording: Recording, static_encoder: Encoder, indices: Sequence[int]) -> ArcDataset:
    """The inputs at `indices` that have a tree, in an order that depends only on their words."""
    with_tree = [i for i in indices if any(governor is not None for governor in word_governors(recording.inputs[i]))]
    with_tree.sort(key=lambda i: recording.inputs[i].text.words)
    inputs = tuple(recording.inputs[i] for i in with_tree)
    attention, special = (
        tuple(_flatten_heads(recording[site][i]) for i in with_tree)
        for site in (word_attention_site, special_attention_site)
    )
    return ArcDataset(inputs, attention, special, tuple(word_vectors(static_encoder, inputs)))


def _flatten_heads(array: Array) -> Array:
    return array.reshape(-1, *array.shape[2:])


def gold_governor_candidates(recorded_input: RecordedInput) -> Array:
    """(word,) each word's governor as a candidate: 0 for ROOT, w + 1 for word w; -1 for words that are not used."""
    present = set(recorded_input.tokens.word_ids.tolist())
    return np.array(
        [
            -1
            if governor is None or word not in present or (governor >= 0 and governor not in present)
            else governor + 1
            for word, governor in enumerate(word_governors(recorded_input))
        ],
        np.int64,
    )


def is_scored_word(recorded_input: RecordedInput) -> Array:
    """(word,) booleans: words with a governor that are not punctuation."""
    relations = word_annotations(recorded_input, "relations")
    not_punctuation = np.array([(relation or "").split(":")[0] != "punct" for relation in relations], np.bool_)
    return not_punctuation & (gold_governor_candidates(recorded_input) >= 0)


def padded_batches(dataset: ArcDataset) -> list[tuple[tuple[int, ...], ArcBatch]]:
    """Batches of sentences of similar length, each with the indices of its sentences."""
    lengths = [len(vectors) for vectors in dataset.word_vectors]
    return [(indices, _pad_batch(dataset, indices)) for indices in length_batches(lengths, BATCH_WORDS)]


def _pad_batch(dataset: ArcDataset, indices: Sequence[int]) -> ArcBatch:
    from bertology.analyses.heads.parsing_probe.models import UNUSED_LABEL, ArcBatch

    n_words, width = max(len(dataset.word_vectors[i]) for i in indices), dataset.word_vectors[indices[0]].shape[1]
    n_heads = len(dataset.attention[indices[0]])
    attention = torch.zeros(len(indices), n_words, n_heads, n_words, dtype=torch.float16)
    special_attention = torch.zeros(len(indices), n_words, n_heads, 4, dtype=torch.float16)
    vectors = torch.zeros(len(indices), n_words, width)
    gold = torch.full((len(indices), n_words), UNUSED_LABEL)
    word_mask = torch.zeros(len(indices), n_words, dtype=torch.bool)
    for row, i in enumerate(indices):
        n = len(dataset.word_vectors[i])
        attention[row, :n, :, :n] = torch.from_numpy(np.array(dataset.attention[i])).transpose(0, 1)
        special_attention[row, :n] = torch.from_numpy(np.array(dataset.special_attention[i])).transpose(0, 1)
        vectors[row, :n] = torch.from_numpy(dataset.word_vectors[i])
        gold[row, :n] = torch.from_numpy(gold_governor_candidates(dataset.inputs[i]))
        word_mask[row, :n] = True
    return ArcBatch(attention, special_attention, vectors, gold, word_mask)
