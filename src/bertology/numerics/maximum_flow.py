"""Maximum flow through layers of n nodes each, from a node of the top layer to nodes of the bottom layer.

Nodes are connected to all nodes of the layer below, by edges with capacities. Source and target are limited only by
their edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from bertology.arrays import FloatArray

CAPACITY_SCALE = 2**28
"""Capacities are multiplied by this and rounded, as SciPy's solver needs 32-bit integers.

The error of a flow is at most half a unit for each edge of its cut: 3e-5 if the cut has all edges between two layers of
128 nodes, and about 1e-7 in practice, where rounding errors cancel.
"""


def layered_flows(capacities: FloatArray, source: int, targets: Sequence[int] | None = None) -> FloatArray:
    """(target,) the maximum flow to each target separately, from (layer, from, to) capacities, bottom layer first.

    Capacities are between 0 and 1, with row sums of at most 1. By default all nodes of the bottom layer are targets.
    """
    size = capacities.shape[-1]
    nodes = np.arange(size) if targets is None else np.asarray(targets, np.intp)
    if capacities.min() < 0 or capacities.sum(-1).max() > 1 + 1e-4:
        raise ValueError("capacities must be at least 0, with row sums of at most 1")
    if len(capacities) == 1:
        return capacities[0, source, nodes].astype(np.float64)
    if len(capacities) == 2:
        # Each node in between has one edge in and one edge out.
        return np.minimum(capacities[1, source, :, None], capacities[0][:, nodes]).sum(0, dtype=np.float64)
    return _solve_flows(capacities, source, nodes)


def _solve_flows(capacities: FloatArray, source: int, targets: NDArray[np.intp]) -> FloatArray:
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import maximum_flow

    layers, size, _ = capacities.shape
    units = np.rint(capacities * CAPACITY_SCALE).astype(np.int32)
    layer, start, end = np.nonzero(units)
    n_nodes = (layers + 1) * size
    edges = ((layer + 1) * size + start, layer * size + end)
    graph = csr_matrix((units[layer, start, end], edges), shape=(n_nodes, n_nodes))
    flows = (maximum_flow(graph, layers * size + source, int(target), method="dinic") for target in targets)
    return np.array([cast("Any", flow).flow_value for flow in flows]) / CAPACITY_SCALE
