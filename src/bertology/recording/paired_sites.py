"""Paired sites: a comparison of two encoders' attention, per head, on the same text.

The second encoder runs on each batch before the first, and its attention is held for that batch only: like any reduced
site, a paired site stores a few numbers and no attention. Encoders that tokenise the text differently are compared word
by word: tokens are merged into words, and special tokens into one position for each kind (see `statistics/words.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from typing_extensions import Protocol

from bertology.arrays import Array
from bertology.encoder.encoder import Encoder, ModelInputs
from bertology.encoder.token_batch import TokenBatch
from bertology.encoder.tokens import TokenisedInput
from bertology.errors import Refusal
from bertology.lazy import torch
from bertology.recording.recording import ComputedArrays, Recording
from bertology.recording.sites import ReducedSite

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attention_hook import LayerActivations
    from bertology.statistics.words import WordSlots

FINGERPRINT_LENGTH = 16
ComparisonUnit = Literal["tokens", "words"]


@dataclass(frozen=True)
class WordPositions:
    """The words and kinds of special tokens that two encoders have in common, named as in a `TokenBatch`.

    The masks are (batch, position): all positions that are compared, and those of words.
    """

    token_mask: Tensor
    non_special_mask: Tensor


ComparedPositions = TokenBatch | WordPositions
"""The positions of two attention patterns."""


@dataclass(frozen=True)
class PairedSite:
    """A function of the attention (batch, head, from, to) of one layer in two encoders: (batch, head, *axes) out.

    `labels` name the positions of the last axis. `bind` makes it a reduced site of the first encoder.
    """

    name: str
    axes: tuple[str, ...]
    description: str
    compare: Callable[[Tensor, Tensor, ComparedPositions], Tensor]
    labels: tuple[str, ...] = ()
    version: int = 1

    @property
    def storage_key(self) -> str:
        """The site's name in a recording."""
        return f"{self.name}.v{self.version}"

    def bind(self, other: Encoder, unit: ComparisonUnit = "tokens") -> ReducedSite:
        """The reduced site that compares the recorded encoder with `other`, on the same tokens or word by word.

        Word by word, an input that is too long for `other` has missing values; of an input that was truncated for the
        recorded encoder, the words that it kept are compared.
        """

        def prepare(token_batch: TokenBatch) -> _OtherAttention:
            return _run_on_tokens(other, token_batch) if unit == "tokens" else _run_on_words(other, token_batch)

        def reduce(layer: LayerActivations, batch: TokenBatch, prepared: _OtherAttention) -> Tensor:
            attention = layer.attention
            if layer.layer >= other.layers or attention.shape[1] != other.heads:
                raise _other_size_refusal(f"{_size(other)}, unlike the model it is compared with")
            values = self.compare(*prepared.pair(attention, layer.layer), prepared.positions)
            if len(prepared.rows) == len(batch.inputs):
                return values
            padded = values.new_full((len(batch.inputs), attention.shape[1], *values.shape[2:]), float("nan"))
            padded[prepared.rows] = values
            return padded

        name = f"{self.name}.{other.fingerprint[:FINGERPRINT_LENGTH]}{'.words' if unit == 'words' else ''}"
        return ReducedSite(name, self.axes, self.description, reduce, self.labels, prepare, version=self.version)

    def compare_recordings(self, first: Recording, second: Recording) -> Sequence[Array]:
        """One array (layer, head, *axes) per input, computed from the attention of two recordings when it is read."""
        unit: ComparisonUnit = "tokens" if have_same_tokens(first, second) else "words"

        def compute(index: int) -> Array:
            check_same_size(first.encoder, second.encoder)
            inputs = first.inputs[index], second.inputs[index]
            patterns = [torch.from_numpy(np.array(r["attention"][index], np.float32)) for r in (first, second)]
            if unit == "tokens":
                layers = [
                    self.compare(a[None], b[None], TokenBatch(inputs[:1])) for a, b in zip(*patterns, strict=True)
                ]
            else:
                batches = [TokenBatch([recorded]) for recorded in inputs]
                other = _merge_words([b[None] for b in patterns[1]], *batches, rows=[0])
                layers = [
                    self.compare(*other.pair(attention[None], layer), other.positions)
                    for layer, attention in enumerate(patterns[0])
                ]
            return torch.cat(layers).numpy()

        return ComputedArrays(len(first), compute)


