"""Structural probes: linear maps under which squared distances are tree distances and squared norms are tree depths.

A probe is a matrix B of (width, rank). The distance probe minimises the L1 error of |B'(x - y)|^2 against the path
length between x and y, over all ordered pairs of nodes of a sentence (including a node and itself), divided by the
squared number of nodes; the depth probe that of |B'x|^2 against the depth, divided by the number of nodes. All probes
of all layers share one tensor of weights (layer, width, column), in which each probe has some columns: a batch is
projected once for all probes, and gradients have a closed form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, Literal

from bertology.analyses.structural_probing.tree_batch import PackedTrees, TreeBatch
from bertology.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor

StructuralKind = Literal["distance", "depth"]

INITIAL_RANGE = 0.05


@dataclass(frozen=True)
class ProbeSpec:
    """A probe, fitted in every layer: what it predicts, its number of columns, and the seed of its initial weights."""

    kind: StructuralKind
    rank: int
    seed: int


@dataclass(frozen=True)
class StructuralProbes:
    """Fitted probes: weights (layer, width, column), and validation loss and best epoch of each (layer, probe)."""

    specs: tuple[ProbeSpec, ...]
    weights: Tensor
    losses: Tensor
    epochs: Tensor

    def distances(self, states: Tensor, rank: int) -> Tensor:
        """(layer, seed, node, node) squared distances of (layer, node, width) states, by probes of one rank."""
        projected = self._project(states, "distance", rank)
        # By differences, not by products as in fitting: equal distances must not differ in the last digit.
        return torch.cdist(projected, projected, compute_mode="donot_use_mm_for_euclid_dist").square()

    def depths(self, states: Tensor, rank: int) -> Tensor:
        """(layer, seed, node) squared norms."""
        return self._project(states, "depth", rank).square().sum(-1)

    def _project(self, states: Tensor, kind: StructuralKind, rank: int) -> Tensor:
        """(layer, seed, node, rank) projected states."""
        group = next(group for group in _probe_groups(self.specs) if (group.kind, group.rank) == (kind, rank))
        weights = self.weights[:, :, group.columns].unflatten(-1, (group.n_seeds, rank))
        return torch.einsum("lnw,lwsr->lsnr", states, weights)


@dataclass(frozen=True)
class _ProbeGroup:
    """Adjacent probes of one kind and rank: the number of seeds, and their columns."""

    kind: StructuralKind
    rank: int
    n_seeds: int
    columns: slice


@cache
def _probe_groups(specs: tuple[ProbeSpec, ...]) -> tuple[_ProbeGroup, ...]:
    groups: list[_ProbeGroup] = []
    column = 0
    for (kind, rank), members in groupby(specs, lambda spec: (spec.kind, spec.rank)):
        n_seeds = len(list(members))
        groups.append(_ProbeGroup(kind, rank, n_seeds, slice(column, column + n_seeds * rank)))
        column += n_seeds * rank
    return tuple(groups)


def probe_specs(kinds: Sequence[StructuralKind], ranks: Sequence[int], seeds: Sequence[int]) -> tuple[ProbeSpec, ...]:
    """Every combination of kind, rank and seed."""
    return tuple(ProbeSpec(kind, rank, seed) for kind in kinds for rank in ranks for seed in seeds)


def initial_weights(specs: Sequence[ProbeSpec], n_layers: int, width: int) -> Tensor:
    """(layer, width, column) uniform random weights, the same in every layer."""
    weights = [
        torch.empty(width, spec.rank).uniform_(
            -INITIAL_RANGE, INITIAL_RANGE, generator=torch.Generator().manual_seed(spec.seed)
        )
        for spec in specs
    ]
    return torch.cat(weights, 1).expand(n_layers, -1, -1).contiguous()


def losses(weights: Tensor, specs: Sequence[ProbeSpec], batch: TreeBatch) -> Tensor:
    """(layer, probe, sentence) losses."""
    projected, trees = torch.bmm(batch.states, weights), batch.trees
    n_layers, (n_sentences, n_slots, _) = projected.shape[0], trees.distances.shape
    by_group: list[Tensor] = []
    for group in _probe_groups(tuple(specs)):
        if group.kind == "distance":
            residuals = _distance_residuals(_sentence_projections(projected, group, trees), trees)
            errors = residuals.abs_().mul_(trees.pair_weights).sum((2, 3))
            by_group.append(errors.view(n_layers, group.n_seeds, n_sentences))
        else:
            residuals = _depth_residuals(_seed_projections(projected, group), trees)
            errors = residuals.abs_().mul_(trees.node_weights[:, None])
            tables = errors.new_zeros(n_layers, n_sentences * n_slots, group.n_seeds)
            tables.index_copy_(1, trees.slots, errors)
            by_group.append(tables.view(n_layers, n_sentences, n_slots, group.n_seeds).sum(2).transpose(1, 2))
    return torch.cat(by_group, 1)


def probe_gradients(weights: Tensor, specs: Sequence[ProbeSpec], batch: TreeBatch) -> Tensor:
    """(layer, width, column) gradients of the mean loss over sentences; columns are contiguous in memory."""
    projected = torch.bmm(batch.states, weights)
    for group in _probe_groups(tuple(specs)):
        to_gradients = _distance_gradients if group.kind == "distance" else _depth_gradients
        to_gradients(projected, group, batch.trees)
    return torch.bmm(projected.transpose(1, 2), batch.states).transpose(1, 2)


def _distance_gradients(projections: Tensor, group: _ProbeGroup, trees: PackedTrees) -> None:
    """Replace the group's projections by their gradients: the Laplacian of the residuals' signs times the nodes."""
    nodes = _sentence_projections(projections, group, trees)
    signs = _distance_residuals(nodes, trees).sign_().mul_(trees.pair_weights)
    signs = signs.view(nodes.shape[0], nodes.shape[1], nodes.shape[1])
    signs.diagonal(dim1=1, dim2=2).sub_(signs.sum(2))
    gradient = (
        torch.bmm(signs, nodes)
        .view(projections.shape[0], -1, group.rank)
        .index_select(1, trees.rows_by_node(group.n_seeds))
    )
    out = projections[..., group.columns]
    torch.mul(gradient.view(out.shape), -4 / len(trees.sizes), out=out)


def _depth_gradients(projections: Tensor, group: _ProbeGroup, trees: PackedTrees) -> None:
    """Replace the group's projections by their gradients: each times the sign of its residual."""
    nodes = _seed_projections(projections, group)
    signs = _depth_residuals(nodes, trees).sign_().mul_(trees.node_weights[:, None]).mul_(2 / len(trees.sizes))
    nodes.mul_(signs[..., None])


