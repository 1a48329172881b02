"""Results in the terminal: nothing is cut, exact numbers have no interval, attributes and notes are printed."""

from __future__ import annotations

import numpy as np
import pytest

from bertology.analyses import registry
from bertology.cli import terminal
from bertology.cli.table_layout import MeasureColumns, TableColumn, column_widths, split_into_tables, wrap_line
from bertology.cli.terminal import print_result
from bertology.estimates.estimate import Estimates
from bertology.results.result import Result
from bertology.results.shapes import Examples, HeadGrid, HighlightedSentence, LayerCurve, Matrix, Scatter, Shape, Table

ANALYSIS = registry.get("attention/word_patterns")


def print_shape(data: Shape, capsys: pytest.CaptureFixture[str]) -> str:
    print_result(
        Result(analysis=ANALYSIS.name, version=1, options={}, inputs={}, n=3, data=data, provenance={}),
        ANALYSIS,
    )
    return capsys.readouterr().out


def test_brackets_in_sentences_are_not_styles(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("he", "[/b]", "said", "[sic]")
    assert "he [/b] said [sic]" in print_shape(Examples(examples=(HighlightedSentence(words=words),)), capsys)


def test_a_table_has_values_intervals_attributes_and_notes(capsys: pytest.CaptureFixture[str]) -> None:
    score = Estimates(
        value=np.array([0.5, np.nan]), low=np.array([0.4, np.nan]), high=np.array([0.6, np.nan]), n=np.array([3, 0])
    )
    exact = Estimates.exact(np.array([0.25, 0.75]))
    table = Table(
        measures={"score": score},
        baselines={"level": {"score": exact}},
        row_names=("one", "two"),
        attributes={"head": ("3-8", None), "chosen_in": (0.875, None), "n_examples": (30, None)},
        notes={"one": "best: [a] sentence"},
    )
    out = print_shape(table, capsys)
    first, second = (
        next(line for line in out.splitlines() if line.strip().startswith(name)) for name in ("one", "two")
    )
    assert first.split() == ["one", "3-8", "0.875", "0.5", "[0.4,", "0.6]", "0.25"]  # the head beside its numbers
    assert second.split() == ["two", "0.75"]
    assert "best: [a] sentence" in out and "30" in out
    assert out.count("3-8") == 1


def test_a_baseline_that_differs_by_layer_is_printed_by_layer(capsys: pytest.CaptureFixture[str]) -> None:
    """The mean over layers, 0.5, hides that the baseline rises from 0.25 to 0.75."""
    measure = Estimates.exact(np.full((2, 3), 0.125))
    rising = Estimates.exact(np.array([[0.25] * 3, [0.75] * 3]))
    constant = Estimates.exact(np.full((2, 3), 0.375))
    baselines = {"weights": {"share": rising}, "uniform attention": {"share": constant}}
    out = print_shape(HeadGrid(measures={"share": measure}, baselines=baselines), capsys)
    start = out.index("by layer: weights")
    by_layer = [line.split() for line in out[start : out.index("Highest head")].splitlines() if line.strip()]
    assert by_layer[-2:] == [["1", "0.250"], ["2", "0.750"]]
    assert "by layer: uniform attention" not in out


def test_the_kind_of_each_interval_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    ones = np.ones(2)
    score = Estimates(value=ones, low=ones, high=ones, n=np.ones(2, int))
    measures = {"score": score, "bits": score.model_copy(update={"interval": "range"})}
    curve = LayerCurve(measures=measures, baselines={"chance": measures})
    assert "Value [95 % CI; bits: [min, max] over seeds] and baselines" in print_shape(curve, capsys)
    without_ranges = LayerCurve(measures={"score": score}, baselines={"chance": {"score": score}})
    assert "Value [95 % CI] and baselines" in print_shape(without_ranges, capsys)
    cells = np.ones((1, 1))
    coefficient = Estimates(value=cells, low=cells, high=cells, n=np.ones((1, 1), int), interval="t")
    grid = HeadGrid(measures={"coefficient": coefficient}, baselines={"zero": {"coefficient": coefficient}})
    assert "value [95 % t interval]" in print_shape(grid, capsys)


def make_matrix(values: np.ndarray[tuple[int, int], np.dtype[np.float64]], *, mirrored: bool) -> Matrix:
    rows = tuple(f"r{row}" for row in range(values.shape[0]))
    columns = rows if mirrored else tuple(f"c{column}" for column in range(values.shape[1]))
    baselines = {"chance": {"distance": Estimates.exact(np.full(values.shape, 0.5))}}
    return Matrix(
        measures={"distance": Estimates.exact(values)}, baselines=baselines, row_names=rows, column_names=columns
    )


def table_rows(out: str) -> list[list[str]]:
    """The cells of the lines that start with a row name."""
    return [line.split() for line in out.splitlines() if line.strip().startswith("r") and line.split()[0][1:].isdigit()]


def test_a_small_matrix_is_printed_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    out = table_rows(print_shape(make_matrix(np.arange(6.0).reshape(2, 3), mirrored=False), capsys))
    assert out == [["r0", "0.000", "1.000", "2.000"], ["r1", "3.000", "4.000", "5.000"]]


@pytest.mark.parametrize("mirrored", [False, True])
def test_of_a_large_matrix_the_highest_and_lowest_cells_are_printed(
    mirrored: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    values = np.random.default_rng(0).permutation(1600).reshape(40, 40).astype(float)
    values = values + values.T if mirrored else values
    cells = table_rows(print_shape(make_matrix(values, mirrored=mirrored), capsys))
    is_listed = np.triu(np.ones_like(values), 1) > 0 if mirrored else np.ones_like(values) > 0
    expected = np.sort(values[is_listed])[::-1]
    assert [float(cell[2]) for cell in cells] == [float(f"{v:.3g}") for v in (*expected[:10], *expected[-10:])]
    for row, column, value, _, baseline in cells:
        assert float(f"{values[int(row[1:]), int(column[1:])]:.3g}") == float(value) and baseline == "0.5"


def test_points_and_scores_are_rounded(capsys: pytest.CaptureFixture[str]) -> None:
    points = Scatter(points=np.array([[0.123456, -2 / 3]]), labels=("1-1",), groups=("layer 1",))
    out = print_shape(points, capsys)
    assert "0.123" in out and "-0.667" in out and "0.1234" not in out
    examples = (
        HighlightedSentence(words=("a",), score=1 / 3),
        HighlightedSentence(words=("b",)),
    )
    out = print_shape(Examples(examples=examples), capsys)
    assert "0.333" in out and "0.3333" not in out and "None" not in out


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_no_number_is_cut_in_a_narrow_terminal(width: int) -> None:
    measure = TableColumn("accuracy (held out)", ("0.455 [0.412, 0.492]", "1"))
    baselines = tuple(TableColumn(f"baseline {number}", ("0.298 [0.279, 0.319]", "0")) for number in range(4))
    blocks = [
        MeasureColumns(measure, baselines, TableColumn("n", ("356", "9"))),
        MeasureColumns(TableColumn("rivals", ("3", "127"))),
    ]
    tables = list(split_into_tables([TableColumn("", ("all", "det"))], blocks, width, 7))
    assert tuple(column for table in tables for column in table if column.name.startswith("baseline")) == baselines
    for table in tables[:-1]:
        assert table[0] is measure and sum(column.width for column in table) <= max(width, 2 * measure.width)
    names = [column.name for table in tables for column in table]
    assert set(names) == {measure.name, "n", "rivals", *(b.name for b in baselines)} and names.count("n") == 1


def test_many_rows_without_a_number_are_named_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    value = np.array([0.5, *[np.nan] * 5])
    names = ("known", "uno", "due", "tre", "quattro", "cinque")
    score = Estimates(value=value, low=value - 0.1, high=value + 0.1, n=np.array([3, 0, 0, 0, 0, 0]))
    level = {"level": {"score": Estimates.exact(np.full(6, 0.25))}}
    out = print_shape(Table(measures={"score": score}, baselines=level, row_names=names), capsys)
    assert "Not measured (too few examples): uno, due, tre, quattro, cinque." in out and out.count("cinque") == 1


def test_no_word_of_a_measures_name_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    names = [f"{number} to punctuation or something" for number in range(20)]
    measures = {name: Estimates.exact(np.full((2, 3), float(number))) for number, name in enumerate(names)}
    out = print_shape(HeadGrid(measures=measures, baselines={"uniform attention": measures}), capsys)
    by_layer = out.split("Highest head per measure")[0]
    assert "…" not in by_layer and by_layer.count("punctuation") == len(names)
    rows = [line.split() for line in by_layer.splitlines() if line.strip().startswith("2 ")]
    assert [cell for row in rows for cell in row[1:]] == [f"{number:.3f}" for number in range(20)]
    uniform = [line.split() for line in by_layer.splitlines() if line.strip().startswith("uniform")]
    assert [cell for row in uniform for cell in row if "." in cell] == [f"{number:.3f}" for number in range(20)]


def test_lines_are_wrapped_at_words_in_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    line = "attention/entropy  How broad is each head's attention, measured by its entropy?"
    assert wrap_line(line, 19) == line
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    lines = wrap_line(line, 19).splitlines()
    assert len(lines) > 2 and all(len(part) <= 40 for part in lines)
    assert all(part.startswith(" " * 19 + part.strip()[0]) for part in lines[1:])


def test_a_table_without_rows_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    empty = Estimates.empty(0)
    out = print_shape(Table(measures={"p": empty}, baselines={"level": {"p": empty}}, row_names=()), capsys)
    assert "No rows: nothing in the corpus meets the criteria" in out


@pytest.mark.parametrize("width", [80, 160])
def test_intervals_are_not_wrapped_next_to_long_names(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal, "PIPED_WIDTH", width)
    value = np.linspace(0.001234, 0.9, 5)
    wide = Estimates(value=value, low=value * 0.98765, high=value * 1.0123, n=np.full(5, 9))
    names = [f"a rather long name of measure {number}" for number in range(3)]
    exact = Estimates.exact(np.ones(5))
    baselines = {"some untrained model": dict.fromkeys(names, wide), "any unmasked token": dict.fromkeys(names, exact)}
    out = print_shape(LayerCurve(measures=dict.fromkeys(names, wide), baselines=baselines, first_layer=1), capsys)
    rows = [line for line in out.splitlines() if line.strip()[:1].isdigit()]
    assert len(rows) % 5 == 0 and sum(row.count("]") for row in rows) >= 5 * 6
    assert all(row.count("[") == row.count("]") for row in rows)
    assert max(map(len, out.splitlines()[2:])) <= width
    assert out.count("unmasked") == 3  # no name is cut
    assert (
        sum(row.split().count("1") for row in rows) == 3 * 5 + len(rows) // 5
    )  # nor a column; one layer is numbered 1, too


def test_spare_width_goes_to_names_that_wrap() -> None:
    long, short = TableColumn("most frequent label of the word", ("0.5",)), TableColumn("by chance", ("0.25",))
    min_widths = [len("frequent"), len("chance")]
    padding = 2 * (long.width - long.min_width)
    assert column_widths([long, short], sum(min_widths) + padding) == min_widths
    # The column whose name has most lines is widened first.
    widths = column_widths([long, short], sum(min_widths) + padding + 5)
    assert widths[1] == min_widths[1] and len(long.heading(widths[0])) < len(long.heading(min_widths[0]))
    full_widths = [len(long.name), len(short.name)]
    assert column_widths([long, short], sum(full_widths) + padding) == column_widths([long, short], 500) == full_widths
    for available in range(sum(min_widths) + padding, sum(full_widths) + padding + 3):
        assert sum(column_widths([long, short], available)) + padding <= available


def make_curve(**sample_sizes: list[int]) -> LayerCurve:
    """Measures with these sample sizes by layer; 0 where nothing was measured."""
    measures: dict[str, Estimates] = {}
    for name, counts in sample_sizes.items():
        n = np.array(counts)
        value = np.where(n > 0, 0.5, np.nan)
        measures[name] = Estimates(value=value, low=value - 0.125, high=value + 0.125, n=n)
    return LayerCurve(measures=measures, baselines={"level": {next(iter(measures)): Estimates.exact(np.ones(3))}})


def numbered_rows(out: str) -> list[list[str]]:
    return [line.split() for line in out.splitlines() if line.strip()[:1].isdigit()]


CELL = ["0.5", "[0.375,", "0.625]"]


def test_a_common_sample_size_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    out = print_shape(make_curve(one=[7, 7, 7], two=[7, 0, 7]), capsys)
    assert "n = 7. Special tokens" in out
    assert numbered_rows(out) == [["0", *CELL, "1", *CELL], ["1", *CELL, "1"], ["2", *CELL, "1", *CELL]]


def test_sample_sizes_that_differ_by_row_have_a_column(capsys: pytest.CaptureFixture[str]) -> None:
    out = print_shape(make_curve(one=[7, 5, 3], two=[7, 0, 3]), capsys)
    assert "n = 3 to 7" in out and out.count(" n ") == 1
    assert numbered_rows(out) == [["0", "7", *CELL, "1", *CELL], ["1", "5", *CELL, "1"], ["2", "3", *CELL, "1", *CELL]]


def test_sample_sizes_that_differ_by_measure_are_shown_for_each(capsys: pytest.CaptureFixture[str]) -> None:
    """In a column if n differs by row, else in the name of the measure."""
    out = print_shape(make_curve(one=[7, 5, 3], two=[9, 9, 9], three=[0, 0, 0]), capsys)
    assert "two (n=9)" in out and "three (n" not in out
    assert numbered_rows(out)[1] == ["1", *CELL, "5", "1", *CELL]


def test_the_intervals_of_the_highest_heads_are_not_wrapped_in_narrow_terminals(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal, "PIPED_WIDTH", 80)
    value = np.full((2, 3), 0.123456)
    wide = Estimates(value=value, low=value * 0.98765, high=value * 1.0123, n=np.full((2, 3), 356))
    baselines = {name: {"to [SEP]": wide} for name in ("uniform attention", "untrained model", "another head")}
    out = print_shape(HeadGrid(measures={"to [SEP]": wide}, baselines=baselines), capsys).split("Highest head")[1]
    rows = [line for line in out.splitlines() if line.strip().startswith("to [SEP]")]
    assert len(rows) > 1 and all(row.count("0.123 [0.122, 0.125]") == 2 for row in rows[:3])
    assert sum(row.split().count("356") for row in rows) == 1 and all(len(line) <= 80 for line in out.splitlines())


@pytest.mark.parametrize("width", [30, 45])
def test_cells_wrap_if_nothing_fits(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal, "PIPED_WIDTH", width)
    value = np.full(2, 0.0123456)
    wide = Estimates(value=value, low=value - 0.000123, high=value + 0.000123, n=np.array([5, 5]))
    out = print_shape(LayerCurve(measures={"m": wide}, baselines={"b": {"m": wide}}), capsys)
    assert all(out.count(part) == 4 for part in ("0.0123", "[0.0122,", "0.0125]"))


def test_a_small_matrix_has_the_range_of_its_sample_sizes(capsys: pytest.CaptureFixture[str]) -> None:
    value = np.full((2, 2), 0.5)
    estimates = Estimates(value=value, low=value, high=value, n=np.array([[3, 9], [5, 0]]))
    matrix = Matrix(
        measures={"distance": estimates},
        baselines={"b": {"distance": estimates}},
        row_names=("a", "b"),
        column_names=("c", "d"),
    )
    assert "distance (n = 3 to 9)" in print_shape(matrix, capsys)


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 160])
def test_nothing_is_cut_next_to_long_labels(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal, "PIPED_WIDTH", width)
    value = np.array([0.0333, -0.311])
    wide = Estimates(value=value, low=value - 0.222, high=value + 0.333, n=np.array([16, 23]))
    names = ("widest: masculine minus feminine", "agreement/subject_relative")
    baselines = {name: {"held-out accuracy": wide} for name in ("nearest mention", "head match", "rule-based", "any")}
    out = print_shape(Table(measures={"held-out accuracy": wide}, baselines=baselines, row_names=names), capsys)
    body = out.split("baselines\n", 1)[1]
    assert max(map(len, out.splitlines())) <= width and "…" not in out
    assert body.count("[") == body.count("]") >= 10 and body.count("-0.311") >= 5
    assert "16" in body.split() and "23" in body.split()
    if width >= 80:
        assert all(line.count("[") == line.count("]") for line in body.splitlines())


