"""Templates of answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertology.claims.catalogue import read_claims
from bertology.claims.template import fill_template, unknown_placeholders
from bertology.errors import Refusal


@pytest.mark.parametrize(
    "template",
    ["{value} {interval}", "{other2}", "{baseline:uniform attention}", "{value:higher|lower} {interval}", "no number"],
)
def test_known_placeholders(template: str) -> None:
    assert unknown_placeholders(template) == []


@pytest.mark.parametrize(
    ("template", "unknown"),
    [
        ("{valu}", "valu"),
        ("{value:.2f}", "value:.2f"),
        ("{head:a|b}", "head:a|b"),
        ("{baseline}", "baseline"),
        ("{value1}", "value1"),
    ],
)
def test_unknown_placeholders(template: str, unknown: str) -> None:
    assert unknown_placeholders(template) == [unknown]


@pytest.mark.parametrize("field", ["answer", "each", "requirement"])
@pytest.mark.parametrize(("template", "problem"), [("It is {valu}.", "valu"), ("It is {value.", "malformed")])
def test_mistakes_in_a_template_are_refused(field: str, template: str, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        f"""
[[claim]]
id = "own-claim"
statement = "It is so."
section = "1"
published_value = "yes"
analysis = "attention/targets"
{field} = "{template}"
test = {{ kind = "any head", measure = "attention to previous token", threshold = 0.5 }}
""",
        "utf-8",
    )
    with pytest.raises(Refusal, match=problem):
        read_claims(file)


FIELDS = {"value": "-3 points", "interval": "[-5, -1]", "opposite value": "3 points", "opposite interval": "[1, 5]"}


def test_a_word_fits_the_sign_and_the_interval_is_turned_with_it() -> None:
    template = "accuracy is {value:higher|lower} {interval}."
    assert fill_template(template, FIELDS) == "accuracy is 3 points lower [1, 5]."
    positive = {"value": "3 points", "interval": "[1, 5]"}
    assert fill_template(template, positive) == "accuracy is 3 points higher [1, 5]."


def test_an_empty_placeholder_leaves_no_gap() -> None:
    fields = {"value": "5.5 %", "interval": ""}
    assert fill_template("{value} {interval} of it, or {value} {interval}.", fields) == "5.5 % of it, or 5.5 %."


def test_a_missing_field_gives_no_text() -> None:
    assert fill_template("{value} in {head}", FIELDS) is None
