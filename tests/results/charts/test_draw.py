"""Every shape becomes a valid figure whose marks are the data: as many, with gaps as gaps, beside their baselines."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import pytest

from bertology.results.charts.palette import PALETTES, Palette, Theme, colours_around
from bertology.results.estimate import Estimates
from bertology.results.shapes import Curve, HeadGrid, LayerCurve, Matrix, Scatter, Shape, Table
from bertology.results.spread import BY_SEED, INTERVAL, RANGE
from drawn import EMPTY, EVERY, LONG, ROWS, SPECIAL, Drawn, estimates, measured, result


@cache
def drawn(name: str) -> Drawn:
    return Drawn(EVERY[name])


def rows_of(shape: Shape) -> list[dict[str, Any]]:
    """All records the figure of a shape holds."""
    return [row for rows in result(shape).figure().to_dict()["datasets"].values() for row in rows]


@pytest.mark.parametrize("theme", PALETTES)
@pytest.mark.parametrize("name", EVERY)
def test_every_shape_is_a_valid_figure_on_either_paper(name: str, theme: Theme) -> None:
    specification = result(EVERY[name]).figure(theme).to_dict(validate=True)
    assert specification["config"]["background"] == PALETTES[theme].paper
    assert '"url"' not in json.dumps(specification, allow_nan=False)


@pytest.mark.parametrize("name", EVERY)
def test_every_figure_says_who_n_policy_and_options(name: str) -> None:
    words = drawn(name).words
    for fact in ("group/name", "a-model on a-corpus", result(EVERY[name]).rests_on, SPECIAL, "by=layer"):
        assert fact in words, fact
    assert "seed" not in words


@pytest.mark.parametrize("name", ["HeadGrid", "LayerCurve", "Curve", "Matrix", "Table"])
def test_measures_stand_with_unit_and_baselines(name: str) -> None:
    words = drawn(name).words
    assert "share, 0 to 1" in words and "uniform attention" in words
    assert LONG[:30] in words
    if name != "Matrix":
        assert "random weights" in words


@pytest.mark.parametrize(
    ("name", "kind", "containing", "count"),
    [
        ("HeadGrid", "rect", "", 12 + 11),
        ("HeadGrid", "rule", "", 12 + 11),
        ("HeadGrid", "symbol", "series: uniform attention", 3 + 3),
        ("HeadGrid", "text", "nothing to measure", 1),
        ("LayerCurve", "symbol", "series: measured", 5 + 4),
        ("LayerCurve", "rule", "series: measured", 5 + 4),
        ("LayerCurve", "symbol", "series: uniform attention", 5 + 5),
        ("LayerCurve", "area", "", 3 + 2),
        ("LayerCurve", "text", "nothing to measure", 1),
        ("Curve", "symbol", "series: measured", 4 + 3),
        ("Curve", "symbol", "series: random weights", 4),
        ("Matrix", "rect", "", 25 + 24),
        ("Matrix", "text", "nothing to measure", 1),
        ("Table", "symbol", "series: measured", 5 + 4),
        ("Table", "symbol", "series: uniform attention", 5 + 5),
        ("Table", "rule", "series: random weights", 5),
        ("Table", "text", "nothing to measure", 1),
        ("Scatter", "symbol", "", 3),
        ("Trajectory", "symbol", "", 3 + 3),
        ("Trajectory", "line", "", 4),
        ("Arcs", "line", "", 3),
        ("Arcs", "symbol", "", 3),
        ("Examples", "rect", "", 3),
        ("Examples", "text", "word:", 3 + 60),
    ],
)
def test_marks_are_the_data(name: str, kind: str, containing: str, count: int) -> None:
    assert len(drawn(name).marks(kind, containing)) == count


@pytest.mark.parametrize("name", EVERY)
def test_what_was_not_measured_is_null_and_never_zero(name: str) -> None:
    rows = rows_of(EVERY[name])
    gaps = [row for row in rows if row.get("told") == "nothing to measure"]
    assert all(row["value"] is None and row["low"] is None and row["n"] == 0 for row in gaps)
    if name in {"HeadGrid", "LayerCurve", "Curve", "Matrix", "Table"}:
        assert gaps and "× nothing to measure" in drawn(name).words
        assert "null" not in "".join(drawn(name).marks("rect") + drawn(name).marks("symbol"))


def test_points_without_a_place_are_counted() -> None:
    assert "without a place, so not drawn: 1" in drawn("Scatter").words
    assert "without a place, so not drawn: 2" in drawn("Trajectory").words


def test_layers_and_heads_count_from_one() -> None:
    rows = [row for row in rows_of(EVERY["HeadGrid"]) if "name" in row]
    assert {(row["name"], row["layer"], row["head"]) for row in rows} >= {("1-1", 1, 1), ("3-4", 3, 4)}
    assert not any(row["layer"] == 0 or row["head"] == 0 for row in rows)
    curve = rows_of(EVERY["LayerCurve"])
    assert {row["place"] for row in curve} == {1, 2, 3, 4, 5}


def test_only_heads_that_a_baseline_could_explain_are_dotted() -> None:
    value = np.array([[0.1, 0.5, 0.9, np.nan]])
    own = Estimates(value=value, low=value - 0.05, high=value + 0.05, n=np.full((1, 4), 5))
    alone = own.model_copy(update={"low": np.full((1, 4), np.nan), "high": np.full((1, 4), np.nan)})
    chance = {"uniform attention": {"m": Estimates.exact(np.full((1, 4), 0.52))}}
    for estimate, expected in ((own, [False, True, False]), (alone, [True, True, True])):
        grid = HeadGrid(measures={"m": estimate}, baselines=chance)
        rows = [row for row in rows_of(grid) if "unclear" in row]
        assert [row["unclear"] for row in rows if row["value"] is not None][:3] == expected


@pytest.mark.parametrize(
    "shape",
    [
        HeadGrid(**measured(24, 16)),
        HeadGrid(**measured(1, 2)),
        LayerCurve(**measured(2, gap=False)),
        LayerCurve(measures={"m": estimates(1, gap=False)}, baselines={"b": {"m": estimates(1, gap=False)}}),
        Curve(**measured(3), along="heads left", points=np.array([0.0, 5.0, 9.0])),
        Matrix(**measured(1, 2), rows_named=("a",), columns_named=("b", "c")),
        Matrix(**measured(40, 3), rows_named=tuple(map(str, range(40))), columns_named=("b", "c", "d")),
        Table(**measured(2), rows_named=ROWS[:2]),
        Scatter(points=np.zeros((30, 2)), labels=("same",) * 30, groups=tuple(map(str, range(30)))),
    ],
    ids=["24x16", "1x2", "two layers", "one layer", "linear", "1x2 matrix", "40x3 matrix", "two rows", "one place"],
)
def test_large_and_small_are_drawn(shape: Shape) -> None:
    found = Drawn(shape)
    assert found.marks("rect") or found.marks("symbol")
    if isinstance(shape, HeadGrid) and shape.measures["share"].shape == (24, 16):
        assert len(found.marks("rect")) == 2 * 24 * 16 - 1


@pytest.mark.parametrize("name", ["HeadGrid", "LayerCurve", "Matrix", "Table"])
def test_nothing_measured_at_all_is_drawn_as_gaps(name: str) -> None:
    shape: Any = EVERY[name]
    nothing = {m: Estimates.exact(np.full(e.shape, np.nan)) for m, e in shape.measures.items()}
    found = Drawn(shape.model_copy(update={"measures": nothing, "baselines": {"chance": nothing}}))
    places = sum(e.value.size for e in nothing.values())
    assert len(found.marks("text", "nothing to measure")) == places
    assert not found.marks("rect") and not found.marks("rule")


@pytest.mark.parametrize("name", ["Table", "LayerCurve"])
def test_ranges_are_told_from_intervals(name: str) -> None:
    shape: Any = EVERY[name]
    by_seed = shape.model_copy(update={"units": dict.fromkeys(shape.measures, f"bits, {BY_SEED}")})
    for told, expected in ((shape, INTERVAL), (by_seed, RANGE)):
        figure = json.dumps(result(told).figure().to_dict())
        assert expected in figure and ({INTERVAL, RANGE} - {expected}).pop() not in figure


def test_rows_of_one_name_do_not_hide_one_another() -> None:
    found = Drawn(Table(**measured(3, gap=False), rows_named=("det", "det", "amod")))
    assert "det (2)" in found.words and len(found.marks("symbol", "row: det")) == 2 * 3 + 2 * 2
    names = ("a", "a", "b")
    cells = Drawn(Matrix(**measured(3, 3, gap=False), rows_named=names, columns_named=names)).marks("rect")
    assert len(cells) == len(set(cells)) == 2 * 9


def test_a_baseline_has_one_colour_in_every_panel() -> None:
    panels = result(EVERY["HeadGrid"]).figure().to_dict()["concat"]
    scales = [panel["hconcat"][1]["layer"][2]["encoding"]["color"]["scale"] for panel in panels]
    colours = [dict(zip(scale["domain"], scale["range"], strict=True)) for scale in scales]
    assert colours[0]["uniform attention"] == colours[1]["uniform attention"] != colours[0]["random weights"]


@pytest.mark.parametrize("name", EMPTY)
def test_a_result_without_anything_is_drawn(name: str) -> None:
    assert "group/name" in Drawn(EMPTY[name]).words


@pytest.mark.parametrize("palette", PALETTES.values(), ids=list(PALETTES))
def test_colour_is_linear_on_both_sides_of_the_baseline(palette: Palette) -> None:
    colours = colours_around(np.array([0.0, 0.3, 1.0, np.nan]), 0.3, palette)
    assert (colours.domain[0], colours.domain[-1]) == (0.0, 1.0)
    assert colours.range[colours.domain.index(0.3)] == palette.above[0]
    assert colours.range[-1] == palette.above[-1]
    assert colours.range[0] not in palette.above and colours.range[0] != palette.below[-1]  # nearer, so fainter
    np.testing.assert_allclose([colours.strength(0.0), colours.strength(1.0)], [3 / 7, 1])
    assert colours_around(np.array([np.nan]), 0.0, palette).reach > 0


def luminance(colour: str) -> float:
    parts = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("palette", PALETTES.values(), ids=list(PALETTES))
def test_everything_stands_out_from_the_paper(palette: Palette) -> None:
    def contrast(one: str, other: str) -> float:
        dark, light = sorted((luminance(one), luminance(other)))
        return (light + 0.05) / (dark + 0.05)

    assert contrast(palette.ink, palette.paper) > 7 and contrast(palette.soft, palette.paper) > 4.5
    assert all(contrast(colour, palette.paper) > 2.5 for colour in palette.series)
    for stops in (palette.above, palette.below):
        steps = np.diff([luminance(stop) for stop in stops])
        assert (steps > 0).all() or (steps < 0).all()  # stronger is darker, or lighter, all the way


def test_points_are_joined_by_edges() -> None:
    shape = Scatter(points=np.eye(3)[:, :2], labels=("a", "b", "c"), groups=("g", "g", "h"), edges=((0, 1), (2, 1)))
    found = Drawn(shape)
    assert len(found.marks("rule")) == 2
    assert len(found.marks("symbol")) == 3


def test_many_rows_without_a_number_are_named_above_the_figure_instead() -> None:
    value = np.array([0.5, *[np.nan] * 5])
    names = ("known", "uno", "due", "tre", "quattro", "cinque")
    score = Estimates(value=value, low=value - 0.1, high=value + 0.1, n=np.array([3, 0, 0, 0, 0, 0]))
    level = {"level": {"score": Estimates.exact(np.full(6, 0.25))}}
    shape = Table(measures={"score": score}, baselines=level, rows_named=names)
    found = Drawn(shape)
    assert "nothing to measure in 5 rows: uno, due, tre, quattro, cinque" in " ".join(found.words.split())
    assert len(found.marks("symbol", "row: known")) == 2 and not found.marks("symbol", "row: cinque")
    few = Drawn(Table(**measured(3), rows_named=("a", "b", "c")))
    assert few.marks("text", "nothing to measure")
