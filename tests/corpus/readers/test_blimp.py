"""BLiMP: minimal pairs with their paradigm."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.corpus.checks import Reading, assert_surfaces
from tests.shared_data import shared

from bertology.corpus.read import read


@pytest.fixture
def sample(tmp_path: Path) -> Reading:
    return Reading(tmp_path, "blimp", "sample.jsonl")


def line(good: object = "Dogs bark.", bad: object = "Dogs barks.", **more: object) -> str:
    value = {"sentence_good": good, "sentence_bad": bad, "field": "morphology", "linguistics_term": "agreement"}
    return json.dumps(value | {"UID": "agreement_1", "pairID": "7"} | more) + "\n"


def test_a_pair_keeps_its_paradigm(sample: Reading) -> None:
    (item,) = corpus = sample.read(line())
    assert item.kind == "minimal_pair"
    assert [part.text for part in item.parts] == ["Dogs bark.", "Dogs barks."]
    assert (item.source, item.id, item.label) == ("morphology/agreement/agreement_1", "agreement_1-7", None)
    assert len(item.inputs) == 2
    assert_surfaces(corpus)


def test_a_pair_without_contrast_is_counted(sample: Reading) -> None:
    corpus = sample.read(line("Same.", "Same.") + line())
    assert (len(corpus), [skip.reason for skip in corpus.skipped]) == (1, ["pair without contrast"])


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ('{"sentence_good": "a"}\n', "missing key"),
        ("{\n", "invalid JSON"),
        ("[]\n", "wrong value"),
        (line(bad=""), "wrong value"),
        (line(good=3), "wrong value"),
        (line(UID=None), "wrong value"),
        (line(pairID=[]), "wrong value"),
    ],
)
def test_a_broken_line_is_refused_or_counted(bad: str, reason: str, sample: Reading) -> None:
    sample.bad(line() + bad + line(), reason, line=2, kept=2)


def test_the_folder_of_paradigms() -> None:
    folder = shared("data/blimp")
    corpus = read(folder)
    written = [json.loads(text) for path in folder.glob("*.jsonl") for text in path.read_text().splitlines()]
    alike = sum(value["sentence_good"] == value["sentence_bad"] for value in written)
    assert (len(written), alike, len(corpus), corpus.format) == (13400, 1, 13399, "blimp")
    assert len({item.source for item in corpus}) == 67
    assert_surfaces(corpus)
