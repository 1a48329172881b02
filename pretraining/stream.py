"""Sampling from the text: tokens on the training device, documents sampled by a power of their length."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from pretraining.tokens import Tokens

HELD_OUT = 100
"""Every hundredth document is never drawn, so that held-out figures can be measured on it."""


@dataclass(frozen=True)
class Drawing:
    """A way to draw sentences: the summed chances of documents, and how many first sentences of each may be drawn."""

    cumulated: Tensor
    counts: Tensor


@dataclass(frozen=True)
class Stream:
    """Tokens as tensors, with two drawings: sentences another follows, and sentences a full row follows."""

    ids: Tensor
    sentences: Tensor
    documents: Tensor
    document_of: Tensor
    followed: Drawing
    full: Drawing
    width: int

    @property
    def device(self) -> torch.device:
        """Where the tensors lie."""
        return self.ids.device


def held_out(tokens: Tokens) -> list[int]:
    """The numbers of the documents that are never drawn."""
    return list(range(HELD_OUT - 1, len(tokens.documents) - 1, HELD_OUT))


def make_stream(tokens: Tokens, *, width: int, power: float, device: str) -> Stream:
    """Chances go with (pieces in the document) ** power: 1 draws all text alike, less favours short documents.

    `width` is that of full rows: only sentences with as many pieces to their document's end begin one.
    """
    ends = tokens.sentences[tokens.documents[1:]]
    chances = (ends - tokens.sentences[tokens.documents[:-1]]).astype(np.float64) ** power
    chances[held_out(tokens)] = 0
    counts = np.diff(tokens.documents)
    document_of = np.repeat(np.arange(len(counts)), counts)
    roomy = ends[document_of] - tokens.sentences[:-1] >= width
    return Stream(
        ids=torch.from_numpy(tokens.ids.astype(np.int32)).to(device),
        sentences=torch.from_numpy(tokens.sentences).to(device),
        documents=torch.from_numpy(tokens.documents).to(device),
        document_of=torch.from_numpy(document_of).to(device),
        # The last sentence of a document has none after it.
        followed=_drawing(chances, counts - 1, device),
        full=_drawing(chances, np.minimum(np.add.reduceat(roomy, tokens.documents[:-1]), counts - 1), device),
        width=width,
    )


def _drawing(chances: NDArray[np.float64], counts: NDArray[np.int64], device: str) -> Drawing:
    """Documents with no sentence to draw have no chance."""
    allowed = np.where(counts > 0, chances, 0)
    if not allowed.any():
        raise ValueError("no document is long enough to draw from: give longer documents or a smaller width")
    cumulated = np.cumsum(allowed / allowed.sum()).astype(np.float32)
    # Rounding must not leave a gap below 1 that no document owns.
    cumulated[np.flatnonzero(allowed)[-1] :] = 1
    return Drawing(torch.from_numpy(cumulated).to(device), torch.from_numpy(counts).to(device))


def uniform(stream: Stream, count: int, generator: Generator) -> Tensor:
    """`count` numbers in [0, 1)."""
    return torch.rand(count, generator=generator, device=stream.device)


def draw_sentences(stream: Stream, drawing: Drawing, count: int, generator: Generator) -> Tensor:
    """Sentence numbers: a document by its chance, then one of its drawable sentences, all alike."""
    documents = torch.searchsorted(drawing.cumulated, uniform(stream, count, generator), right=True)
    many = drawing.counts[documents]
    return stream.documents[documents] + (uniform(stream, count, generator) * many).long().minimum(many - 1)
