"""Markdown and LaTeX tables: escaped, with baselines, caption and label; what is cut is said."""

from __future__ import annotations

import re

import numpy as np
import pytest

from bertology.errors import Refusal
from bertology.estimates.estimate import Estimates
from bertology.results.shapes import HeadGrid, Shape, Table
from bertology.results.text_tables import escape_latex
from results.example_results import LONG_NAME, SHAPES, estimates, result


def test_a_table_of_one_measure() -> None:
    lines = result(SHAPES["Table"]).to_markdown("mass").splitlines()
    assert lines[0] == "| row | head | value | n | uniform attention | untrained model |"
    assert lines[1] == "| --- | --- | ---: | ---: | ---: | ---: |"
    assert lines[2] == r"| det | 1-2 | 0.2 \[0.15, 0.25\] | 7 | 0.5 | 0.2 \[0.15, 0.25\] |"
    assert lines[3].split("|")[3].strip() == "–"  # not measured
    assert lines[4].startswith(r"| \</script\> |")
    assert len(lines) == 9 and lines[-1].startswith("group/name: a-model on a-corpus, mass (proportion, 0 to 1).")


@pytest.mark.parametrize("shape", SHAPES.values(), ids=list(SHAPES))
def test_every_row_of_markdown_has_all_columns(shape: Shape) -> None:
    rows = [line for line in result(shape).to_markdown().splitlines() if line.startswith("|")]
    assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) == 1 and len(rows) > 2


@pytest.mark.parametrize("shape", SHAPES.values(), ids=list(SHAPES))
def test_latex_is_balanced_and_every_row_has_all_columns(shape: Shape) -> None:
    latex = result(shape).to_latex()
    depth = 0
    for brace in re.findall(r"(?<!\\)[{}]", latex):
        depth += 1 if brace == "{" else -1
        assert depth >= 0
    assert depth == 0
    alignment = re.search(r"\\begin\{tabular\}\{([lr]+)\}", latex)
    body = latex[latex.index(r"\toprule") : latex.index(r"\bottomrule")]
    rows = [line for line in body.splitlines() if line.endswith(r"\\")]
    assert alignment is not None and len(rows) > 1
    assert {len(re.findall(r"(?<!\\)&", row)) for row in rows} == {len(alignment[1]) - 1}
    assert not re.search(r"(?<!\\)[%#_^~<>|\"]", body) and not re.search(
        r"(?<!\\)\$(?!-\$|\\times)", body.replace("$-$", "")
    )


def test_caption_and_label_are_given_or_say_what_the_table_shows() -> None:
    curve = result(SHAPES["LayerCurve"])
    assert r"\label{tab:group:name}" in curve.to_latex() and r"95 \% CI" in curve.to_latex()
    given = curve.to_latex("mass", caption="50 % of R_2 & more", label="tab:mine")
    assert r"\caption{50 \% of R\_2 \& more}" in given and r"\label{tab:mine}" in given
    assert "Special tokens: excluded" in curve.to_latex()


def test_a_measure_is_named_once_for_its_rows() -> None:
    latex = result(SHAPES["LayerCurve"]).to_latex()
    assert latex.count(LONG_NAME) == 1 and latex.count(r"\addlinespace") == 1


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("-0.5 [-1, 3-8]", "$-$0.5 [$-$1, 3-8]"),
        ("a_b & 5% {x} $y #1", r"a\_b \& 5\% \{x\} \$y \#1"),
        ("~^\\", r"\textasciitilde{}\textasciicircum{}\textbackslash{}"),
        ("a - b <c> |d|", r"a - b \textless{}c\textgreater{} \textbar{}d\textbar{}"),
        ("R²", r"R\textsuperscript{2}"),
    ],
)
def test_special_characters_are_escaped(text: str, escaped: str) -> None:
    assert escape_latex(text) == escaped


def test_a_bracket_cannot_become_an_argument_of_the_line_before() -> None:
    table = Table(measures={"m": estimates(2)}, baselines={"b": {"m": estimates(2)}}, row_names=("[CLS]", "*"))
    rows = [line for line in result(table).to_latex().splitlines() if line.endswith(r"\\")]
    assert [row.split(" &")[0] for row in rows[1:]] == ["{[CLS]}", "{*}"]


def large_grid() -> HeadGrid:
    values = estimates(12, 12, missing=False)
    return HeadGrid(measures={"m": values}, baselines={"b": {"m": Estimates.exact(np.zeros((12, 12)))}}, lowest=())


def test_many_numbers_are_cut_to_the_best_and_the_caption_says_so() -> None:
    markdown = result(large_grid()).to_markdown()
    assert "The 3 highest of 12 layers x 12 heads." in markdown
    assert [line.split("|")[1].strip() for line in markdown.splitlines()[2:5]] == ["12-12", "12-11", "12-10"]
    everything = result(large_grid()).to_markdown(n_best=144)
    assert "highest" not in everything and everything.count("\n| ") == 145
    assert "highest" not in result(SHAPES["HeadGrid"]).to_markdown()  # 12 heads are shown


def test_an_unknown_measure_is_refused() -> None:
    with pytest.raises(Refusal, match="no measure called 'entropy'"):
        result(SHAPES["Table"]).to_latex("entropy")


def test_rows_without_a_number_are_counted_instead_of_shown() -> None:
    value = np.array([0.5, np.nan, np.nan, np.nan, np.nan])
    measure = {"m": Estimates(value=value, low=value, high=value, n=np.where(np.isnan(value), 0, 7))}
    table = Table(measures=measure, baselines={"b": measure}, row_names=("a", "b", "c", "d", "e"))
    markdown = result(table).to_markdown()
    assert markdown.count("\n| ") == 2 and "4 of 5 rows were not measured and are left out." in markdown
