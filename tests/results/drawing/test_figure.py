"""Every shape has a well-formed figure whose marks are the data, with gaps for missing values and with baselines."""

from __future__ import annotations

from functools import cache
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from bertology.estimates.estimate import Estimates
from bertology.results.illustrations import Scatter
from bertology.results.palette import PALETTES, Theme
from bertology.results.shapes import Curve, HeadGrid, LayerCurve, Matrix, Shape, Table
from results.example_results import (
    EMPTY_SHAPES,
    LONG_NAME,
    MEASURED,
    ROW_NAMES,
    SHAPES,
    SPECIAL_TOKENS,
    ParsedFigure,
    estimates,
    measures_and_baselines,
    result,
)


@cache
def figure(name: str) -> ParsedFigure:
    return ParsedFigure(SHAPES[name])


@pytest.mark.parametrize("theme", PALETTES)
@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_has_a_figure_in_both_themes(name: str, theme: Theme) -> None:
    svg = result(SHAPES[name]).figure(theme=theme).svg
    assert ElementTree.fromstring(svg).tag == "{http://www.w3.org/2000/svg}svg"
    assert PALETTES[theme].foreground in svg and "nan" not in svg.lower().replace("not measured", "")
    assert svg.count("http") == 1  # the XML namespace


@pytest.mark.parametrize("name", SHAPES)
def test_every_figure_states_model_corpus_n_and_special_tokens_and_no_options(name: str) -> None:
    text = " ".join(figure(name).text.split())
    sample_size = result(SHAPES[name]).sample_size
    for fact in ("Group: name", "Model: a-model", "Corpus: a-corpus", sample_size, SPECIAL_TOKENS):
        assert fact in text, fact
    assert "seed" not in text and "show=" not in text
    assert "seed=1" in figure(name).svg  # in the metadata


@pytest.mark.parametrize("name", MEASURED)
def test_measures_are_shown_with_unit_and_baselines(name: str) -> None:
    text = figure(name).text
    assert "%" in text.split() and "uniform attention" in text
    assert LONG_NAME[:30] in text
    if name != "Matrix":
        assert "untrained model" in text


@pytest.mark.parametrize(
    ("name", "tag", "tip", "count"),
    [
        ("HeadGrid", "rect", "head ", 12 + 11),
        ("HeadGrid", "polyline", "uniform attention", 1 + 1),
        ("HeadGrid", "text", "not measured", 1),
        ("LayerCurve", "circle", "layer ", 5 + 4),
        ("LayerCurve", "polyline", "model", 1 + 2 + 1),  # a-model: one run, two around the gap; the untrained model
        ("LayerCurve", "text", "not measured", 1),
        ("Curve", "circle", "examples ", 4 + 3),
        ("Curve", "polyline", "untrained model", 1),
        ("Matrix", "rect", "", 25 + 24),
        ("Matrix", "text", "not measured", 1),
        ("Table", "circle", ", model: ", 5 + 4),
        ("Table", "polygon", ", uniform attention: 50", 5),
        ("Table", "polygon", ", uniform attention: 0.5", 5),
        ("Table", "polygon", ", untrained model: ", 5),
        ("Table", "text", "not measured", 1),
        ("Scatter", "circle", "", 3),
        ("Trajectory", "circle", "layer 1", 3 + 3),
        ("Arcs", "path", "", 3),
        ("Examples", "rect", "", 3),
    ],
)
def test_marks_are_the_data(name: str, tag: str, tip: str, count: int) -> None:
    assert len(figure(name).marks(tag, tip)) == count


def test_tooltips_have_value_interval_n_and_baselines() -> None:
    (tip,) = figure("HeadGrid").marks("rect", "head 1-1: 20 % [15, 25], n = 7\nuniform attention: 50 %\nuntrained")
    assert tip.endswith("95 % CI")


def test_intervals_bands_and_lines_have_gaps_at_missing_values() -> None:
    intervals = "".join(node.get("d", "") for node in figure("HeadGrid").elements("interval"))
    assert intervals.count("M") == 12 + 11
    assert len(figure("LayerCurve").elements("band")) == 2 + 1 + 1  # model around the gap, untrained, the other measure
    assert len(figure("Table").elements("interval")) == 5 + 4
    assert len(figure("Trajectory").elements("thin")) == 3 and len(figure("Examples").elements("word")) == 3 + 60


@pytest.mark.parametrize("name", MEASURED)
def test_missing_values_are_explained(name: str) -> None:
    assert "×: not measured" in figure(name).text


def test_points_without_coordinates_are_counted() -> None:
    assert "Without coordinates, not drawn: 1" in figure("Scatter").text
    assert "Without coordinates, not drawn: 2" in figure("Trajectory").text


