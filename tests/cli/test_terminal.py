"""Results as a reader sees them: brackets are printed, exact numbers have no interval, notes are told."""

from __future__ import annotations

import numpy as np
import pytest

from bertology.analyses import registry
from bertology.cli import terminal
from bertology.cli.columns import Column, broken, in_tables
from bertology.cli.terminal import show
from bertology.results.estimate import Estimates
from bertology.results.result import Result
from bertology.results.shapes import Example, Examples, HeadGrid, LayerCurve, Matrix, Scatter, Shape, Table

ANALYSIS = registry.get("attention/patterns")


def printed(data: Shape, capsys: pytest.CaptureFixture[str]) -> str:
    show(
        Result(analysis=ANALYSIS.name, version=1, options={}, inputs={}, n=3, data=data, provenance={}),
        ANALYSIS,
    )
    return capsys.readouterr().out


def test_brackets_in_sentences_are_no_styles(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("he", "[/b]", "said", "[sic]")
    assert "he [/b] said [sic]" in printed(Examples(examples=(Example(words=words),)), capsys)


def test_a_table_tells_values_intervals_and_notes(capsys: pytest.CaptureFixture[str]) -> None:
    score = Estimates(
        value=np.array([0.5, np.nan]), low=np.array([0.4, np.nan]), high=np.array([0.6, np.nan]), n=np.array([3, 0])
    )
    exact = Estimates.exact(np.array([0.25, 0.75]))
    table = Table(
        measures={"score": score},
        baselines={"level": {"score": exact}},
        rows_named=("one", "two"),
        notes={"one": "best: [a] sentence"},
    )
    out = printed(table, capsys)
    first, second = (
        next(line for line in out.splitlines() if line.strip().startswith(name)) for name in ("one", "two")
    )
    assert first.split() == ["one", "0.5", "[0.4,", "0.6]", "0.25"]
    assert second.split() == ["two", "0.75"]
    assert "best: [a] sentence" in out


def matrix_of(values: np.ndarray[tuple[int, int], np.dtype[np.float64]], *, mirrored: bool) -> Matrix:
    rows = tuple(f"r{place}" for place in range(values.shape[0]))
    columns = rows if mirrored else tuple(f"c{place}" for place in range(values.shape[1]))
    chance = {"by chance": {"distance": Estimates.exact(np.full(values.shape, 0.5))}}
    return Matrix(
        measures={"distance": Estimates.exact(values)}, baselines=chance, rows_named=rows, columns_named=columns
    )


def told(out: str) -> list[list[str]]:
    """The cells of the lines that begin with the name of a row."""
    return [line.split() for line in out.splitlines() if line.strip().startswith("r") and line.split()[0][1:].isdigit()]


def test_a_small_matrix_is_shown_whole(capsys: pytest.CaptureFixture[str]) -> None:
    out = told(printed(matrix_of(np.arange(6.0).reshape(2, 3), mirrored=False), capsys))
    assert out == [["r0", "0.000", "1.000", "2.000"], ["r1", "3.000", "4.000", "5.000"]]


@pytest.mark.parametrize("mirrored", [False, True])
def test_of_a_large_matrix_the_highest_and_lowest_cells_are_told(
    mirrored: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    values = np.random.default_rng(0).permutation(1600).reshape(40, 40).astype(float)
    values = values + values.T if mirrored else values
    cells = told(printed(matrix_of(values, mirrored=mirrored), capsys))
    counted = np.triu(np.ones_like(values), 1) > 0 if mirrored else np.ones_like(values) > 0
    ordered = np.sort(values[counted])[::-1]
    assert [float(cell[2]) for cell in cells] == [float(f"{v:.3g}") for v in (*ordered[:10], *ordered[-10:])]
    for row, column, value, _, beside in cells:
        assert float(f"{values[int(row[1:]), int(column[1:])]:.3g}") == float(value) and beside == "0.5"


def test_points_and_scores_are_rounded(capsys: pytest.CaptureFixture[str]) -> None:
    points = Scatter(points=np.array([[0.123456, -2 / 3]]), labels=("1-1",), groups=("layer 1",))
    out = printed(points, capsys)
    assert "0.123" in out and "-0.667" in out and "0.1234" not in out
    examples = (Example(words=("a",), score=1 / 3), Example(words=("b",)))
    out = printed(Examples(examples=examples), capsys)
    assert "0.333" in out and "0.3333" not in out and "None" not in out


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_no_number_is_cut_however_narrow_the_terminal_is(width: int) -> None:
    measure = Column("held-out accuracy", ("0.455 [0.412, 0.492]", "1"))
    beside = [Column(f"baseline {place}", ("0.298 [0.279, 0.319]", "0")) for place in range(4)]
    tables = list(in_tables(["all", "det"], [[measure, *beside], [Column("rivals", ("3", "127"))]], width, 7))
    assert [column for table in tables for column in table if column is not measure][:4] == beside
    for table in tables[:-1]:
        assert table[0] is measure and sum(column.width for column in table) <= max(width, 2 * measure.width)
    assert {column.name for table in tables for column in table} == {measure.name, "rivals", *(b.name for b in beside)}


def test_many_rows_without_a_number_are_named_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    value = np.array([0.5, *[np.nan] * 5])
    names = ("known", "uno", "due", "tre", "quattro", "cinque")
    score = Estimates(value=value, low=value - 0.1, high=value + 0.1, n=np.array([3, 0, 0, 0, 0, 0]))
    level = {"level": {"score": Estimates.exact(np.full(6, 0.25))}}
    out = printed(Table(measures={"score": score}, baselines=level, rows_named=names), capsys)
    assert "nothing to measure in 5 rows: uno, due, tre, quattro, cinque" in out and out.count("cinque") == 1


def test_no_word_of_a_measures_name_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    names = [f"{number} to punctuation or something" for number in range(20)]
    measures = {name: Estimates.exact(np.full((2, 3), float(number))) for number, name in enumerate(names)}
    out = printed(HeadGrid(measures=measures, baselines={"uniform attention": measures}), capsys)
    by_layer = out.split("highest head of each measure")[0]
    assert "…" not in by_layer and by_layer.count("punctuation") == len(names)
    rows = [line.split() for line in by_layer.splitlines() if line.strip().startswith("2 ")]
    assert [cell for row in rows for cell in row[1:]] == [f"{number:.3f}" for number in range(20)]
    beside = [line.split() for line in by_layer.splitlines() if line.strip().startswith("uniform")]
    assert [cell for row in beside for cell in row if "." in cell] == [f"{number:.3f}" for number in range(20)]


def test_lines_are_broken_at_words_for_people_only(monkeypatch: pytest.MonkeyPatch) -> None:
    line = "attention/entropy  How widely does each head spread its attention?"
    assert broken(line, 19) == line
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    lines = broken(line, 19).splitlines()
    assert len(lines) > 2 and all(len(one) <= 40 for one in lines)
    assert all(one.startswith(" " * 19 + one.strip()[0]) for one in lines[1:])


def test_a_table_without_rows_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    nothing = Estimates.exact(np.zeros(0))
    out = printed(Table(measures={"p": nothing}, baselines={"level": {"p": nothing}}, rows_named=()), capsys)
    assert "no rows: nothing met what the analysis asks for" in out


@pytest.mark.parametrize("width", [80, 160])
def test_no_interval_is_broken_for_the_sake_of_long_names(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal, "PIPED_WIDTH", width)
    value = np.linspace(0.001234, 0.9, 5)
    wide = Estimates(value=value, low=value * 0.98765, high=value * 1.0123, n=np.full(5, 9))
    names = [f"a rather long name of measure {number}" for number in range(3)]
    exact = Estimates.exact(np.ones(5))
    beside = {"another model's weights": dict.fromkeys(names, wide), "any unmasked piece": dict.fromkeys(names, exact)}
    out = printed(LayerCurve(measures=dict.fromkeys(names, wide), baselines=beside, first=1), capsys)
    rows = [line for line in out.splitlines() if line.strip()[:1].isdigit()]
    assert len(rows) % 5 == 0 and sum(row.count("]") for row in rows) >= 5 * 6
    assert all(row.count("[") == row.count("]") for row in rows)
    assert max(map(len, out.splitlines()[2:])) <= width
    assert out.count("unmasked") == 3  # no name is cut
    assert sum(row.split().count("1") for row in rows) == 3 * 5 + len(rows) // 5  # nor a column; layers have one, too
