"""Which model is judged, and how does it see a sentence of words?"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from transformers import BertConfig, BertForPreTraining, BertTokenizer


@dataclass(frozen=True)
class Pieces:
    """A sentence as `[CLS] pieces [SEP]`: ids, and the word each inner piece belongs to."""

    ids: tuple[int, ...]
    words: tuple[int, ...]


@dataclass(frozen=True)
class Subject:
    """A model in evaluation mode with its tokeniser and special ids, on one device; attention can be asked for."""

    model: BertForPreTraining
    tokeniser: BertTokenizer
    device: torch.device
    cls: int
    sep: int
    mask: int

    @property
    def config(self) -> BertConfig:
        """The model's shape."""
        return self.model.config

    def pieces(self, words: Sequence[str]) -> Pieces | None:
        """The words' pieces between [CLS] and [SEP]; None where they do not fit or a word has no piece."""
        encoded = [self.tokeniser.encode(word, add_special_tokens=False) for word in words]
        inner = [piece for word in encoded for piece in word]
        if len(inner) + 2 > self.config.max_position_embeddings or not all(encoded):
            return None
        belongs = [number for number, word in enumerate(encoded) for _ in word]
        return Pieces((self.cls, *inner, self.sep), tuple(belongs))


def load_subject(folder: Path, *, device: str, random_seed: int | None = None) -> Subject:
    """The model of a Hugging Face directory in float32; with `random_seed`, its shape with fresh weights."""
    if random_seed is None:
        model = BertForPreTraining.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
    else:
        torch.manual_seed(random_seed)
        config = BertConfig.from_pretrained(folder)
        config._attn_implementation = "eager"  # pyright: ignore[reportPrivateUsage]
        model = BertForPreTraining(config).float()
    tokeniser = BertTokenizer.from_pretrained(folder)
    # transformers' own `to` is not typed as a method.
    torch.nn.Module.to(model, torch.device(device))
    ids = tokeniser.get_vocab()
    return Subject(model.eval(), tokeniser, torch.device(device), ids["[CLS]"], ids["[SEP]"], ids["[MASK]"])


@dataclass(frozen=True)
class Padded:
    """Some sequences of like length as one batch: their indices, ids, segments, and 1 where not padding."""

    indices: list[int]
    ids: Tensor
    segments: Tensor
    mask: Tensor


def padded_batches(
    sequences: Sequence[Sequence[int]],
    device: torch.device,
    *,
    segments: Sequence[Sequence[int]] | None = None,
    tokens: int = 65_536,
) -> Iterator[Padded]:
    """Batches of at most about `tokens` pieces, shortest sequences first, padded with id 0."""
    order = sorted(range(len(sequences)), key=lambda number: len(sequences[number]))
    start = 0
    while start < len(order):
        end = start + 1
        while end < len(order) and len(sequences[order[end]]) * (end + 1 - start) <= tokens:
            end += 1
        indices = order[start:end]
        width = len(sequences[indices[-1]])
        ids = torch.zeros(len(indices), width, dtype=torch.long)
        types = torch.zeros_like(ids)
        mask = torch.zeros_like(ids)
        for row, number in enumerate(indices):
            sequence = sequences[number]
            ids[row, : len(sequence)] = torch.tensor(sequence)
            mask[row, : len(sequence)] = 1
            if segments is not None:
                types[row, : len(sequence)] = torch.tensor(segments[number])
        yield Padded(indices, ids.to(device), types.to(device), mask.to(device))
        start = end
