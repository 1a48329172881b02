"""Probes that pick each word's head among the words of its sentence; several seeds are trained as one; no BERT here.

A batch holds maps between words: weights that each word gives each other word. A probe scores every word and the ROOT
as the head of every word; its loss is the cross-entropy of the gold head. Seeds differ in their initial parameters and
share the order of the batches, so each map is read once for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

UNSCORED = -1
ROOT = 0
"""The candidate that stands before the words: word w is candidate w + 1."""

DISTANCES = 8


@dataclass(frozen=True)
class ArcBatch:
    """Sentences padded to one length.

    `maps` is (batch, from, map, to), in any precision; `edges` (batch, word, map, 4): what a word gives to the places
    before and after the sentence, and what it gets from them. `vectors` is (batch, word, width). `gold` is (batch,
    word): the candidate that is the head, `UNSCORED` for padding and words that do not count; `there` (batch, word)
    which words are candidates.
    """

    maps: Tensor
    edges: Tensor
    vectors: Tensor
    gold: Tensor
    there: Tensor


class AttentionProbe(nn.Module):
    """score(i, j) = sum over maps of w a(i, j) + u a(j, i), i the dependent and j the head.

    The ROOT's place in each map is a mixture of the places before and after the sentence, with two learned weights
    that all maps share.
    """

    def __init__(self, maps: int, seeds: Sequence[int]) -> None:
        super().__init__()
        self.weights = _initial(seeds, (2, maps), 0.01)
        self.mixture = nn.Parameter(torch.ones(len(seeds), 2))

    def forward(self, batch: ArcBatch) -> Tensor:
        """(seed, batch, word, candidate) scores."""
        seeds = len(self.mixture)
        size, words, maps, _ = batch.maps.shape
        both = self.weights.reshape(2 * seeds, maps) @ batch.maps.float().reshape(size * words, maps, words)
        forth, back = both.view(size, words, seeds, 2, words).permute(2, 3, 0, 1, 4).unbind(1)
        edges = torch.einsum("bwmre,krm->kbwre", _by_direction(batch.edges), self.weights)
        root = torch.einsum("kbwre,ke->kbw", edges, self.mixture)
        return _masked(forth + back.transpose(-1, -2), root, batch)


class AttentionWordsProbe(nn.Module):
    """As `AttentionProbe`, the weights w and u of a pair of words being a linear function of both words' vectors.

    With `shifted` a candidate goes with the vector of the word after it, as in the released code of Clark et al.
    """

    def __init__(self, maps: int, width: int, seeds: Sequence[int], *, shifted: bool = False) -> None:
        super().__init__()
        self.shifted = shifted
        self.of_dependent = _initial(seeds, (width, 2 * maps), 0.01)
        self.of_head = _initial([seed + 1_000_003 for seed in seeds], (width, 2 * maps), 0.01)
        self.bias = nn.Parameter(torch.zeros(len(seeds), 1, 2 * maps))
        self.mixture = nn.Parameter(torch.ones(len(seeds), 2))

    def forward(self, batch: ArcBatch) -> Tensor:
        """(seed, batch, word, candidate) scores."""
        seeds = len(self.mixture)
        size, words, maps, _ = batch.maps.shape
        heads, root_vector = _head_vectors(batch, self.shifted)
        dependent = (batch.vectors.reshape(size * words, -1) @ self.of_dependent + self.bias).view(
            seeds, size * words, 2, maps
        )
        head = (heads.reshape(size * words, -1) @ self.of_head).view(seeds, size * words, 2, maps)
        rows = batch.maps.float()
        columns = rows.transpose(1, 3)
        # Rows of a map belong to a dependent that looks at its head, or to a head that looks at its dependent.
        given = torch.stack([dependent[:, :, 0], head[:, :, 1]]).flatten(0, 1).transpose(0, 1)
        got = torch.stack([dependent[:, :, 1], head[:, :, 0]]).flatten(0, 1).transpose(0, 1)
        products = given @ rows.reshape(size * words, maps, words) + got @ columns.reshape(size * words, maps, words)
        forth, back = products.view(size, words, 2, seeds, words).permute(2, 3, 0, 1, 4)
        of_root = (root_vector @ self.of_head).view(seeds, size, 1, 2, maps)
        weights = dependent.view(seeds, size, words, 2, maps) + of_root
        edges = torch.einsum("bwmre,kbwrm->kbwre", _by_direction(batch.edges), weights)
        root = torch.einsum("kbwre,ke->kbw", edges, self.mixture)
        return _masked(forth + back.transpose(-1, -2), root, batch)


class DistanceProbe(nn.Module):
    """A hidden layer over both words' vectors and eight features of their distance: no attention at all."""

    def __init__(self, width: int, hidden: int, seeds: Sequence[int], *, shifted: bool = False) -> None:
        super().__init__()
        self.shifted = shifted
        self.of_dependent = _initial(seeds, (width, hidden), (2 * width) ** -0.5)
        self.of_head = _initial([seed + 1_000_003 for seed in seeds], (width, hidden), (2 * width) ** -0.5)
        self.of_distance = _initial([seed + 2_000_003 for seed in seeds], (DISTANCES, hidden), DISTANCES**-0.5)
        self.bias = nn.Parameter(torch.zeros(len(seeds), 1, 1, hidden))
        self.out = _initial([seed + 3_000_017 for seed in seeds], (hidden, 1), hidden**-0.5)

    def forward(self, batch: ArcBatch) -> Tensor:
        """(seed, batch, word, candidate) scores."""
        size, words, _ = batch.vectors.shape
        heads, root_vector = _head_vectors(batch, self.shifted)
        candidates = torch.cat([root_vector[:, None], heads], 1)
        dependent = (batch.vectors.reshape(size * words, -1) @ self.of_dependent + self.bias[:, 0]).view(
            len(self.out), size, words, 1, -1
        )
        head = (candidates.flatten(0, 1) @ self.of_head).view(len(self.out), size, 1, words + 1, -1)
        features = distance_features(batch.there)
        far = (features.flatten(0, 2) @ self.of_distance).view(len(self.out), size, words, words + 1, -1)
        hidden = torch.tanh(dependent + head + far)
        scores = (hidden.flatten(1, 3) @ self.out).view(len(self.out), size, words, words + 1)
        return _masked(scores[..., 1:], scores[..., 0], batch)


