"""`bertology.claims`: filling from the built-in corpus, unknown tokens, several models, JSON and exit status."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

import bertology
from bertology.claims.readability import count_unknown_tokens
from bertology.corpus.read import load_corpus
from bertology.encoder.load import load
from bertology.views.report.schemas import json_schemas
from command import bertology as command

TEXTS = [
    f"The {noun} saw the old {other} near the river." for noun in ("cat", "man", "dog") for other in ("boat", "house")
]
OWN_CLAIMS = """
[[claim]]
id = "broad-first-layer"
statement = "The first layer attends broadly."
section = "own"
published_value = "3.60 nats"
published = 3.6
analysis = "attention/entropy"
test = { kind = "greater", left = { measure = "entropy", layers = { first = 1 } }, right = 0.5 }

[[claim]]
id = "own-det-head"
statement = "One head finds determiners."
section = "own"
published_value = "94.3 %"
published = 0.943
published_baseline = 0.517
analysis = "heads/dependency"
test = { kind = "any row", measure = "accuracy (held out)", baseline = "best fixed offset", rows = ["det"] }
"""


@pytest.fixture
def own_claims(tmp_path: Path) -> Path:
    file = tmp_path / "clark2019.toml"
    file.write_text(OWN_CLAIMS, "utf-8")
    return file


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    file = tmp_path / "texts.txt"
    file.write_text("\n".join(TEXTS * 2) + "\n", "utf-8")
    return file


def test_what_the_corpus_lacks_is_filled_from_the_built_in_corpus(own_claims: Path) -> None:
    results = bertology.claims("tiny", TEXTS, claims=own_claims, limit=30)
    assert results["broad-first-layer"].filled_from == "" and results["broad-first-layer"].corpora == ("text",)
    filled = results["own-det-head"]
    assert filled.filled_from == "english.conllu" and filled.corpora == ("english.conllu",)
    assert filled.verdict.outcome != "not applicable" and "built-in corpus english.conllu" in filled.answer
    assert "1 claim needs" in results.filling_note()
    treebank = bertology.claims("tiny", load_corpus("english", limit=30), claims=own_claims)
    assert treebank["own-det-head"].verdict == filled.verdict and not treebank.filling_note()


def test_without_filling_such_a_claim_does_not_apply(own_claims: Path) -> None:
    results = bertology.claims("tiny", TEXTS, claims=own_claims, fill=False)
    assert results["own-det-head"].verdict.outcome == "not applicable" and not results.filling_note()
    assert results.counts()["not applicable"] == 1


def test_a_corpus_the_tokeniser_does_not_know_is_refused_unless_one_goes_on(own_claims: Path) -> None:
    unknown = count_unknown_tokens(load("mini"), load_corpus("chinese"))
    assert unknown.share > 0.5
    with pytest.raises(bertology.Refusal, match=r"unknown to the tokeniser of mini.*--max-unknown-tokens 1"):
        bertology.claims("mini", "chinese", claims=own_claims)
    results = bertology.claims("mini", "chinese", claims=own_claims, max_unknown=1.0, limit=3, fill=False)
    assert results.unknown_tokens[0].n_unknown > 0
    assert count_unknown_tokens(load("mini"), load_corpus("english")).share < 0.01


def test_several_models_give_the_verdicts_of_each(own_claims: Path, texts: Path) -> None:
    models = ["tiny", "random:tiny"]
    results = bertology.claims(models, texts, claims=own_claims, limit=12, fill=False)
    assert list(results) == models
    assert set(results.verdicts()["broad-first-layer"]) == set(models)
    for model in models:
        single = bertology.claims(model, texts, claims=own_claims, limit=12, fill=False)
        assert results[model].to_json() == single.to_json()
    assert len(results.to_pandas()) == 4
    arguments = ("claims", *models, "--corpus", str(texts), "--claims", str(own_claims), "--limit", "12", "--no-fill")
    table = command(*arguments, "--no-store")
    assert table.status == 0, table.err
    header = next(line for line in table.out.splitlines() if line.strip().startswith("paper"))
    assert header.split() == ["paper", "claim", *models]
    assert json.loads(command(*arguments, "--no-store", "--json").out) == results.to_json()


def test_json_is_an_object_with_numbers_that_fits_its_schema(own_claims: Path, texts: Path) -> None:
    arguments = ("claims", "tiny", "--corpus", str(texts), "--claims", str(own_claims), "--limit", "20", "--no-store")
    completed = command(*arguments, "--json")
    record = json.loads(completed.out)
    Draft202012Validator(json_schemas()["claims"]).validate(record)
    assert record == bertology.claims("tiny", texts, claims=own_claims, limit=20).to_json()
    assert record["model"]["name"] == "tiny" and record["model"]["dtype"] == "float32"
    assert record["corpus"]["examples"] == 12 and record["options"]["limit"] == 20
    assert record["filled_from"]["name"] == "english.conllu" and "torch" in record["versions"]
    assert "0 of" in completed.err and "unknown to the tokeniser of tiny" in completed.err
    head = record["claims"][1]
    assert head["published"] == 0.943 and head["published_baseline"] == 0.517
    assert head["baseline"]["name"] == "best fixed offset"
    assert all(isinstance(head[name], float) for name in ("value", "low", "high")) and head["n"] > 0


def test_the_exit_status_says_whether_a_claim_fails(own_claims: Path, texts: Path) -> None:
    own_claims.write_text(OWN_CLAIMS.split('[[claim]]\nid = "own-det')[0], "utf-8")
    arguments = ("claims", "tiny", "--corpus", str(texts), "--claims", str(own_claims), "--no-store")
    for fail_on in ("fails", "inconclusive"):
        assert command(*arguments, "--fail-on", fail_on).status == 0
    own_claims.write_text(own_claims.read_text("utf-8").replace("right = 0.5", "right = 50"), "utf-8")
    assert command(*arguments).status == 0
    assert command(*arguments, "--fail-on", "fails").status == 1
    assert command(*arguments, "--fail-on", "inconclusive").status == 1
