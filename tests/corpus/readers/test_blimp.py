"""BLiMP: minimal pairs and their paradigms."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.corpus.checks import ReaderSample, assert_offsets_match
from tests.shared_data import shared

from bertology.corpus.read import read


@pytest.fixture
def sample(tmp_path: Path) -> ReaderSample:
    return ReaderSample(tmp_path, "blimp", "sample.jsonl")


def line(acceptable: object = "Dogs bark.", unacceptable: object = "Dogs barks.", **fields: object) -> str:
    value = {
        "sentence_good": acceptable,
        "sentence_bad": unacceptable,
        "field": "morphology",
        "linguistics_term": "agreement",
    }
    return json.dumps(value | {"UID": "agreement_1", "pairID": "7"} | fields) + "\n"


def test_a_pair_has_its_paradigm_as_source(sample: ReaderSample) -> None:
    (example,) = corpus = sample.read(line())
    assert example.kind == "minimal_pair"
    assert [sentence.text for sentence in example.segments] == ["Dogs bark.", "Dogs barks."]
    assert (example.source, example.id, example.label) == ("morphology/agreement/agreement_1", "agreement_1-7", None)
    assert len(example.text_inputs) == 2
    assert_offsets_match(corpus)


def test_identical_pairs_are_counted_and_skipped(sample: ReaderSample) -> None:
    corpus = sample.read(line("Same.", "Same.") + line())
    assert (len(corpus), [skip.reason for skip in corpus.skipped]) == (1, ["identical pairs skipped"])


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ('{"sentence_good": "a"}\n', "missing key"),
        ("{\n", "invalid JSON"),
        ("[]\n", "wrong value"),
        (line(unacceptable=""), "wrong value"),
        (line(acceptable=3), "wrong value"),
        (line(UID=None), "wrong value"),
        (line(pairID=[]), "wrong value"),
    ],
)
def test_a_malformed_line_is_refused_or_counted(bad: str, reason: str, sample: ReaderSample) -> None:
    sample.assert_malformed(line() + bad + line(), reason, line=2, n_examples=2)


def test_a_directory_of_paradigms() -> None:
    directory = shared("data/blimp")
    corpus = read(directory)
    rows = [json.loads(text) for path in directory.glob("*.jsonl") for text in path.read_text().splitlines()]
    n_identical = sum(value["sentence_good"] == value["sentence_bad"] for value in rows)
    assert (len(rows), n_identical, len(corpus), corpus.format) == (13400, 1, 13399, "blimp")
    assert len({example.source for example in corpus}) == 67
    assert_offsets_match(corpus)