@dataclass(frozen=True)
class _OtherAttention:
    """The second encoder's attention on a batch, by layer, and how to compare the first encoder's with it.

    `rows` are the inputs of the batch that it could read; `words` merges the first encoder's tokens of these inputs.
    """

    attention: Sequence[Tensor]
    positions: ComparedPositions
    rows: Sequence[int]
    words: WordSlots | None = None

    def pair(self, attention: Tensor, layer: int) -> tuple[Tensor, Tensor]:
        """The attention of both encoders in a layer, at the same positions."""
        first = attention if len(self.rows) == len(attention) else attention[list(self.rows)]
        if self.words is not None:
            from bertology.statistics.words import word_attention

            first = word_attention(first, self.words, include_special=True)
        return first, self.attention[layer].to(first)


def _run_on_tokens(other: Encoder, batch: TokenBatch) -> _OtherAttention:
    tokenised = other.tokenise([recorded.text for recorded in batch.inputs])
    if not are_same_tokens([recorded.tokens for recorded in batch.inputs], tokenised):
        raise Refusal(
            f"{other.name} and the model it is compared with tokenise the text differently",
            "two models with the same vocabulary",
            "Compare words instead of tokens",
        )
    return _OtherAttention(_attention(other, batch.model_inputs), batch, range(len(batch.inputs)))


def _run_on_words(other: Encoder, batch: TokenBatch) -> _OtherAttention:
    tokenised = other.tokenise([recorded.text for recorded in batch.inputs])
    rows = [row for row, tokens in enumerate(tokenised) if len(tokens) <= other.max_length]
    if not rows:
        empty = torch.zeros(0, other.heads, 1, 1, device=batch.device)
        mask = torch.zeros(0, 1, dtype=torch.bool, device=batch.device)
        return _OtherAttention([empty] * other.layers, WordPositions(mask, mask), [])
    other_batch = TokenBatch([replace(batch.inputs[row], tokens=tokenised[row]) for row in rows], other.device)
    own_batch = TokenBatch([batch.inputs[row] for row in rows], batch.device)
    return _merge_words(_attention(other, other_batch.model_inputs), own_batch, other_batch, rows=rows)


def _attention(encoder: Encoder, inputs: ModelInputs) -> list[Tensor]:
    attention: list[Tensor] = []
    tensors = (inputs.input_ids, inputs.token_type_ids, inputs.attention_mask)
    batch = ModelInputs(*(tensor.to(encoder.device) for tensor in tensors))
    with torch.inference_mode():
        encoder.forward(batch, on_layer=lambda layer: attention.append(layer.attention), logits=False)
    return attention


def _merge_words(
    attention: Sequence[Tensor], batch: TokenBatch, other_batch: TokenBatch, *, rows: Sequence[int]
) -> _OtherAttention:
    """The second encoder's attention between the words that both encoders have."""
    from bertology.statistics.words import NonWordSlot, word_attention, word_slots

    words, other_words = word_slots(batch), word_slots(other_batch)
    n_positions = words.max_words + len(NonWordSlot)
    in_both = (words.slot_sizes > 0) & (other_words.slot_sizes > 0).to(words.slot_sizes.device)
    mask = in_both[:, :n_positions]
    is_word = torch.arange(n_positions, device=mask.device) < words.max_words
    merged = [word_attention(layer, other_words, include_special=True) for layer in attention]
    return _OtherAttention(merged, WordPositions(mask, mask & is_word), rows, words)


class _SizedEncoder(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def layers(self) -> int: ...
    @property
    def heads(self) -> int: ...


def check_same_size(first: _SizedEncoder, second: _SizedEncoder) -> None:
    """Refuse encoders with different numbers of layers or heads: heads are compared one by one."""
    if (first.layers, first.heads) != (second.layers, second.heads):
        raise _other_size_refusal(f"{_size(first)}, {_size(second)}")


def _size(encoder: _SizedEncoder) -> str:
    return f"{encoder.name} has {encoder.layers} layers of {encoder.heads} heads"


def _other_size_refusal(sizes: str) -> Refusal:
    return Refusal(
        sizes,
        "two models with the same number of layers and heads",
        "Compare a model with a fine-tuned or earlier version of itself; geometry/representation_similarity --show "
        "matrix compares models of any depth",
    )


def have_same_tokens(first: Recording, second: Recording) -> bool:
    """Whether two recordings have the same tokens in all inputs that both have."""
    tokens = {recorded.key: recorded.tokens for recorded in second.inputs}
    pairs = [(recorded.tokens, tokens[recorded.key]) for recorded in first.inputs if recorded.key in tokens]
    return all(one.tokens == other.tokens and np.array_equal(one.ids, other.ids) for one, other in pairs)


def are_same_tokens(first: Iterable[TokenisedInput], second: Iterable[TokenisedInput]) -> bool:
    """Whether inputs have the same tokens; those of `first` may have been truncated or split."""
    return all(
        set(zip(one.ids.tolist(), one.tokens, strict=True)) <= set(zip(other.ids.tolist(), other.tokens, strict=True))
        for one, other in zip(first, second, strict=True)
    )