def train(probe: nn.Module, batches: Sequence[ArcBatch], *, epochs: int, rate: float, seed: int) -> list[float]:
    """Train all seeds of a probe at once with Adam, its rate falling to zero; the mean loss of each epoch."""
    generator = torch.Generator().manual_seed(seed)
    optimiser = torch.optim.Adam(probe.parameters(), lr=rate)
    steps = max(1, epochs * len(batches))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: max(0.0, 1 - step / steps))
    losses: list[float] = []
    for _ in range(epochs):
        total = 0.0
        for place in torch.randperm(len(batches), generator=generator).tolist():
            optimiser.zero_grad()
            # The sum over seeds: no seed's gradient depends on another's.
            found = loss(probe(batches[place]), batches[place].gold)
            found.sum().backward()
            optimiser.step()
            schedule.step()
            total += float(found.detach().mean())
        losses.append(total / max(1, len(batches)))
    return losses


def loss(scores: Tensor, gold: Tensor) -> Tensor:
    """(seed,) mean cross-entropy of the gold heads over the words that count."""
    counted = gold != UNSCORED
    chances = scores.log_softmax(-1).gather(-1, gold.clamp(min=0).expand(len(scores), -1, -1)[..., None]).squeeze(-1)
    return -chances.masked_fill(~counted, 0.0).sum((1, 2)) / counted.sum().clamp(min=1)


def predict(probe: nn.Module, batch: ArcBatch) -> Tensor:
    """(seed, batch, word) the candidate with the highest score."""
    with torch.inference_mode():
        return probe(batch).argmax(-1)


def distance_features(there: Tensor) -> Tensor:
    """(batch, word, candidate, 8): how far ahead or behind over the length, five near offsets, and the ROOT."""
    size, words = there.shape
    place = torch.arange(words, device=there.device)
    offset = (place[None, :] - place[:, None]).float().expand(size, -1, -1)
    length = there.sum(1).clamp(min=1)[:, None, None]
    near = [(offset == step).float() for step in (-2, -1, 0, 1, 2)]
    features = torch.stack([offset.clamp(min=0) / length, (-offset).clamp(min=0) / length, *near], -1)
    whole = features.new_zeros(size, words, words + 1, DISTANCES)
    whole[:, :, 1:, :-1] = features
    whole[:, :, ROOT, -1] = 1
    return whole


def _by_direction(edges: Tensor) -> Tensor:
    """(batch, word, map, direction, place): given to, or got from, the places before and after the sentence."""
    return edges.float().unflatten(-1, (2, 2))


def _head_vectors(batch: ArcBatch, shifted: bool) -> tuple[Tensor, Tensor]:
    """(batch, word, width) the vector that goes with each word as a head, and (batch, width) with the ROOT."""
    nothing = torch.zeros_like(batch.vectors[:, :1])
    if not shifted:
        return batch.vectors, nothing[:, 0]
    return torch.cat([batch.vectors[:, 1:], nothing], 1), batch.vectors[:, 0]


def _masked(scores: Tensor, root: Tensor, batch: ArcBatch) -> Tensor:
    """(seed, batch, word, candidate): the ROOT first; neither padding nor the word itself is a candidate."""
    itself = torch.eye(scores.shape[-1], dtype=torch.bool, device=scores.device)
    barred = itself | ~batch.there[:, None, :]
    return torch.cat([root[..., None], scores.masked_fill(barred, float("-inf"))], -1)


def _initial(seeds: Sequence[int], shape: tuple[int, ...], scale: float) -> nn.Parameter:
    drawn = [torch.randn(shape, generator=torch.Generator().manual_seed(seed)) for seed in seeds]
    return nn.Parameter(scale * torch.stack(drawn))
