"""Flows through layers equal minimum cuts by hand, and those of networkx on random graphs."""

from __future__ import annotations

from typing import Any

import networkx
import numpy as np
import pytest

from bertology.numerics.maximum_flow import FloatArray, layered_flows


def random_capacities(
    layers: int, size: int, seed: int, *, concentration: float = 0.3, residual: float = 0.5
) -> FloatArray:
    attention = np.random.default_rng(seed).dirichlet(np.full(size, concentration), size=(layers, size))
    return (1 - residual) * attention + residual * np.eye(size)


def by_networkx(capacities: FloatArray, source: int, target: int) -> float:
    layers, size, _ = capacities.shape
    graph: Any = networkx.DiGraph()
    for layer in range(layers):
        for start in range(size):
            for end in range(size):
                graph.add_edge((layer + 1, start), (layer, end), capacity=float(capacities[layer, start, end]))
    return float(networkx.maximum_flow_value(graph, (layers, source), (0, target)))


@pytest.mark.parametrize("layers", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("residual", [0.0, 0.5])
def test_flows_equal_those_of_networkx(layers: int, residual: float) -> None:
    capacities = random_capacities(layers, 5, layers, residual=residual)
    for source in range(5):
        expected = [by_networkx(capacities, source, target) for target in range(5)]
        np.testing.assert_allclose(layered_flows(capacities, source), expected, atol=1e-6)
    np.testing.assert_allclose(layered_flows(capacities, 2, [4, 1]), layered_flows(capacities, 2)[[4, 1]])


def test_a_cut_by_hand() -> None:
    """From token 0 to token 0 there are two paths, 0 -> 0 -> 0 and 0 -> 1 -> 0, each limited by its weaker edge."""
    bottom, top = np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([[0.6, 0.4], [0.3, 0.7]])
    np.testing.assert_allclose(layered_flows(np.stack([bottom, top]), 0), [0.6 + 0.2, 0.1 + 0.4])
    np.testing.assert_allclose(layered_flows(np.stack([bottom, top]), 1), [0.3 + 0.2, 0.1 + 0.7])


def test_a_cut_by_hand_through_three_layers() -> None:
    """The middle layer is the bottleneck: from token 0, token 1 can be reached only by an edge of 0.25."""
    identity, bridge = np.eye(2), np.array([[0.75, 0.25], [0.0, 1.0]])
    np.testing.assert_allclose(layered_flows(np.stack([identity, bridge, identity]), 0), [0.75, 0.25], atol=1e-8)


def test_flow_through_identity_layers_and_through_a_chain() -> None:
    identity = np.tile(np.eye(4), (5, 1, 1))
    np.testing.assert_array_equal(layered_flows(identity, 2), np.eye(4)[2])
    chain = np.tile(np.roll(np.eye(6), 1, axis=1), (4, 1, 1))
    np.testing.assert_array_equal(layered_flows(chain, 1), np.eye(6)[5])


def test_a_flow_is_bounded_by_the_capacities_at_source_and_target() -> None:
    capacities = random_capacities(5, 9, 3)
    bound = np.minimum(capacities[-1, 4].sum(), capacities[0].sum(0))
    assert (layered_flows(capacities, 4) <= bound + 1e-6).all()


def test_invalid_capacities_are_refused() -> None:
    one_row = np.diag([0.5, 1.5, 0.5])[None]
    for invalid in (-np.eye(3)[None], 2 * np.eye(3)[None], one_row):
        with pytest.raises(ValueError, match="row sums"):
            layered_flows(invalid, 0)


def test_many_tokens_and_layers_take_seconds() -> None:
    """The size of a long sentence in BERT-base; a wrong algorithm takes minutes."""
    import time

    capacities = random_capacities(12, 128, 0)
    started = time.process_time()
    flows = layered_flows(capacities, 0)
    assert time.process_time() - started < 10
    assert flows.shape == (128,) and (flows > 0).all()
