"""Sentences with a tree over their points, as structural probes are fitted to them: many in one tensor, no padding.

States of all points of all sentences lie one after the other and are projected so. Only pairs of points need a table a
sentence; the tables of a batch have one size, and rows lead from points to the slots of the tables and back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

SIDE = 4
"""Tables have a multiple of so many rows: products of small odd ones take up to three times as long."""


class TreeSentence(NamedTuple):
    """(layer, point, width) states, (point, point) distances and (point,) depths of one sentence."""

    states: Tensor
    distances: Tensor
    depths: Tensor


@dataclass(frozen=True)
class Trees:
    """The trees of some sentences, and how much each pair and each point counts in the loss of its sentence.

    `distances` and `of_pairs` are (sentence, slot, slot), 0 beyond the points of a sentence; `depths` and `of_points`
    are (point,) of all sentences together. `slots` is (point,) the slot of each point among all (sentence, slot), and
    `points` (sentence x slot,) the point of each slot, any where there is none.
    """

    sizes: tuple[int, ...]
    distances: Tensor
    of_pairs: Tensor
    depths: Tensor
    of_points: Tensor
    slots: Tensor
    points: Tensor
    _rows: dict[tuple[str, int, int, int], Tensor] = field(
        default_factory=dict[tuple[str, int, int, int], Tensor], init=False
    )

    def to(self, device: str) -> Trees:
        """The same elsewhere."""
        parts = (self.distances, self.of_pairs, self.depths, self.of_points, self.slots, self.points)
        return Trees(self.sizes, *(part.to(device) for part in parts))

    def by_slot(self, count: int, first: int = 0, among: int = 0) -> Tensor:
        """Rows of (point, probe) in the order of (probe, slot), of so many probes from the first on, among so many."""
        key = "slot", count, first, among or count
        if key not in self._rows:
            probes = torch.arange(first, first + count, device=self.points.device)
            self._rows[key] = (self.points * (among or count) + probes[:, None]).flatten()
        return self._rows[key]

    def by_point(self, count: int) -> Tensor:
        """Rows of (probe, slot) in the order of (point, probe), of so many probes."""
        key = "point", count, 0, count
        if key not in self._rows:
            probes = torch.arange(count, device=self.slots.device)
            self._rows[key] = (self.slots[:, None] + probes * len(self.points)).flatten()
        return self._rows[key]


@dataclass(frozen=True)
class TreeBatch:
    """(layer, point, width) states of all points of some sentences, and the trees over them."""

    states: Tensor
    trees: Trees

    def of_layers(self, chosen: Sequence[int]) -> TreeBatch:
        """The same with some layers only."""
        if len(chosen) == len(self.states):
            return self
        # Layers side by side are a view: nothing is copied.
        side_by_side = chosen[-1] - chosen[0] == len(chosen) - 1
        return TreeBatch(self.states[slice(chosen[0], chosen[-1] + 1) if side_by_side else list(chosen)], self.trees)

    def sentences(self) -> list[TreeSentence]:
        """One by one."""
        sizes = self.trees.sizes
        parts = zip(sizes, self.states.split(sizes, 1), self.trees.depths.split(sizes), strict=True)
        return [
            TreeSentence(states, self.trees.distances[row, :size, :size], depths)
            for row, (size, states, depths) in enumerate(parts)
        ]


@runtime_checkable
class Layered(Protocol):
    """Batches that can be had for some layers without the others being loaded."""

    def of_layers(self, chosen: Sequence[int]) -> Sequence[TreeBatch]:
        """The same with some layers only."""
        ...


def of_layers(batches: Sequence[TreeBatch], chosen: Sequence[int]) -> Sequence[TreeBatch]:
    """The batches with some layers only."""
    if isinstance(batches, Layered):
        return batches.of_layers(chosen)
    return [batch.of_layers(chosen) for batch in batches]


def trees_of(distances: Sequence[Tensor], depths: Sequence[Tensor]) -> Trees:
    """The trees of sentences with these (point, point) distances and (point,) depths."""
    sizes = tuple(len(one) for one in depths)
    side = -(-max(sizes) // SIDE) * SIDE
    tables, of_pairs = (torch.zeros(len(sizes), side, side) for _ in range(2))
    for row, (size, own) in enumerate(zip(sizes, distances, strict=True)):
        tables[row, :size, :size] = own
        of_pairs[row, :size, :size] = 1 / size**2
    slots = torch.cat([row * side + torch.arange(size) for row, size in enumerate(sizes)])
    points = torch.zeros(len(sizes) * side, dtype=torch.long)
    points[slots] = torch.arange(len(slots))
    of_points = torch.cat([torch.full((size,), 1 / size) for size in sizes])
    return Trees(sizes, tables, of_pairs, torch.cat([one.float() for one in depths]), of_points, slots, points)