def test_labels_are_wrapped_if_that_makes_fewer_tables() -> None:
    cells = ("0.0333 [-0.286, 0.409]", "-0.311 [-0.667, 0.133]")
    block = MeasureColumns(
        TableColumn("held-out accuracy", cells), tuple(TableColumn(name, cells) for name in ("nearest mention", "any"))
    )
    for label, tables in (("widest: masculine minus feminine", 1), ("widest:masculine_minus_feminine.", 2)):
        assert len(split_into_tables([TableColumn("", (label, "all"))], [block], 100, 7)) == tables


def test_units_are_printed_and_equal_heads_have_no_highest(capsys: pytest.CaptureFixture[str]) -> None:
    measures = {
        "change": Estimates.exact(np.array([[0.0, -0.5], [-0.5, 0.25]])),
        "useful": Estimates.exact(np.zeros((2, 2))),
    }
    zero = Estimates.exact(np.zeros((2, 2)))
    grid = HeadGrid(
        measures=measures,
        baselines={"zero": dict.fromkeys(measures, zero)},
        units={"change": "points"},
        sample={"examples": 1},
        lowest=("change",),
    )
    out = print_shape(grid, capsys)
    change, useful = (
        next(line for line in out.splitlines()[::-1] if line.strip().startswith(name)) for name in measures
    )
    assert change.split()[:6] == ["change", "(lowest)", "1-2", "and", "1", "more"] and "-0.5" in change
    assert useful.split()[:4] == ["useful", "all", "equal", "0"]
    assert "Units: change: points." in out and "Sample: 1 example." in out
