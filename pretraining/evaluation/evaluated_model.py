"""A model with its tokeniser, ready for evaluation, and padded batches for it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from transformers import BertConfig, BertForPreTraining, BertTokenizer


@dataclass(frozen=True)
class TokenisedSentence:
    """A sentence as `[CLS] tokens [SEP]`: ids, and the word index of each non-special token."""

    ids: tuple[int, ...]
    word_indices: tuple[int, ...]


@dataclass(frozen=True)
class EvaluatedModel:
    """A model in evaluation mode with eager attention, its tokeniser and the ids of special tokens."""

    model: BertForPreTraining
    tokeniser: BertTokenizer
    device: torch.device
    cls: int
    sep: int
    mask: int

    @property
    def config(self) -> BertConfig:
        """The model's configuration."""
        return self.model.config

    def tokenise(self, words: Sequence[str]) -> TokenisedSentence | None:
        """The tokens of a sentence; None if it is too long or a word has no token."""
        encoded = [self.tokeniser.encode(word, add_special_tokens=False) for word in words]
        tokens = [token for word_tokens in encoded for token in word_tokens]
        if len(tokens) + 2 > self.config.max_position_embeddings or not all(encoded):
            return None
        word_indices = [index for index, word_tokens in enumerate(encoded) for _ in word_tokens]
        return TokenisedSentence((self.cls, *tokens, self.sep), tuple(word_indices))


def load_model(directory: Path, *, device: str, random_seed: int | None = None) -> EvaluatedModel:
    """The model of a Hugging Face directory in float32; with `random_seed`, its architecture with random weights."""
    if random_seed is None:
        model = BertForPreTraining.from_pretrained(directory, dtype=torch.float32, attn_implementation="eager")
    else:
        torch.manual_seed(random_seed)
        config = BertConfig.from_pretrained(directory)
        config._attn_implementation = "eager"  # pyright: ignore[reportPrivateUsage]
        model = BertForPreTraining(config).float()
    tokeniser = BertTokenizer.from_pretrained(directory)
    # The `to` of transformers is not typed as a method.
    torch.nn.Module.to(model, torch.device(device))
    ids = tokeniser.get_vocab()
    return EvaluatedModel(model.eval(), tokeniser, torch.device(device), ids["[CLS]"], ids["[SEP]"], ids["[MASK]"])


@dataclass(frozen=True)
class PaddedBatch:
    """Sequences of similar length as one batch: their indices, ids, segments and attention mask."""

    indices: list[int]
    ids: Tensor
    segments: Tensor
    mask: Tensor


def padded_batches(
    sequences: Sequence[Sequence[int]],
    device: torch.device,
    *,
    segments: Sequence[Sequence[int]] | None = None,
    max_tokens: int = 65_536,
) -> Iterator[PaddedBatch]:
    """Batches of at most about `max_tokens` tokens, shortest sequences first, padded with id 0."""
    order = sorted(range(len(sequences)), key=lambda index: len(sequences[index]))
    start = 0
    while start < len(order):
        end = start + 1
        while end < len(order) and len(sequences[order[end]]) * (end + 1 - start) <= max_tokens:
            end += 1
        indices = order[start:end]
        length = len(sequences[indices[-1]])
        ids = torch.zeros(len(indices), length, dtype=torch.long)
        segment_ids = torch.zeros_like(ids)
        mask = torch.zeros_like(ids)
        for row, index in enumerate(indices):
            sequence = sequences[index]
            ids[row, : len(sequence)] = torch.tensor(sequence)
            mask[row, : len(sequence)] = 1
            if segments is not None:
                segment_ids[row, : len(sequence)] = torch.tensor(segments[index])
        yield PaddedBatch(indices, ids.to(device), segment_ids.to(device), mask.to(device))
        start = end
