"""Sampling from the text: tokens on the training device, documents sampled by a power of their length."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from pretraining.tokens import EncodedText

HELD_OUT_EVERY = 100
"""Every hundredth document is held out of training, to evaluate on."""


@dataclass(frozen=True)
class SentenceDistribution:
    """Cumulative probabilities of documents, and the number of leading sentences of each that can be sampled."""

    cumulative: Tensor
    counts: Tensor


@dataclass(frozen=True)
class TokenStream:
    """The encoded text as tensors, with distributions over first sentences.

    `followed` covers the sentences with a following one in their document, `long_enough` those from which their
    document has at least `max_length` more tokens.
    """

    ids: Tensor
    sentences: Tensor
    documents: Tensor
    document_of: Tensor
    followed: SentenceDistribution
    long_enough: SentenceDistribution
    max_length: int

    @property
    def device(self) -> torch.device:
        """The device of the tensors."""
        return self.ids.device


def held_out_indices(text: EncodedText) -> list[int]:
    """Indices of the documents that are never sampled."""
    return list(range(HELD_OUT_EVERY - 1, len(text.documents) - 1, HELD_OUT_EVERY))


def make_stream(text: EncodedText, *, max_length: int, length_exponent: float, device: str) -> TokenStream:
    """Move the text to a device and sample documents by (number of tokens) ** length_exponent.

    An exponent of 1 samples all tokens equally often; a lower one favours short documents.
    """
    ends = text.sentences[text.documents[1:]]
    weights = (ends - text.sentences[text.documents[:-1]]).astype(np.float64) ** length_exponent
    weights[held_out_indices(text)] = 0
    counts = np.diff(text.documents)
    document_of = np.repeat(np.arange(len(counts)), counts)
    is_long_enough = ends[document_of] - text.sentences[:-1] >= max_length
    long_enough_counts = np.minimum(np.add.reduceat(is_long_enough, text.documents[:-1]), counts - 1)
    return TokenStream(
        ids=torch.from_numpy(text.ids.astype(np.int32)).to(device),
        sentences=torch.from_numpy(text.sentences).to(device),
        documents=torch.from_numpy(text.documents).to(device),
        document_of=torch.from_numpy(document_of).to(device),
        # The last sentence of a document has no following one.
        followed=_distribution(weights, counts - 1, device),
        long_enough=_distribution(weights, long_enough_counts, device),
        max_length=max_length,
    )


def _distribution(weights: NDArray[np.float64], counts: NDArray[np.int64], device: str) -> SentenceDistribution:
    """Documents without a sentence that can be sampled get probability 0."""
    allowed = np.where(counts > 0, weights, 0)
    if not allowed.any():
        raise ValueError("no document is long enough to sample from: use longer documents or a smaller --max-length")
    cumulative = np.cumsum(allowed / allowed.sum()).astype(np.float32)
    # Rounding must not leave a gap below 1 that belongs to no document.
    cumulative[np.flatnonzero(allowed)[-1] :] = 1
    return SentenceDistribution(torch.from_numpy(cumulative).to(device), torch.from_numpy(counts).to(device))


def uniform(stream: TokenStream, count: int, generator: Generator) -> Tensor:
    """`count` random numbers in [0, 1)."""
    return torch.rand(count, generator=generator, device=stream.device)


def sample_sentences(
    stream: TokenStream, distribution: SentenceDistribution, count: int, generator: Generator
) -> Tensor:
    """Indices of sentences: a document by its probability, then one of its sentences uniformly."""
    documents = torch.searchsorted(distribution.cumulative, uniform(stream, count, generator), right=True)
    counts = distribution.counts[documents]
    return stream.documents[documents] + (uniform(stream, count, generator) * counts).long().minimum(counts - 1)
