"""Curves: lines with gaps, names at their ends that never overlap, logarithmic axes."""

from __future__ import annotations

import re

import numpy as np
import pytest

from bertology.estimates.estimate import Estimates
from bertology.results.drawing.curves import HEIGHT, WIDTH, draw_curve, draw_layer_curve
from bertology.results.shapes import Curve, LayerCurve
from results.example_results import estimates


def panel(measure: Estimates, baselines: dict[str, Estimates]) -> str:
    curve = LayerCurve(measures={"m": measure}, baselines={n: {"m": b} for n, b in baselines.items()}, first_layer=1)
    return str(draw_layer_curve(curve).panels[0].body)


def flat(value: float, *, n_layers: int = 5) -> Estimates:
    return Estimates.exact(np.where(np.arange(5) < n_layers, value, np.nan))


def label_positions(svg: str) -> dict[str, tuple[float, float]]:
    """The positions of the names at the ends of lines."""
    labels = re.findall(r'<text x="([\d.]+)" y="([\d.-]+)" class="point end">([^<]+)<', svg)
    return {name: (float(x), float(y)) for x, y, name in labels}


def test_no_line_crosses_a_gap() -> None:
    value = np.array([0.1, 0.2, np.nan, 0.3, 0.4])
    measure = Estimates(value=value, low=value - 0.1, high=value + 0.1, n=np.full(5, 3))
    svg = panel(measure, {"chance": flat(0.1)})
    (model,) = re.findall(r'<g class="s0 model">(.*?)</g>', svg)
    assert model.count("<polyline") == model.count("<polygon") == 2
    assert svg.count("<circle") == 4 and "layer 3: not measured" in svg and "nan" not in svg


def test_names_of_lines_never_overlap() -> None:
    similar = {f"baseline {number}": flat(0.001 * number) for number in range(4)}
    svg = panel(flat(1.0), {"high": flat(0.9), **similar})
    positions = label_positions(svg)
    heights = sorted(y for _, y in positions.values())
    assert set(positions) == {"high", *similar} and min(np.diff(heights)) > 13.8
    assert all(0 < y < HEIGHT for y in heights) and len({x for x, _ in positions.values()}) == 1
    assert svg.count("leader") >= 2
    apart = panel(flat(1.0), {"high": flat(0.9), "low": flat(0.1)})
    assert label_positions(apart)["high"][1] < label_positions(apart)["low"][1] and "leader" not in apart


def test_long_names_are_cut_and_short_lines_are_joined_to_their_name() -> None:
    long = "a name that is much longer than the space next to a line"
    svg = panel(flat(1.0), {long: flat(0.5, n_layers=3), "nowhere": flat(np.nan)})
    ((name, (x, _)),) = label_positions(svg).items()
    assert name.endswith("…") and x + 6 * len(name) < WIDTH and f"<title>{long}</title>" in svg
    assert svg.count("leader") == 1 and "nan" not in svg


def test_baselines_have_bands() -> None:
    svg = panel(estimates(5, missing=False), {"chance": estimates(5, missing=False), "level": flat(0.1)})
    assert svg.count('class="band"') == 2


def circle_positions(curve: Curve) -> list[float]:
    return [float(x) for x in re.findall(r'cx="([\d.]+)"', str(draw_curve(curve).panels[0].body))]


def test_an_axis_that_spans_orders_of_magnitude_is_logarithmic() -> None:
    values = {"m": estimates(3, missing=False)}
    curve = Curve(measures=values, baselines={"b": values}, x_name="examples", x=np.array([10.0, 100.0, 1000.0]))
    positions = circle_positions(curve)
    assert positions[1] - positions[0] == pytest.approx(positions[2] - positions[1], abs=0.2)
    assert "examples (logarithmic)" in str(draw_curve(curve).panels[0].body)
    linear = circle_positions(curve.model_copy(update={"x": np.array([0.0, 1.0, 4.0])}))
    assert linear[2] - linear[1] == pytest.approx(3 * (linear[1] - linear[0]), abs=0.5)


def test_labels_along_an_axis_do_not_touch() -> None:
    values = {"m": Estimates.exact(np.linspace(0, 1, 200))}
    curve = Curve(measures=values, baselines={"b": values}, x_name="heads pruned", x=np.arange(200.0))
    svg = str(draw_curve(curve).panels[0].body)
    positions = [float(x) for x in re.findall(rf'<text x="([\d.]+)" y="{HEIGHT - 21}"', svg)]
    assert 5 < len(positions) < 30 and min(np.diff(positions)) > 9.9 and svg.count("<circle") == 200


def test_an_axis_with_one_value_is_drawn() -> None:
    assert "nan" not in panel(flat(0.5), {"same": flat(0.5)})
