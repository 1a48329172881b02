"""Linear maps under which squared distances are tree distances, and squared lengths depths; many are fitted as one.

A probe is a matrix B of (width, rank). The distance probe minimises the L1 distance between |B'(x - y)|^2 and the path
between x and y, over all ordered pairs of a sentence (a point and itself too), divided by its points squared; the
depth probe that between |B'x|^2 and the depth, divided by its points. All probes of all layers share one tensor of
weights (layer, width, column) in which each owns some columns: a batch is projected once for all of them, and the
gradient is had in closed form.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

import torch
from torch import Tensor

Kind = Literal["distance", "depth"]

INITIAL = 0.05
ABSENT = -1


@dataclass(frozen=True)
class TreeBatch:
    """Sentences padded to one length.

    `states` is (layer, sentence, point, width), 0 in padding; `distances` (sentence, point, point) and `depths`
    (sentence, point) are `ABSENT` there; `sizes` (sentence,) is the number of points.
    """

    states: Tensor
    distances: Tensor
    depths: Tensor
    sizes: Tensor

    def of_layers(self, chosen: Sequence[int]) -> TreeBatch:
        """The same with some layers only."""
        if len(chosen) == len(self.states):
            return self
        states = self.states[chosen[0] :][:1] if len(chosen) == 1 else self.states[list(chosen)]
        return TreeBatch(states, self.distances, self.depths, self.sizes)


@dataclass(frozen=True)
class Member:
    """One probe a layer: what it measures, how many columns it has, and what its initial weights are drawn with."""

    kind: Kind
    rank: int
    seed: int


@dataclass(frozen=True)
class Probes:
    """Fitted probes: weights (layer, width, column), the held-out loss of each (layer, member), and epochs it took."""

    members: tuple[Member, ...]
    weights: Tensor
    losses: Tensor
    epochs: Tensor

    def distances(self, states: Tensor, rank: int) -> Tensor:
        """(layer, seed, point, point) squared distances of (layer, point, width) under the probes of that rank."""
        own = self._projected(states, "distance", rank)
        # By differences and not by products as in fitting: distances that are the same must not differ in a last digit.
        return torch.cdist(own, own, compute_mode="donot_use_mm_for_euclid_dist").square()

    def depths(self, states: Tensor, rank: int) -> Tensor:
        """(layer, seed, point) squared lengths."""
        return self._projected(states, "depth", rank).square().sum(-1)

    def _projected(self, states: Tensor, kind: Kind, rank: int) -> Tensor:
        """(layer, seed, point, rank)."""
        own = next(group for group in _groups(self.members) if (group.kind, group.rank) == (kind, rank))
        weights = self.weights[:, :, own.columns].unflatten(-1, (own.count, rank))
        return torch.einsum("lnw,lwsr->lsnr", states, weights)


@dataclass(frozen=True)
class _Group:
    """Members of one kind and rank, which stand side by side: their seeds, places and columns."""

    kind: Kind
    rank: int
    count: int
    places: slice
    columns: slice


def _groups(members: Sequence[Member]) -> Iterator[_Group]:
    place = column = 0
    for (kind, rank), some in groupby(members, lambda member: (member.kind, member.rank)):
        count = len(list(some))
        yield _Group(kind, rank, count, slice(place, place + count), slice(column, column + count * rank))
        place, column = place + count, column + count * rank


def members_of(kinds: Sequence[Kind], ranks: Sequence[int], seeds: Sequence[int]) -> tuple[Member, ...]:
    """Every kind with every rank and seed."""
    return tuple(Member(kind, rank, seed) for kind in kinds for rank in ranks for seed in seeds)


def initial(members: Sequence[Member], layers: int, width: int) -> Tensor:
    """(layer, width, column) uniform weights, the same in every layer."""
    drawn = [
        torch.empty(width, m.rank).uniform_(-INITIAL, INITIAL, generator=torch.Generator().manual_seed(m.seed))
        for m in members
    ]
    return torch.cat(drawn, 1).expand(layers, -1, -1).contiguous()


def losses(weights: Tensor, members: Sequence[Member], batch: TreeBatch) -> Tensor:
    """(layer, member) losses summed over the sentences."""
    projected = _projection(weights, batch)
    found = [
        (_distance_loss if group.kind == "distance" else _depth_loss)(_own(projected, group), batch)
        for group in _groups(members)
    ]
    return torch.cat(found, 1)


def gradients(weights: Tensor, members: Sequence[Member], batch: TreeBatch) -> Tensor:
    """(layer, width, column) gradients of the losses' means over the sentences."""
    projected = _projection(weights, batch)
    towards = torch.empty_like(projected)
    for group in _groups(members):
        slope = (_distance_slope if group.kind == "distance" else _depth_slope)(_own(projected, group), batch)
        towards[..., group.columns].unflatten(-1, (group.count, group.rank)).copy_(slope.transpose(2, 3))
    return batch.states.flatten(1, 2).transpose(1, 2) @ towards.flatten(1, 2)