def test_layers_and_heads_count_from_one() -> None:
    assert figure("HeadGrid").marks("rect", "head 3-4:") and not figure("HeadGrid").marks("rect", "head 0-")
    assert figure("LayerCurve").marks("circle", "layer 5:") and not figure("LayerCurve").marks("circle", "layer 0:")


def test_only_heads_whose_interval_overlaps_a_baseline_have_a_dot() -> None:
    value = np.array([[0.1, 0.6, 0.9, np.nan]])
    with_interval = Estimates(value=value, low=value - 0.05, high=value + 0.05, n=np.full((1, 4), 5))
    missing = {"low": np.full((1, 4), np.nan), "high": np.full((1, 4), np.nan)}
    baseline = {"uniform attention": {"m": Estimates.exact(np.full((1, 4), 0.56))}}
    for measure, n_dots in ((with_interval, 1), (with_interval.model_copy(update=missing), 3)):
        parsed = ParsedFigure(HeadGrid(measures={"m": measure}, baselines=baseline))
        dots = [mark for mark in parsed.elements("quiet") if mark.tag.endswith("circle")]
        assert len(dots) == n_dots


@pytest.mark.parametrize(
    "shape",
    [
        HeadGrid(**measures_and_baselines(24, 16)),
        HeadGrid(**measures_and_baselines(1, 2)),
        LayerCurve(**measures_and_baselines(2, missing=False)),
        LayerCurve(measures={"m": estimates(1, missing=False)}, baselines={"b": {"m": estimates(1, missing=False)}}),
        Curve(**measures_and_baselines(3), x_name="heads left", x=np.array([0.0, 5.0, 9.0])),
        Matrix(**measures_and_baselines(1, 2), row_names=("a",), column_names=("b", "c")),
        Matrix(**measures_and_baselines(40, 3), row_names=tuple(map(str, range(40))), column_names=("b", "c", "d")),
        Table(**measures_and_baselines(2), row_names=ROW_NAMES[:2]),
        Scatter(points=np.zeros((30, 2)), labels=("same",) * 30, groups=tuple(map(str, range(30)))),
    ],
    ids=["24x16", "1x2", "two layers", "one layer", "linear", "1x2 matrix", "40x3 matrix", "two rows", "one position"],
)
def test_large_and_small_shapes_are_drawn(shape: Shape) -> None:
    parsed = ParsedFigure(shape)
    assert parsed.marks("rect") or parsed.marks("circle")
    if isinstance(shape, HeadGrid) and shape.measures["mass"].shape == (24, 16):
        assert len(parsed.marks("rect")) == 2 * 24 * 16 - 1


@pytest.mark.parametrize("name", ["HeadGrid", "LayerCurve", "Matrix", "Table"])
def test_a_result_without_any_value_has_only_gaps(name: str) -> None:
    shape: Any = SHAPES[name]
    empty = {measure: Estimates.empty(e.shape) for measure, e in shape.measures.items()}
    parsed = ParsedFigure(shape.model_copy(update={"measures": empty, "baselines": {"chance": empty}}))
    assert len(parsed.marks("text", "not measured")) == sum(e.value.size for e in empty.values())
    assert not parsed.marks("rect") and not parsed.marks("circle")


@pytest.mark.parametrize("name", ["Table", "LayerCurve", "HeadGrid"])
def test_ranges_over_seeds_are_not_called_confidence_intervals(name: str) -> None:
    shape: Any = SHAPES[name]
    ranges = {measure: e.model_copy(update={"interval": "range"}) for measure, e in shape.measures.items()}
    bootstrap, seeds = "95 % bootstrap intervals", "ranges over seeds"
    assert bootstrap in ParsedFigure(shape).text and seeds not in ParsedFigure(shape).text
    parsed = ParsedFigure(shape.model_copy(update={"measures": ranges}))
    assert seeds in parsed.text and bootstrap not in parsed.text


def test_rows_with_the_same_name_are_numbered() -> None:
    parsed = ParsedFigure(Table(**measures_and_baselines(3, missing=False), row_names=("det", "det", "amod")))
    assert "det (2)" in parsed.text and len(parsed.marks("circle", "det")) == 2 * 2
    names = ("a", "a", "b")
    matrix = Matrix(**measures_and_baselines(3, 3, missing=False), row_names=names, column_names=names)
    cells = [tip.split(":")[0] for tip in ParsedFigure(matrix).marks("rect")]
    assert len(cells) == 2 * 9 and len(set(cells)) == 9


@pytest.mark.parametrize("name", EMPTY_SHAPES)
def test_an_empty_result_is_drawn(name: str) -> None:
    assert "No data" in ParsedFigure(EMPTY_SHAPES[name]).text or name == "Scatter"


