"""Batches of trees for structural probes: many sentences in one tensor, without padding the states.

The states of all nodes (words) of all sentences are concatenated and projected together. Only pairs of nodes need a
table per sentence; the tables of a batch have one size, and index tensors map nodes to table slots and back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from bertology.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor

TABLE_MULTIPLE = 4
"""Table sizes are multiples of this: products of small odd matrices take up to three times as long."""


class TreeSentence(NamedTuple):
    """(layer, node, width) states, (node, node) distances and (node,) depths of one sentence."""

    states: Tensor
    distances: Tensor
    depths: Tensor


@dataclass(frozen=True)
class PackedTrees:
    """The trees of some sentences, and the weight of each pair and each node in the loss.

    `distances` and `pair_weights` are (sentence, slot, slot), 0 beyond the nodes of a sentence; `depths` and
    `node_weights` are (node,) over all sentences. `slots` is (node,) the slot of each node among all (sentence, slot),
    and `nodes` is (sentence x slot,) the node of each slot, arbitrary for empty slots.
    """

    sizes: tuple[int, ...]
    distances: Tensor
    pair_weights: Tensor
    depths: Tensor
    node_weights: Tensor
    slots: Tensor
    nodes: Tensor
    _rows: dict[tuple[str, int, int, int], Tensor] = field(
        default_factory=dict[tuple[str, int, int, int], "Tensor"], init=False
    )

    def to(self, device: str) -> PackedTrees:
        """The same trees on another device."""
        tensors = (self.distances, self.pair_weights, self.depths, self.node_weights, self.slots, self.nodes)
        return PackedTrees(self.sizes, *(tensor.to(device) for tensor in tensors))

    def rows_by_slot(self, count: int, first: int = 0, total: int = 0) -> Tensor:
        """Rows of (node, probe) in the order (probe, slot), for `count` probes from `first` among `total`."""
        key = "slot", count, first, total or count
        if key not in self._rows:
            probes = torch.arange(first, first + count, device=self.nodes.device)
            self._rows[key] = (self.nodes * (total or count) + probes[:, None]).flatten()
        return self._rows[key]

    def rows_by_node(self, count: int) -> Tensor:
        """Rows of (probe, slot) in the order (node, probe), for `count` probes."""
        key = "node", count, 0, count
        if key not in self._rows:
            probes = torch.arange(count, device=self.slots.device)
            self._rows[key] = (self.slots[:, None] + probes * len(self.nodes)).flatten()
        return self._rows[key]


@dataclass(frozen=True)
class TreeBatch:
    """(layer, node, width) states of all nodes of some sentences, and the trees over them."""

    states: Tensor
    trees: PackedTrees

    def select_layers(self, layers: Sequence[int]) -> TreeBatch:
        """The batch with some layers only."""
        if len(layers) == len(self.states):
            return self
        # Adjacent layers are a view, without a copy.
        is_adjacent = layers[-1] - layers[0] == len(layers) - 1
        return TreeBatch(self.states[slice(layers[0], layers[-1] + 1) if is_adjacent else list(layers)], self.trees)

    def sentences(self) -> list[TreeSentence]:
        """The sentences of the batch."""
        sizes = self.trees.sizes
        parts = zip(sizes, self.states.split(sizes, 1), self.trees.depths.split(sizes), strict=True)
        return [
            TreeSentence(states, self.trees.distances[row, :size, :size], depths)
            for row, (size, states, depths) in enumerate(parts)
        ]


@runtime_checkable
class LayerSelectable(Protocol):
    """Batches of which some layers can be selected without loading the others."""

    def select_layers(self, layers: Sequence[int]) -> Sequence[TreeBatch]:
        """The batches with some layers only."""
        ...


def select_layers(batches: Sequence[TreeBatch], layers: Sequence[int]) -> Sequence[TreeBatch]:
    """The batches with some layers only."""
    if isinstance(batches, LayerSelectable):
        return batches.select_layers(layers)
    return [batch.select_layers(layers) for batch in batches]


def pack_trees(distances: Sequence[Tensor], depths: Sequence[Tensor]) -> PackedTrees:
    """The trees of sentences with these (node, node) distances and (node,) depths."""
    sizes = tuple(len(sentence_depths) for sentence_depths in depths)
    n_slots = -(-max(sizes) // TABLE_MULTIPLE) * TABLE_MULTIPLE
    tables, pair_weights = (torch.zeros(len(sizes), n_slots, n_slots) for _ in range(2))
    for row, (size, sentence_distances) in enumerate(zip(sizes, distances, strict=True)):
        tables[row, :size, :size] = sentence_distances
        pair_weights[row, :size, :size] = 1 / size**2
    slots = torch.cat([row * n_slots + torch.arange(size) for row, size in enumerate(sizes)])
    nodes = torch.zeros(len(sizes) * n_slots, dtype=torch.long)
    nodes[slots] = torch.arange(len(slots))
    all_depths = torch.cat([sentence_depths.float() for sentence_depths in depths])
    node_weights = torch.cat([torch.full((size,), 1 / size) for size in sizes])
    return PackedTrees(sizes, tables, pair_weights, all_depths, node_weights, slots, nodes)
