"""Paired sites: a comparison of two encoders' attention, per head, on the same input.

The second encoder runs on each batch before the first, and its attention is held for that batch only: like any reduced
site, a paired site stores a few numbers and no attention.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bertology.arrays import Array
from bertology.encoder.encoder import Encoder, ModelInputs
from bertology.encoder.token_batch import TokenBatch
from bertology.errors import Refusal
from bertology.lazy import torch
from bertology.recording.recording import ComputedArrays, Recording
from bertology.recording.sites import ReducedSite

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attention_hook import LayerActivations

FINGERPRINT_LENGTH = 16


@dataclass(frozen=True)
class PairedSite:
    """A function of the attention (batch, head, from, to) of one layer in two encoders: (batch, head, *axes) out.

    `labels` name the positions of the last axis. `bind` makes it a reduced site of the first encoder.
    """

    name: str
    axes: tuple[str, ...]
    description: str
    compare: Callable[[Tensor, Tensor, TokenBatch], Tensor]
    labels: tuple[str, ...] = ()
    version: int = 1

    @property
    def storage_key(self) -> str:
        """The site's name in a recording."""
        return f"{self.name}.v{self.version}"

    def bind(self, other: Encoder) -> ReducedSite:
        """The reduced site that compares the recorded encoder with `other` on the same tokens."""

        def prepare(token_batch: TokenBatch) -> list[Tensor]:
            _check_same_tokens(other, token_batch)
            attention: list[Tensor] = []
            inputs = token_batch.model_inputs
            batch = ModelInputs(
                inputs.input_ids.to(other.device),
                inputs.token_type_ids.to(other.device),
                inputs.attention_mask.to(other.device),
            )
            with torch.inference_mode():
                other.forward(batch, on_layer=lambda layer: attention.append(layer.attention))
            return attention

        def reduce(layer: LayerActivations, batch: TokenBatch, other_attention: list[Tensor]) -> Tensor:
            attention = layer.attention
            if layer.layer >= len(other_attention) or attention.shape[1] != other_attention[layer.layer].shape[1]:
                raise Refusal(
                    f"{other.name} has {len(other_attention)} layers of {other.heads} heads, unlike the model it is "
                    "compared with",
                    "two models with the same number of layers and heads",
                    "Compare a model with a fine-tuned or earlier version of itself; "
                    "geometry/representation_similarity compares models of any depth",
                )
            return self.compare(attention, other_attention[layer.layer].to(attention), batch)

        name = f"{self.name}.{other.fingerprint[:FINGERPRINT_LENGTH]}"
        return ReducedSite(name, self.axes, self.description, reduce, self.labels, prepare, version=self.version)

    def compare_recordings(self, first: Recording, second: Recording) -> Sequence[Array]:
        """One array (layer, head, *axes) per input, computed from the attention of two recordings when it is read."""

        def compute(index: int) -> Array:
            _check_same_attention(first, second, index)
            batch = TokenBatch([first.inputs[index]])
            patterns = [torch.from_numpy(np.array(r["attention"][index], np.float32)) for r in (first, second)]
            layers = [self.compare(one[None], other[None], batch)[0] for one, other in zip(*patterns, strict=True)]
            return torch.stack(layers).numpy()

        return ComputedArrays(len(first), compute)


def _check_same_attention(first: Recording, second: Recording, index: int) -> None:
    """Refuse recordings whose attention differs in layers, heads or tokens."""
    names = f"{first.encoder.name} and {second.encoder.name}"
    sizes = [(r.encoder.layers, r.encoder.heads) for r in (first, second)]
    if sizes[0] != sizes[1]:
        raise Refusal(
            f"{names} have {' and '.join(f'{layers} layers of {heads} heads' for layers, heads in sizes)}",
            "two models with the same number of layers and heads",
            "geometry/representation_similarity compares models of any depth",
        )
    if first.inputs[index].tokens.tokens != second.inputs[index].tokens.tokens:
        raise Refusal(
            f"The recordings of {names} differ in the tokens of input {index + 1}",
            "two models with the same vocabulary, recorded with the same settings",
            "Compare words with geometry/representation_similarity --unit words",
        )


def _check_same_tokens(other: Encoder, batch: TokenBatch) -> None:
    """Refuse another tokenisation. An input may have been truncated, so that its tokens may be a subset."""
    tokenised = other.tokenise([recorded.text for recorded in batch.inputs])
    for recorded, tokens in zip(batch.inputs, tokenised, strict=True):
        if not np.isin(recorded.tokens.ids, tokens.ids).all():
            raise Refusal(
                f"{other.name} and the model it is compared with tokenise the text differently",
                "two models with the same vocabulary",
                "Compare words with geometry/representation_similarity --unit words",
            )