def test_edges_join_points() -> None:
    shape = Scatter(points=np.eye(3)[:, :2], labels=("a", "b", "c"), groups=("g", "g", "h"), edges=((0, 1), (2, 1)))
    parsed = ParsedFigure(shape)
    assert len(parsed.elements("thin")) == 2 and len(parsed.marks("circle")) == 3


def test_many_rows_without_a_value_are_listed_instead_of_drawn() -> None:
    value = np.array([0.5, *[np.nan] * 5])
    names = ("known", "uno", "due", "tre", "quattro", "cinque")
    score = Estimates(value=value, low=value - 0.1, high=value + 0.1, n=np.array([3, 0, 0, 0, 0, 0]))
    level = {"significance level": {"score": Estimates.exact(np.full(6, 0.25))}}
    parsed = ParsedFigure(Table(measures={"score": score}, baselines=level, row_names=names))
    assert "Not measured (5 rows): uno, due, tre, quattro, cinque" in " ".join(parsed.text.split())
    assert len(parsed.marks("circle", "known")) == 1 and not parsed.marks("polygon", "cinque")
    with_few_gaps = ParsedFigure(Table(**measures_and_baselines(3), row_names=("a", "b", "c")))
    assert with_few_gaps.marks("text", "not measured")


def test_the_head_of_a_row_stands_beside_its_numbers() -> None:
    attributes = {"head": ("8-11", "4-10", None), "best_head": ("8-11", "7-6", None)}
    names = ("det", "amod", "obj")
    table = Table(**measures_and_baselines(3, missing=False), row_names=names, attributes=attributes)
    text = ParsedFigure(table).text
    assert "det 8-11" in text and "amod 4-10, best 7-6" in text and "obj 8" not in text
    heads = ("1-1", "1-2")  # rows that are heads themselves do not repeat their names
    same = Table(**measures_and_baselines(2, missing=False), row_names=heads, attributes={"head": heads})
    assert "1-1 1-1" not in ParsedFigure(same).text


def test_heads_of_a_table_say_what_they_do() -> None:
    attributes = {"head": ("1-1", "1-2"), "function": ("next word", None), "closest_function": ("next word", "det")}
    heads = Table(**measures_and_baselines(2, missing=False), row_names=("1-1", "1-2"), attributes=attributes)
    text = ParsedFigure(heads).text
    assert "1-1 next word" in text and "1-2 closest: det" in text


def test_the_best_head_is_marked_with_its_number() -> None:
    parsed = figure("HeadGrid")
    assert len(parsed.elements("best")) == 2 and "highest: 3-4, 80 %" in parsed.text
    lowest = SHAPES["HeadGrid"].model_copy(update={"lowest": ("mass",)})
    assert "lowest: 1-1, 20 %" in ParsedFigure(lowest).text


def test_cells_of_a_narrow_figure_can_still_be_read() -> None:
    grid = result(HeadGrid(**measures_and_baselines(12, 12, missing=False)))
    root = ElementTree.fromstring(grid.figure(width="85mm").svg)
    cells = [node for node in root.iter("{http://www.w3.org/2000/svg}rect") if node.find("{*}title") is not None]
    assert len(cells) == 2 * 144 and min(float(cell.get("width", 0)) for cell in cells) >= 8  # and a gap of 1


def test_measures_without_numbers_are_named_instead_of_drawn() -> None:
    measures = {"known": estimates(4, missing=False), "unknown": Estimates.empty(4)}
    curve = LayerCurve(measures=measures, baselines={"chance": {"known": estimates(4, missing=False)}})
    text = ParsedFigure(curve).text
    assert "Not measured: unknown." in text
    assert len(ParsedFigure(curve).elements("name")) == 1
    chosen = result(curve).figure(panels="unknown").svg
    assert ">unknown<" in chosen


def test_rows_of_a_table_are_chosen() -> None:
    table = result(Table(**measures_and_baselines(3, missing=False), row_names=("det", "amod", "obj")))
    root = ElementTree.fromstring(table.figure(panels="mass,obj").svg)
    text = [node.text for node in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "obj" in text and "det" not in text and text.count("mass") == 1


def test_names_of_panels_in_one_row_are_aligned() -> None:
    names = {f"measure {number}": estimates(4, missing=False) for number in range(2)}
    units = {"measure 0": "a unit that is so long that its line must be broken to fit above a panel of this width"}
    curve = LayerCurve(measures=names, baselines={"chance": names}, units=units)
    parsed = ParsedFigure(curve)
    assert len({name.get("y") for name in parsed.elements("name")}) == 1
    panels = [panel.get("transform", "").split()[-1] for panel in parsed.elements("panel")]
    assert len(panels) == 2 and len(set(panels)) == 1
