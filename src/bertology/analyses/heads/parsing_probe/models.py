"""Probes that choose each word's governor among the words of its sentence; several seeds are trained together.

A batch holds attention between words. A probe scores every word and ROOT as the governor of every word; its loss is the
cross-entropy of the gold governor. Seeds differ in their initial parameters and share the order of the batches, so that
each attention pattern is read once for all seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

UNUSED_LABEL = -1
ROOT = 0
"""The first candidate; word w is candidate w + 1."""

DISTANCE_FEATURES = 8


@dataclass(frozen=True)
class ArcBatch:
    """A padded batch of sentences.

    `attention` is (batch, from, head, to), in any precision; `special_attention` (batch, word, head, 4): from each word
    to [CLS] and [SEP], and from [CLS] and [SEP] to the word. `vectors` is (batch, word, width). `gold` is (batch,
    word): the candidate that is the governor, `UNUSED_LABEL` for padding and words without a governor. `word_mask` is
    (batch, word): True for words, False for padding.
    """

    attention: Tensor
    special_attention: Tensor
    vectors: Tensor
    gold: Tensor
    word_mask: Tensor


class AttentionProbe(nn.Module):
    """score(i, j) = sum over heads of w a(i, j) + u a(j, i), with dependent i and governor j.

    ROOT is a mixture of [CLS] and [SEP], with two learned weights that all heads share.
    """

    def __init__(self, n_heads: int, seeds: Sequence[int]) -> None:
        super().__init__()
        self.weights = _initial_weights(seeds, (2, n_heads), 0.01)
        self.mixture = nn.Parameter(torch.ones(len(seeds), 2))

    def forward(self, batch: ArcBatch) -> Tensor:
        """(seed, batch, word, candidate) scores."""
        seeds = len(self.mixture)
        size, words, heads, _ = batch.attention.shape
        scores = self.weights.reshape(2 * seeds, heads) @ batch.attention.float().reshape(size * words, heads, words)
        to_governor, to_dependent = scores.view(size, words, seeds, 2, words).permute(2, 3, 0, 1, 4).unbind(1)
        special = torch.einsum("bwmre,krm->kbwre", _split_directions(batch.special_attention), self.weights)
        root = torch.einsum("kbwre,ke->kbw", special, self.mixture)
        return _mask_candidates(to_governor + to_dependent.transpose(-1, -2), root, batch)


class AttentionWordsProbe(nn.Module):
    """Like `AttentionProbe`, with weights w and u that are a linear function of the vectors of both words.

    `use_next_word` pairs each candidate with the vector of the following word, as the released code of Clark et al.
    does.
    """

    def __init__(self, n_heads: int, width: int, seeds: Sequence[int], *, use_next_word: bool = False) -> None:
        super().__init__()
        self.use_next_word = use_next_word
        self.dependent_weights = _initial_weights(seeds, (width, 2 * n_heads), 0.01)
        self.governor_weights = _initial_weights([seed + 1_000_003 for seed in seeds], (width, 2 * n_heads), 0.01)
        self.bias = nn.Parameter(torch.zeros(len(seeds), 1, 2 * n_heads))
        self.mixture = nn.Parameter(torch.ones(len(seeds), 2))

    def forward(self, batch: ArcBatch) -> Tensor:
        """(seed, batch, word, candidate) scores."""
        seeds = len(self.mixture)
        size, words, heads, _ = batch.attention.shape
        vectors, root_vector = _governor_vectors(batch, self.use_next_word)
        dependent = (batch.vectors.reshape(size * words, -1) @ self.dependent_weights + self.bias).view(
            seeds, size * words, 2, heads
        )
        governor = (vectors.reshape(size * words, -1) @ self.governor_weights).view(seeds, size * words, 2, heads)
        rows = batch.attention.float()
        columns = rows.transpose(1, 3)
        # A row is that of a dependent attending to its governor, or of a governor attending to its dependent.
        row_weights = torch.stack([dependent[:, :, 0], governor[:, :, 1]]).flatten(0, 1).transpose(0, 1)
        column_weights = torch.stack([dependent[:, :, 1], governor[:, :, 0]]).flatten(0, 1).transpose(0, 1)
        flat_rows, flat_columns = (part.reshape(size * words, heads, words) for part in (rows, columns))
        scores = row_weights @ flat_rows + column_weights @ flat_columns
        to_governor, to_dependent = scores.view(size, words, 2, seeds, words).permute(2, 3, 0, 1, 4)
        root_weights = (root_vector @ self.governor_weights).view(seeds, size, 1, 2, heads)
        weights = dependent.view(seeds, size, words, 2, heads) + root_weights
        special = torch.einsum("bwmre,kbwrm->kbwre", _split_directions(batch.special_attention), weights)
        root = torch.einsum("kbwre,ke->kbw", special, self.mixture)
        return _mask_candidates(to_governor + to_dependent.transpose(-1, -2), root, batch)


class DistanceProbe(nn.Module):
    """A hidden layer over the vectors of both words and eight features of their distance, without attention."""

    def __init__(self, width: int, hidden_size: int, seeds: Sequence[int], *, use_next_word: bool = False) -> None:
        super().__init__()
        self.use_next_word = use_next_word
        self.dependent_weights = _initial_weights(seeds, (width, hidden_size), (2 * width) ** -0.5)
        self.governor_weights = _initial_weights(
            [seed + 1_000_003 for seed in seeds], (width, hidden_size), (2 * width) ** -0.5
        )
        self.distance_weights = _initial_weights(
            [seed + 2_000_003 for seed in seeds], (DISTANCE_FEATURES, hidden_size), DISTANCE_FEATURES**-0.5
        )
        self.bias = nn.Parameter(torch.zeros(len(seeds), 1, 1, hidden_size))
        self.output_weights = _initial_weights(
            [seed + 3_000_017 for seed in seeds], (hidden_size, 1), hidden_size**-0.5
        )

    def forward(self, batch: ArcBatch) -> Tensor:
        """(seed, batch, word, candidate) scores."""
        seeds = len(self.output_weights)
        size, words, _ = batch.vectors.shape
        vectors, root_vector = _governor_vectors(batch, self.use_next_word)
        candidates = torch.cat([root_vector[:, None], vectors], 1)
        dependent = (batch.vectors.reshape(size * words, -1) @ self.dependent_weights + self.bias[:, 0]).view(
            seeds, size, words, 1, -1
        )
        governor = (candidates.flatten(0, 1) @ self.governor_weights).view(seeds, size, 1, words + 1, -1)
        features = distance_features(batch.word_mask)
        distance = (features.flatten(0, 2) @ self.distance_weights).view(seeds, size, words, words + 1, -1)
        hidden = torch.tanh(dependent + governor + distance)
        scores = (hidden.flatten(1, 3) @ self.output_weights).view(seeds, size, words, words + 1)
        return _mask_candidates(scores[..., 1:], scores[..., 0], batch)


def train_arc_probe(
    probe: nn.Module, batches: Sequence[ArcBatch], *, epochs: int, learning_rate: float, seed: int
) -> list[float]:
    """Train all seeds of a probe together with Adam, the learning rate decaying to zero; returns the loss per epoch."""
    generator = torch.Generator().manual_seed(seed)
    optimiser = torch.optim.Adam(probe.parameters(), lr=learning_rate)
    steps = max(1, epochs * len(batches))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: max(0.0, 1 - step / steps))
    losses: list[float] = []
    for _ in range(epochs):
        total = 0.0
        for index in torch.randperm(len(batches), generator=generator).tolist():
            optimiser.zero_grad()
            # The sum over seeds: no seed's gradient depends on another's.
            loss = arc_loss(probe(batches[index]), batches[index].gold)
            loss.sum().backward()
            optimiser.step()
            schedule.step()
            total += float(loss.detach().mean())
        losses.append(total / max(1, len(batches)))
    return losses


def arc_loss(scores: Tensor, gold: Tensor) -> Tensor:
    """(seed,) mean cross-entropy of the gold governors over the words that have one."""
    mask = gold != UNUSED_LABEL
    indices = gold.clamp(min=0).expand(len(scores), -1, -1)[..., None]
    log_probabilities = scores.log_softmax(-1).gather(-1, indices).squeeze(-1)
    return -log_probabilities.masked_fill(~mask, 0.0).sum((1, 2)) / mask.sum().clamp(min=1)


def predict_governors(probe: nn.Module, batch: ArcBatch) -> Tensor:
    """(seed, batch, word) the candidate with the highest score."""
    with torch.inference_mode():
        return probe(batch).argmax(-1)


def distance_features(word_mask: Tensor) -> Tensor:
    """(batch, word, candidate, 8): distance ahead and behind over the length, five small offsets, and ROOT."""
    size, words = word_mask.shape
    positions = torch.arange(words, device=word_mask.device)
    offset = (positions[None, :] - positions[:, None]).float().expand(size, -1, -1)
    length = word_mask.sum(1).clamp(min=1)[:, None, None]
    small_offsets = [(offset == step).float() for step in (-2, -1, 0, 1, 2)]
    word_features = torch.stack([offset.clamp(min=0) / length, (-offset).clamp(min=0) / length, *small_offsets], -1)
    features = word_features.new_zeros(size, words, words + 1, DISTANCE_FEATURES)
    features[:, :, 1:, :-1] = word_features
    features[:, :, ROOT, -1] = 1
    return features


def _split_directions(special_attention: Tensor) -> Tensor:
    """(batch, word, head, direction, 2): attention to and from [CLS] and [SEP]."""
    return special_attention.float().unflatten(-1, (2, 2))


def _governor_vectors(batch: ArcBatch, use_next_word: bool) -> tuple[Tensor, Tensor]:
    """(batch, word, width) vectors of the words as governors, and (batch, width) vector of ROOT."""
    zeros = torch.zeros_like(batch.vectors[:, :1])
    if not use_next_word:
        return batch.vectors, zeros[:, 0]
    return torch.cat([batch.vectors[:, 1:], zeros], 1), batch.vectors[:, 0]


def _mask_candidates(scores: Tensor, root_scores: Tensor, batch: ArcBatch) -> Tensor:
    """(seed, batch, word, candidate) scores, ROOT first; padding and the word itself are excluded."""
    itself = torch.eye(scores.shape[-1], dtype=torch.bool, device=scores.device)
    excluded = itself | ~batch.word_mask[:, None, :]
    return torch.cat([root_scores[..., None], scores.masked_fill(excluded, float("-inf"))], -1)


def _initial_weights(seeds: Sequence[int], shape: tuple[int, ...], std: float) -> nn.Parameter:
    samples = [torch.randn(shape, generator=torch.Generator().manual_seed(seed)) for seed in seeds]
    return nn.Parameter(std * torch.stack(samples))
