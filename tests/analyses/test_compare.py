"""`bertology.compare`: the table of several models has the numbers of their results."""

from __future__ import annotations

import pytest

import bertology

NOUNS = ("cat", "man", "dog")
TEXTS = [f"The {noun} saw the old {other} near the river." for noun in NOUNS for other in ("boat", "house")]
MODELS = ["tiny", "random:tiny@3"]


def test_the_table_has_the_numbers_of_single_runs() -> None:
    table = bertology.compare(MODELS, TEXTS, "geometry/contextuality")
    for model in MODELS:
        measure = bertology.run("geometry/contextuality", model, TEXTS)["self-similarity"]
        rows = [row for row in table.rows if row.measure == measure.name and row.series == "model"]
        assert [row.estimates[model] for row in rows] == [measure[layer] for layer in range(3)]
    assert table.to_markdown().splitlines()[0] == "| measure | at | series | tiny | random:tiny@3 |"


def test_one_model_is_refused_with_what_to_write() -> None:
    with pytest.raises(bertology.Refusal, match="list of models"):
        bertology.compare("tiny", TEXTS)
