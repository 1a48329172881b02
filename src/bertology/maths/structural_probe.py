"""Linear maps under which squared distances are tree distances, and squared lengths depths; many are fitted as one.

A probe is a matrix B of (width, rank). The distance probe minimises the L1 distance between |B'(x - y)|^2 and the path
between x and y, over all ordered pairs of a sentence (a point and itself too), divided by its points squared; the
depth probe that between |B'x|^2 and the depth, divided by its points. All probes of all layers share one tensor of
weights (layer, width, column) in which each owns some columns: a batch is projected once for all of them, and the
gradient is had in closed form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import Literal

import torch
from torch import Tensor

from bertology.maths.tree_batch import TreeBatch, Trees

Kind = Literal["distance", "depth"]

INITIAL = 0.05


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
    """Members of one kind and rank, which stand side by side: how many seeds, and the columns."""

    kind: Kind
    rank: int
    count: int
    columns: slice


@cache
def _groups(members: tuple[Member, ...]) -> tuple[_Group, ...]:
    found: list[_Group] = []
    column = 0
    for (kind, rank), some in groupby(members, lambda member: (member.kind, member.rank)):
        count = len(list(some))
        found.append(_Group(kind, rank, count, slice(column, column + count * rank)))
        column += count * rank
    return tuple(found)


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
    """(layer, member, sentence) losses."""
    projected, trees = torch.bmm(batch.states, weights), batch.trees
    layers, (sentences, side, _) = projected.shape[0], trees.distances.shape
    found: list[Tensor] = []
    for group in _groups(tuple(members)):
        if group.kind == "distance":
            missed = _beyond(_by_sentence(projected, group, trees), trees).abs_().mul_(trees.of_pairs).sum((2, 3))
            found.append(missed.view(layers, group.count, sentences))
        else:
            missed = _too_long(_by_seed(projected, group), trees).abs_().mul_(trees.of_points[:, None])
            tables = missed.new_zeros(layers, sentences * side, group.count).index_copy_(1, trees.slots, missed)
            found.append(tables.view(layers, sentences, side, group.count).sum(2).transpose(1, 2))
    return torch.cat(found, 1)


def gradients(weights: Tensor, members: Sequence[Member], batch: TreeBatch) -> Tensor:
    """(layer, width, column) gradients of the losses' means over the sentences, a column in one piece."""
    towards = torch.bmm(batch.states, weights)
    for group in _groups(tuple(members)):
        turn = _distance_slopes if group.kind == "distance" else _depth_slopes
        turn(towards, group, batch.trees)
    return torch.bmm(towards.transpose(1, 2), batch.states).transpose(1, 2)


def _distance_slopes(towards: Tensor, group: _Group, trees: Trees) -> None:
    """Turn projected points into slopes: the Laplacian of the graph of what is missed (its signs) times the points."""
    own = _by_sentence(towards, group, trees)
    signs = _beyond(own, trees).sign_().mul_(trees.of_pairs).view(own.shape[0], own.shape[1], own.shape[1])
    signs.diagonal(dim1=1, dim2=2).sub_(signs.sum(2))
    slopes = torch.bmm(signs, own).view(towards.shape[0], -1, group.rank).index_select(1, trees.by_point(group.count))
    projected = towards[..., group.columns]
    torch.mul(slopes.view(projected.shape), -4 / len(trees.sizes), out=projected)


def _depth_slopes(towards: Tensor, group: _Group, trees: Trees) -> None:
    """Turn projected points into slopes: each times the sign of what its length has too much."""
    own = _by_seed(towards, group)
    signs = _too_long(own, trees).sign_().mul_(trees.of_points[:, None]).mul_(2 / len(trees.sizes))
    own.mul_(signs[..., None])


def _by_sentence(towards: Tensor, group: _Group, trees: Trees) -> Tensor:
    """(layer x seed x sentence, slot, rank) of the group's columns of (layer, point, column)."""
    first, columns = group.columns.start, towards.shape[-1]
    if first % group.rank or columns % group.rank:
        towards, first, columns = towards[..., group.columns], 0, group.count * group.rank
    rows = trees.by_slot(group.count, first // group.rank, columns // group.rank)
    found = towards.reshape(towards.shape[0], -1, group.rank).index_select(1, rows)
    return found.view(-1, trees.distances.shape[1], group.rank)


def _by_seed(towards: Tensor, group: _Group) -> Tensor:
    """(layer, point, seed, rank) of the group's columns of (layer, point, column)."""
    return towards[..., group.columns].unflatten(2, (group.count, group.rank))


def _beyond(own: Tensor, trees: Trees) -> Tensor:
    """(layer x seed, sentence, slot, slot) squared distances, less those of the trees."""
    products = torch.bmm(own, own.transpose(1, 2))
    lengths = products.diagonal(dim1=1, dim2=2).contiguous()
    # A point is at no distance from itself to the last digit: its length is the product that is taken off twice.
    apart = (lengths[:, :, None] + lengths[:, None]).sub_(products, alpha=2)
    return apart.view(-1, *trees.distances.shape).sub_(trees.distances)


def _too_long(own: Tensor, trees: Trees) -> Tensor:
    """(layer, point, seed) squared lengths, less the depths."""
    return torch.linalg.vecdot(own, own).sub_(trees.depths[:, None])
