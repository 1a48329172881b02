"""Results in the terminal: nothing is cut, exact numbers have no interval, attributes and notes are printed."""

from __future__ import annotations

import numpy as np
import pytest

from bertology.analyses import registry
from bertology.cli import terminal
from bertology.cli.result_tables import MAX_ROWS
from bertology.cli.table_layout import MeasureColumns, TableColumn, column_widths, split_into_tables, wrap_line
from bertology.cli.terminal import print_model_table, print_result
from bertology.estimates.estimate import Estimates
from bertology.results.comparison import compare_results
from bertology.results.illustrations import Examples, HighlightedSentence, Scatter
from bertology.results.result import Result
from bertology.results.shapes import Head, HeadGrid, LayerCurve, Matrix, Shape, Table

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
    for row, column, value, baseline in cells:
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
    n = np.array([[356, 356, 356], [355, 355, 355]])
    wide = Estimates(value=value, low=value * 0.98765, high=value * 1.0123, n=n)
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


def planted_grid() -> HeadGrid:
    """Head 2-1 attends most, by 0.6; n differs between heads; the change has its lowest value in 1-2."""
    value = np.array([[0.1, 0.2], [0.6, np.nan]])
    n = np.array([[5, 6], [7, 0]])
    share = Estimates(value=value, low=value - 0.05, high=value + 0.05, n=n)
    change = Estimates.exact(np.array([[0.0, -0.5], [0.25, 0.125]]), n=9)
    uniform = Estimates.exact(np.full((2, 2), 0.0625))
    return HeadGrid(
        measures={"share": share, "change": change},
        baselines={"uniform attention": {"share": uniform}},
        lowest=("change",),
    )


def print_with(data: Shape, capsys: pytest.CaptureFixture[str], head: str | None = None, all_rows: bool = False) -> str:
    inputs = {
        role: {"model": {"name": name}, "corpus": {"name": "c"}, "counts": {"inputs": 3}}
        for role, name in (("model", "m"), ("untrained", "random:m"))
    }
    result = Result(analysis=ANALYSIS.name, version=1, options={}, inputs=inputs, n=3, data=data, provenance={})
    print_result(result, ANALYSIS, head=None if head is None else Head.parse(head), all_rows=all_rows)
    return capsys.readouterr().out


def row_of(out: str, name: str) -> list[str]:
    """The cells of the first line that begins with the name."""
    return next(line.split() for line in out.splitlines() if line.split()[:1] == [name])


