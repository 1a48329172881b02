"""Panels by name: measures, rows of tables, numbers of sentences."""

from __future__ import annotations

import pytest

from bertology.errors import Refusal
from bertology.results.drawing.selection import PanelSelection, select_panels
from bertology.results.shapes import Table
from results.example_results import LONG_NAME, SHAPES, measures_and_baselines


def test_parts_of_names_in_one_text_select_measures_in_their_order() -> None:
    assert select_panels(SHAPES["HeadGrid"], f"{LONG_NAME[:30]}, mass").measures == (LONG_NAME, "mass")
    assert select_panels(SHAPES["HeadGrid"], ["mass"]).measures == ("mass",)
    assert select_panels(SHAPES["HeadGrid"], "") == PanelSelection()


def test_rows_of_a_table_are_selected_by_name() -> None:
    table = Table(**measures_and_baselines(2), row_names=("nsubj, pass", "obj"))
    assert select_panels(table, "nsubj, pass").rows == ("nsubj, pass",)
    assert select_panels(table, "mass,obj") == PanelSelection(measures=("mass",), rows=("obj",))


def test_sentences_are_selected_by_number() -> None:
    assert select_panels(SHAPES["Examples"], "2").numbers == (2,)
    assert select_panels(SHAPES["Arcs"], "sentence 1").numbers == (1,)
    with pytest.raises(Refusal, match="no panel called 'sentence 9'"):
        select_panels(SHAPES["Arcs"], "sentence 9")


def test_unknown_and_ambiguous_names_are_refused() -> None:
    with pytest.raises(Refusal, match="Did you mean 'mass'"):
        select_panels(SHAPES["HeadGrid"], "mass,mask")
    with pytest.raises(Refusal, match="names of 2 panels"):
        select_panels(SHAPES["HeadGrid"], "a")
    with pytest.raises(Refusal, match="single panel"):
        select_panels(SHAPES["Scatter"], "mass")
