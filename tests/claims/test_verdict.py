from __future__ import annotations

import pytest

from bertology.claims.verdict import Comparison, Measurement
from bertology.estimates.estimate import Estimate


@pytest.mark.parametrize("lower", [0.5, Measurement("other", Estimate(0.5, 0.4, 0.6, 40))])
def test_a_comparison_rests_on_the_examples_of_its_larger_sample(lower: Measurement | float) -> None:
    """A constant was measured on none."""
    value = Measurement("m", Estimate(0.8, 0.7, 0.9, 90))
    for is_below in (False, True):
        effect = Comparison(value, lower, is_below=is_below).effect
        assert effect.n == 90 and effect.value == pytest.approx(-0.3 if is_below else 0.3)


@pytest.mark.parametrize(
    ("layers", "text"),
    [((3,), "layer 3"), ((1, 2, 3, 4), "layers 1-4"), ((1, 2, 5, 9, 10, 11), "layers 1-2, 5, 9-11")],
)
def test_searched_layers_are_named_by_their_runs(layers: tuple[int, ...], text: str) -> None:
    number = Measurement("m", Estimate(0.8, 0.7, 0.9, 90), searched_layers=layers)
    assert number.name == f"m, the highest of {text}"