def test_the_card_of_a_head_has_all_measures_with_rank_interval_n_and_baselines(
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = print_with(planted_grid(), capsys, head="2-1")
    assert "Head 2-1, its rank among all heads" in out and "Mean over heads" not in out
    assert row_of(out, "share") == ["share", "1", "of", "3", "0.6", "[0.55,", "0.65]", "7", "0.0625"]
    assert row_of(out, "change") == ["change", "(lowest)", "4", "of", "4", "0.25", "9"]
    assert row_of(print_with(planted_grid(), capsys, head="1-2"), "change")[2:5] == ["1", "of", "4"]


def test_the_card_of_a_head_that_was_not_measured_has_no_rank(capsys: pytest.CaptureFixture[str]) -> None:
    assert row_of(print_with(planted_grid(), capsys, head="2-2"), "share") == ["share", "0", "0.0625"]


def planted_table(row_names: tuple[str, ...], heads: tuple[str, ...]) -> Table:
    value = np.linspace(0.1, 0.4, len(row_names))
    score = Estimates(value=value, low=value - 0.01, high=value + 0.01, n=np.arange(len(row_names)) + 5)
    chance = {"chance": {"score": Estimates.exact(np.full(len(row_names), 0.2))}}
    return Table(measures={"score": score}, baselines=chance, row_names=row_names, attributes={"head": heads})


def test_the_card_of_a_head_in_a_table_has_the_rows_that_are_about_it(capsys: pytest.CaptureFixture[str]) -> None:
    table = planted_table(("det", "obj", "nsubj"), ("1-1", "2-1", "1-1"))
    out = print_with(table, capsys, head="1-1")
    assert "Head 1-1: 2 rows of 3" in out and "obj" not in out and row_of(out, "nsubj")[1:3] == ["1-1", "7"]
    missing = print_with(table, capsys, head="2-2")
    assert "Head 2-2 is in none of 3 rows" in missing and "obj" in missing


def test_the_card_of_a_row_that_is_a_head_has_its_rank(capsys: pytest.CaptureFixture[str]) -> None:
    names = ("1-1", "1-2", "2-1", "2-2")
    out = print_with(planted_table(names, names), capsys, head="2-1")
    assert row_of(out, "score") == ["score", "2", "of", "4", "0.3", "[0.29,", "0.31]", "7", "0.2"]


def test_a_result_without_heads_says_so_and_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    out = print_with(make_curve(one=[3, 3, 3]), capsys, head="1-1")
    assert "No number of this result is about a single head" in out and len(numbered_rows(out)) == 3


def test_the_card_of_a_head_in_a_matrix_of_heads_has_the_cells_of_its_row(capsys: pytest.CaptureFixture[str]) -> None:
    names = ("1-1", "1-2", "2-1")
    value = np.arange(9.0).reshape(3, 3)
    measures = {"distance": Estimates.exact(value)}
    matrix = Matrix(
        measures=measures, baselines={"b": measures}, row_names=names, column_names=names
    )  # 1-2: 3, 4 and 5
    out = print_with(matrix, capsys, head="1-2")
    rows = [line.split() for line in out.splitlines() if line.split()[:1] == ["1-2"]]
    assert rows == [["1-2", "2-1", "5", "5"], ["1-2", "1-2", "4", "4"], ["1-2", "1-1", "3", "3"]]


def long_table(n_rows: int = 100) -> Table:
    """Every fourth row is clearly above chance; others are at chance with wide intervals."""
    strong = np.arange(n_rows) % 4 == 1
    value = np.where(strong, 0.9, 0.5)
    margin = np.where(strong, 0.05, 0.4)
    score = Estimates(value=value, low=value - margin, high=value + margin, n=np.full(n_rows, 7))
    return Table(
        measures={"score": score},
        baselines={"chance": {"score": Estimates.exact(np.full(n_rows, 0.5))}},
        row_names=tuple(f"r{row}" for row in range(n_rows)),
        notes={"r1": "a strong row", "r2": "a weak row"},
    )


def test_a_long_table_is_cut_to_the_rows_furthest_from_their_baselines(capsys: pytest.CaptureFixture[str]) -> None:
    out = print_with(long_table(), capsys)
    shown = [row[0] for row in table_rows(out) if "[" in "".join(row)]
    assert len(shown) == MAX_ROWS and {f"r{row}" for row in range(1, 100, 4)} <= set(shown)
    assert [int(name[1:]) for name in shown] == sorted(int(name[1:]) for name in shown)  # in the order of the table
    assert "30 of 100 rows: those whose score is furthest from its baselines (all: --all-rows)." in out
    assert "a strong row" in out
    everything = print_with(long_table(), capsys, all_rows=True)
    assert len([row for row in table_rows(everything) if "[" in "".join(row)]) == 100 and "--all-rows" not in everything
    assert "of 30 rows" not in print_with(long_table(30), capsys)


def test_a_long_list_of_points_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    names = tuple(f"r{row}" for row in range(50))
    points = Scatter(points=np.zeros((50, 2)), labels=names, groups=names)
    out = print_with(points, capsys)
    assert "The first 30 of 50 rows (all: --all-rows)." in out and "r29" in out and "r30" not in out
    assert "r49" in print_with(points, capsys, all_rows=True)


def test_all_heads_are_printed_if_wished(capsys: pytest.CaptureFixture[str]) -> None:
    out = print_with(planted_grid(), capsys, all_rows=True)
    assert row_of(out, "2-1") == ["2-1", "0.6", "[0.55,", "0.65]", "7", "0.0625", "0.25"]
    assert row_of(out, "2-2") == ["2-2", "0.0625", "0.125"]
    assert "--head LAYER-HEAD" in print_with(planted_grid(), capsys)


def test_models_with_equal_counts_share_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    out = print_with(planted_grid(), capsys)
    assert "Input (model m, untrained random:m) on c: 3 inputs" in out


def test_a_baseline_that_hardly_differs_by_layer_is_not_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    """0.05 and 0.052, where the model rises from 0.1 to 0.9."""
    measure = Estimates.exact(np.array([[0.1] * 3, [0.9] * 3]))
    baselines = {"untrained model": {"share": Estimates.exact(np.array([[0.05] * 3, [0.052] * 3]))}}
    out = print_shape(HeadGrid(measures={"share": measure}, baselines=baselines), capsys)
    assert "by layer: untrained model" not in out and "0.051" in out


def test_an_attribute_that_the_rows_say_is_not_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    ones = {"m": Estimates.exact(np.ones(2))}
    names, layers = ("layer 3", "all layers"), (3, None)
    table = Table(measures=ones, baselines={"b": ones}, row_names=names, attributes={"layer": layers, "size": (9, 8)})
    out = print_shape(table, capsys)
    assert out.count("layer 3") == 2 and "size" in out
    header = next(line.split() for line in out.splitlines() if "size" in line)
    assert header == ["size"]


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("head", [None, "2-1"])
def test_no_line_is_wider_than_the_terminal(
    width: int, head: str | None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal, "PIPED_WIDTH", width)
    names = ("1-1", "1-2", "2-1", "2-2")
    for data in (planted_grid(), long_table(), planted_table(names, names)):
        out = print_with(data, capsys, head=head, all_rows=True)
        assert max(map(len, out.splitlines())) <= width


def test_a_long_table_of_several_models_is_cut_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    n_rows = MAX_ROWS + 5
    data = Table(
        measures={"score": Estimates.exact(np.arange(n_rows) / 100)},
        baselines={"chance": {"score": Estimates.exact(np.zeros(n_rows))}},
        row_names=tuple(f"row{row}" for row in range(n_rows)),
    )
    result = Result(analysis=ANALYSIS.name, version=1, options={}, inputs={}, n=3, data=data, provenance={})
    table = compare_results({ANALYSIS.name: {"a": result, "b": result}})
    print_model_table(table)
    cut = capsys.readouterr().out
    assert f"The first {MAX_ROWS} of {n_rows} numbers (all: --all-rows)." in cut
    assert cut.count("   row") == cut.count("chance") == MAX_ROWS
    print_model_table(table, all_rows=True)
    whole = capsys.readouterr().out
    assert whole.count("   row") == n_rows and "all-rows" not in whole
