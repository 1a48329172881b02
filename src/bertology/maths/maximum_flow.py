"""Maximum flow down through layers of n places each, from one place of the top layer to places of the bottom.

Places are joined to all places of the layer below by edges of given capacity; flow is conserved in between, and neither
the start nor the end is limited but by its edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SCALE = 2**28
"""Capacities are counted in this many parts of 1, as SciPy's solver wants whole numbers of 32 bits.

A flow is out by half a part for each edge of its cut at most: 3e-5 if a cut had to go through all edges between two
layers of 128 places, and some 1e-7 in practice, where roundings up and down cancel.
"""


def layered_flows(capacities: Floats, source: int, targets: Sequence[int] | None = None) -> Floats:
    """(target,) the largest flow to each target, one at a time, from (layer, from, to) capacities, the bottom first.

    Capacities lie between 0 and 1 and sum to at most 1 in each row. All places of the bottom are targets by default.
    """
    size = capacities.shape[-1]
    wanted = np.arange(size) if targets is None else np.asarray(targets, np.intp)
    if capacities.min() < 0 or capacities.sum(-1).max() > 1 + 1e-4:
        raise ValueError("capacities are shares: at least 0, and at most 1 in the sum of a row")
    if len(capacities) == 1:
        return capacities[0, source, wanted].astype(np.float64)
    if len(capacities) == 2:
        # Each place in between has one edge in and one out.
        return np.minimum(capacities[1, source, :, None], capacities[0][:, wanted]).sum(0, dtype=np.float64)
    return _solved(capacities, source, wanted)


def _solved(capacities: Floats, source: int, targets: NDArray[np.intp]) -> Floats:
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import maximum_flow

    layers, size, _ = capacities.shape
    parts = np.rint(capacities * SCALE).astype(np.int32)
    layer, start, end = np.nonzero(parts)
    nodes = (layers + 1) * size
    edges = ((layer + 1) * size + start, layer * size + end)
    graph = csr_matrix((parts[layer, start, end], edges), shape=(nodes, nodes))
    found = (maximum_flow(graph, layers * size + source, int(target), method="dinic") for target in targets)
    return np.array([cast("Any", one).flow_value for one in found]) / SCALE
