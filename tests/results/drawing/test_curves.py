"""Curves: lines with gaps, names at their ends that never overlap, logarithmic axes."""

from __future__ import annotations

import re

import numpy as np
import pytest

from bertology.estimates.estimate import Estimates
from bertology.results.drawing.curves import LABEL_LINE, PLOT_HEIGHT, TOP, draw_curve, draw_layer_curve
from bertology.results.shapes import Curve, LayerCurve
from results.example_results import estimates


def panel(measure: Estimates, baselines: dict[str, Estimates]) -> str:
    curve = LayerCurve(measures={"m": measure}, baselines={n: {"m": b} for n, b in baselines.items()}, first_layer=1)
    return str(draw_layer_curve(curve, model_name="mini").panels[0].body)


def flat(value: float, *, n_layers: int = 5) -> Estimates:
    return Estimates.exact(np.where(np.arange(5) < n_layers, value, np.nan))


def label_positions(svg: str) -> dict[str, tuple[float, float]]:
    """The positions of the names at the ends of lines."""
    labels = re.findall(r'<text x="([\d.]+)" y="([\d.-]+)" class="point end(?: strong)?">([^<]+)<', svg)
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
    assert set(positions) == {"high", "mini", *similar} and min(np.diff(heights)) > LABEL_LINE - 0.3
    assert all(0 < y < TOP + PLOT_HEIGHT + LABEL_LINE for y in heights) and len({x for x, _ in positions.values()}) == 1
    assert svg.count("leader") >= 2
    apart = panel(flat(1.0), {"high": flat(0.9), "low": flat(0.1)})
    assert label_positions(apart)["high"][1] < label_positions(apart)["low"][1] and "leader" not in apart


def test_long_names_are_cut_and_short_lines_are_joined_to_their_name() -> None:
    long = "a name that is much longer than the space next to a line"
    svg = panel(flat(1.0), {long: flat(0.5, n_layers=3), "nowhere": flat(np.nan)})
    names = [name for name in label_positions(svg) if name != "mini"]
    assert names[0].startswith("a name that") and names[1].endswith("…") and f"<title>{long}</title>" in svg
    assert svg.count("leader") == 1 and "nan" not in svg and ">nowhere<" not in svg


def test_baselines_have_bands() -> None:
    svg = panel(estimates(5, missing=False), {"chance": estimates(5, missing=False), "level": flat(0.1)})
    assert svg.count('class="band"') == 2


def test_the_untrained_model_is_drawn_below_simple_rules_in_its_own_colour() -> None:
    svg = panel(flat(1.0), {"uniform attention": flat(0.5), "untrained model": flat(0.5), "chance": flat(0.2)})
    order = re.findall(r'<g class="([\w-]+) baseline">', svg)
    assert order == ["untrained", "rule-baseline", "rule-baseline"]
    dashes = re.findall(r'stroke-dasharray="([^"]+)"', svg)
    assert len(set(dashes)) == 2  # the untrained model has a solid line, simple rules differ in dashes


def test_p_values_have_a_logarithmic_axis() -> None:
    values = Estimates.exact(np.array([1.0, 0.1, 0.01, 0.001, 1e-9]))
    curve = LayerCurve(
        measures={"p (Holm)": values},
        baselines={"significance level": {"p (Holm)": flat(0.05)}},
        units={"p (Holm)": "probability, 0 to 1"},
    )
    heights = [float(y) for y in re.findall(r'cy="([\d.]+)"', str(draw_layer_curve(curve).panels[0].body))]
    assert np.diff(heights) == pytest.approx(np.diff(heights)[0], abs=0.2)
    assert "≤ 0.0001" in str(draw_layer_curve(curve).panels[0].body)


def test_panels_stand_side_by_side_only_where_they_fit() -> None:
    measures = {f"m{number}": flat(0.5) for number in range(4)}
    curve = LayerCurve(measures=measures, baselines={"b": measures})
    assert [draw_layer_curve(curve, width=width).columns for width in (330, 660, 1100)] == [1, 2, 4]
    assert all(panel.width <= 330 for panel in draw_layer_curve(curve, width=330).panels)


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
    positions = [float(x) for x in re.findall(rf'<text x="([\d.]+)" y="{TOP + PLOT_HEIGHT + 14:g}"', svg)]
    assert 5 < len(positions) < 40 and min(np.diff(positions)) > 9.9 and svg.count("<circle") == 200


def test_an_axis_with_one_value_is_drawn() -> None:
    assert "nan" not in panel(flat(0.5), {"same": flat(0.5)})