def _sentence_projections(projections: Tensor, group: _ProbeGroup, trees: PackedTrees) -> Tensor:
    """(layer x seed x sentence, slot, rank) from the group's columns of (layer, node, column)."""
    first, n_columns = group.columns.start, projections.shape[-1]
    if first % group.rank or n_columns % group.rank:
        projections, first, n_columns = projections[..., group.columns], 0, group.n_seeds * group.rank
    rows = trees.rows_by_slot(group.n_seeds, first // group.rank, n_columns // group.rank)
    nodes = projections.reshape(projections.shape[0], -1, group.rank).index_select(1, rows)
    return nodes.view(-1, trees.distances.shape[1], group.rank)


def _seed_projections(projections: Tensor, group: _ProbeGroup) -> Tensor:
    """(layer, node, seed, rank) view of the group's columns of (layer, node, column)."""
    return projections[..., group.columns].unflatten(2, (group.n_seeds, group.rank))


def _distance_residuals(projections: Tensor, trees: PackedTrees) -> Tensor:
    """(layer x seed, sentence, slot, slot) squared distances minus tree distances."""
    products = torch.bmm(projections, projections.transpose(1, 2))
    squared_norms = products.diagonal(dim1=1, dim2=2).contiguous()
    # The distance of a node to itself is exactly 0: its squared norm is the product subtracted twice.
    distances = (squared_norms[:, :, None] + squared_norms[:, None]).sub_(products, alpha=2)
    return distances.view(-1, *trees.distances.shape).sub_(trees.distances)


def _depth_residuals(projections: Tensor, trees: PackedTrees) -> Tensor:
    """(layer, node, seed) squared norms minus tree depths."""
    return torch.linalg.vecdot(projections, projections).sub_(trees.depths[:, None])