def _projection(weights: Tensor, batch: TreeBatch) -> Tensor:
    """(layer, sentence, point, column)."""
    return (batch.states.flatten(1, 2) @ weights).unflatten(1, batch.states.shape[1:3])


def _own(projected: Tensor, group: _Group) -> Tensor:
    """(layer, sentence, seed, point, rank) of a group, copied once, or every product would do it again."""
    return projected[..., group.columns].unflatten(-1, (group.count, group.rank)).transpose(2, 3).contiguous()


def _distance_loss(own: Tensor, batch: TreeBatch) -> Tensor:
    missed = _beyond(own, batch.distances).abs_()
    return missed.mul_(_of_pairs(batch)).sum((1, 3, 4))


def _distance_slope(own: Tensor, batch: TreeBatch) -> Tensor:
    """The Laplacian of the graph whose edges are the signs of what is missed, times the points."""
    signs = _beyond(own, batch.distances).sign_().mul_(_of_pairs(batch) * (-4 / len(batch.sizes)))
    diagonal = signs.diagonal(dim1=-2, dim2=-1)
    diagonal -= signs.sum(-1)
    return signs @ own


def _depth_loss(own: Tensor, batch: TreeBatch) -> Tensor:
    missed = own.square().sum(-1).sub_(batch.depths[:, None]).abs_()
    return missed.mul_(_of_points(batch)).sum((1, 3))


def _depth_slope(own: Tensor, batch: TreeBatch) -> Tensor:
    signs = own.square().sum(-1).sub_(batch.depths[:, None]).sign_().mul_(_of_points(batch) * (2 / len(batch.sizes)))
    return signs[..., None] * own


def _beyond(own: Tensor, distances: Tensor) -> Tensor:
    """(layer, sentence, seed, point, point) squared distances of (..., point, rank), less these distances."""
    lengths = own.square().sum(-1)
    sums = (lengths[..., None] + lengths[..., None, :]).sub_(distances[:, None])
    flat = own.flatten(0, 2)
    sums.view(-1, *sums.shape[3:]).baddbmm_(flat, flat.transpose(1, 2), alpha=-2)
    # A point is at no distance from itself, whatever rounding makes of it.
    sums.diagonal(dim1=-2, dim2=-1).zero_()
    return sums


def _of_pairs(batch: TreeBatch) -> Tensor:
    """(sentence, 1, point, point) the share of each pair in the loss of its sentence."""
    return ((batch.distances != ABSENT) / batch.sizes.square()[:, None, None])[:, None]


def _of_points(batch: TreeBatch) -> Tensor:
    """(sentence, 1, point)."""
    return ((batch.depths != ABSENT) / batch.sizes[:, None])[:, None]


def held_out_losses(weights: Tensor, members: Sequence[Member], batches: Iterable[TreeBatch]) -> Tensor:
    """(layer, member) mean loss over all sentences."""
    total, sentences = torch.zeros(len(weights), len(members), device=weights.device), 0
    for batch in batches:
        total += losses(weights, members, batch)
        sentences += len(batch.sizes)
    return total / sentences
