"""`bertology.report`: the file it writes, its format, and what was filled in, on the page and in JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

import bertology
from bertology.views.report.schemas import json_schemas
from command import bertology as command

TEXTS = [
    f"The {noun} saw the old {other} near the river." for noun in ("cat", "man", "dog") for other in ("boat", "house")
]
OWN_CLAIM = """
[[claim]]
id = "own-det-head"
statement = "One head finds determiners."
section = "own"
published_value = "94.3 %"
analysis = "heads/dependency"
test = { kind = "any row", measure = "accuracy (held out)", baseline = "best fixed offset", rows = ["det"] }
"""


@pytest.fixture
def own_claims(tmp_path: Path) -> Path:
    file = tmp_path / "clark2019.toml"
    file.write_text(OWN_CLAIM, "utf-8")
    return file


def test_the_page_says_what_was_filled_in_and_how_many_tokens_are_unknown(own_claims: Path, tmp_path: Path) -> None:
    path = bertology.report("tiny", TEXTS, claims=own_claims, limit=30, output=tmp_path / "page.html")
    html = path.read_text("utf-8")
    assert "tested on the built-in corpus english.conllu instead" in html
    assert "Tested on the built-in corpus english.conllu" in html and "unknown to the tokeniser of tiny" in html


def test_json_fits_its_schema_and_equals_the_command(own_claims: Path, tmp_path: Path) -> None:
    corpus = tmp_path / "texts.txt"
    corpus.write_text("\n".join(TEXTS) + "\n", "utf-8")
    path = bertology.report("tiny", corpus, claims=own_claims, limit=30, output=tmp_path / "python.json")
    record = json.loads(path.read_text("utf-8"))
    Draft202012Validator(json_schemas()["report"]).validate(record)
    output = tmp_path / "command.json"
    arguments = ("report", "tiny", "--corpus", str(corpus), "--claims", str(own_claims), "--limit", "30", "--no-store")
    completed = command(*arguments, "--json", "-o", str(output))
    assert completed.status == 0, completed.err
    assert json.loads(output.read_text("utf-8")) == record
    assert "forward pass" in completed.err and "forward pass" not in output.read_text("utf-8")


def test_a_suffix_without_a_format_and_several_models_are_refused(tmp_path: Path) -> None:
    with pytest.raises(bertology.Refusal, match="suffix"):
        bertology.report("tiny", TEXTS, output=tmp_path / "page.doc")
    with pytest.raises(bertology.Refusal, match="several models"):
        bertology.report(["tiny", "mini"], TEXTS, output=tmp_path / "page.html")
