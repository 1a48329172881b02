"""Models of an earlier atlas are added from its JSON file; what cannot be compared is left out and told."""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.planted_claims import write_claims

import bertology
from bertology.analyses import registry
from bertology.atlas import build
from bertology.atlas.content import Atlas
from bertology.atlas.earlier_atlas import add_models, digest_test
from bertology.atlas.judged_model import encode_resamples
from bertology.atlas.page import atlas_page
from bertology.claims.catalogue import all_claims
from bertology.corpus.read import load_corpus
from bertology.errors import Refusal
from planted_atlas import planted_atlas

LIMIT = 12
EFFECTS = {"first": {"high": 0.5, "low": -0.5}, "second": {"high": 0.4, "low": 0.5}}


@pytest.fixture(scope="module")
def arguments(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("store")
    return {"claims": write_claims(folder / "planted.toml"), "limit": LIMIT, "max_unknown": 1.0, "store": folder}


@pytest.fixture(scope="module")
def both(arguments: dict[str, Any]) -> Atlas:
    """Two models judged in one call."""
    return bertology.atlas([bertology.load("tiny"), bertology.load("random:tiny@3")], "english", **arguments)


@pytest.fixture(scope="module")
def earlier(arguments: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The atlas of the second model alone, as JSON."""
    file = tmp_path_factory.mktemp("earlier") / "earlier.json"
    bertology.atlas([bertology.load("random:tiny@3")], "english", output=file, **arguments)
    return file


def changed(file: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    content = json.loads(file.read_text())
    change(content)
    copy = file.with_name("changed.json")
    copy.write_text(json.dumps(content).replace("Infinity", "1e999"))  # which is read as infinity
    return copy


def test_an_added_model_is_compared_as_if_it_were_judged_here(
    arguments: dict[str, Any], earlier: Path, both: Atlas
) -> None:
    content = bertology.atlas([bertology.load("tiny")], "english", add=earlier, **arguments)
    assert [(model.name, model.added_from) for model in content.models] == [
        ("tiny", ""),
        ("random:tiny@3", "earlier.json"),
    ]
    assert content.differences == both.differences and all(d.is_paired for d in content.differences)
    assert content.agreements == both.agreements and content.messages == ()


def test_atlases_are_joined_without_a_model_of_their_own(
    arguments: dict[str, Any], earlier: Path, both: Atlas, tmp_path: Path
) -> None:
    other = tmp_path / "other.json"
    bertology.atlas([bertology.load("tiny")], "english", output=other, **arguments)
    content = bertology.atlas([], "english", add=[other, earlier], output=tmp_path / "page.html", **arguments)
    assert content.differences == both.differences
    page = (tmp_path / "page.html").read_text()
    assert "<dt>added from</dt><dd>other.json</dd>" in page


def test_an_added_model_keeps_its_name_unless_another_one_has_it(arguments: dict[str, Any], earlier: Path) -> None:
    def rename(content: dict[str, Any]) -> None:
        [record] = content["records"]
        content["records"] += [
            record | {"name": "tiny", "source": "elsewhere/tiny", "fingerprint": "1" * 32},
            record | {"name": "tiny", "source": "another/tiny", "fingerprint": "2" * 32},
        ]

    content = bertology.atlas([bertology.load("tiny")], "english", add=changed(earlier, rename), **arguments)
    names = ["tiny", "random:tiny@3", "tiny (changed.json)", "another/tiny (changed.json)"]
    assert [model.name for model in content.models] == names


def test_a_model_that_is_there_already_is_left_out(arguments: dict[str, Any], earlier: Path) -> None:
    content = bertology.atlas([bertology.load("random:tiny@3")], "english", add=earlier, **arguments)
    assert len(content) == 1
    [message] = content.messages
    assert message == "random:tiny@3 in earlier.json is left out: random:tiny@3 is in this atlas already."


def test_a_finding_that_is_tested_in_another_way_is_left_out(arguments: dict[str, Any], earlier: Path) -> None:
    """The file says that one of its two tests is another one than that of the present version."""
    first = json.loads(earlier.read_text())["findings"][0]["id"]

    def change_digest(content: dict[str, Any]) -> None:
        content["findings"][0]["test_digest"] = "0123456789abcdef"

    file = changed(earlier, change_digest)
    content = bertology.atlas([bertology.load("tiny")], "english", add=file, **arguments)
    assert first not in [finding.id for finding in content["random:tiny@3"].findings]
    assert len(content["random:tiny@3"].findings) == len(content["tiny"].findings) - 1
    [message] = [message for message in content.messages if "tested in another way" in message]
    assert message.endswith("tested in another way: The last layer has a higher entropy than 0.")


def test_the_digest_is_that_of_the_test_and_of_its_analyses(monkeypatch: pytest.MonkeyPatch) -> None:
    claim = all_claims()[0]
    assert digest_test(claim.model_copy(update={"headline": "Other words."})) == digest_test(claim)
    assert digest_test(claim.model_copy(update={"published": -1.0})) != digest_test(claim)
    before = digest_test(claim)

    def newer(name: str) -> SimpleNamespace:
        return SimpleNamespace(version=1_000_000)

    monkeypatch.setattr(registry, "get", newer)
    assert digest_test(claim) != before


FINDING = ("records", 0, "findings", 0)
NOT_NUMBERS = b64encode(np.full(2, np.nan, np.float32).tobytes()).decode()


@pytest.mark.parametrize(
    ("path", "value", "found"),
    [
        (("corpus",), {"name": "other", "fingerprint": "0" * 32, "examples": 7}, "7 examples of other"),
        (("options", "overflow"), "skip", "overflow = skip, and this atlas has None"),
        (("records",), None, "is not an atlas"),
        (("records",), [{"name": "x"}], "is not an atlas"),
        ((*FINDING, "axis"), [1.0, 0.0], "is not an atlas"),
        ((*FINDING, "marks", 0, "value"), math.inf, "is not an atlas"),
        ((*FINDING, "effect", "resampled"), "AAA", "is not an atlas"),
        (
            (*FINDING, "effect", "resampled"),
            b64encode(np.full(2, np.nan, np.float32).tobytes()).decode(),
            "is not an atlas",
        ),
        (("findings",), [], "has no finding that is tested"),
    ],
)
def test_what_cannot_be_added_is_refused_before_a_model_is_judged(
    path: tuple[str | int, ...],
    value: object,
    found: str,
    arguments: dict[str, Any],
    earlier: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(build, "judge_in_workers", None)

    def change(content: dict[str, Any]) -> None:
        part: Any = content
        for key in path[:-1]:
            part = part[key]
        part[path[-1]] = value

    with pytest.raises(Refusal, match=found):
        bertology.atlas(["no/such/model"], "english", add=changed(earlier, change), **arguments)


def test_the_json_of_an_earlier_version_is_refused(arguments: dict[str, Any], earlier: Path) -> None:
    def remove_records(content: dict[str, Any]) -> None:
        del content["records"]

    with pytest.raises(Refusal, match=r"has no `records` of its models: an earlier version"):
        bertology.atlas([], "english", add=changed(earlier, remove_records), **arguments)


def test_other_json_is_refused(arguments: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "list.json"
    file.write_text("[1]")
    with pytest.raises(Refusal, match="holds a list"):
        bertology.atlas([], "english", add=file, **arguments)
    with pytest.raises(Refusal, match=r"missing\.json"):
        bertology.atlas([], "english", add=tmp_path / "missing.json", **arguments)


def test_models_without_resamples_are_compared_as_independent(tmp_path: Path) -> None:
    """An effect with its standard error alone is compared by that; another number of resamples is not paired either."""
    content = planted_atlas(EFFECTS)
    corpus = load_corpus("english", limit=2)
    record: dict[str, Any] = content.to_json() | {"corpus": corpus.summary()}
    record["options"] = {"limit": None, "overflow": None, "fill": None, "max_unknown": None}
    for finding in record["records"][1]["findings"]:
        finding["effect"]["resampled"] = "" if finding["id"] == "high" else encode_resamples(np.zeros(3))
    file = tmp_path / "planted.json"
    file.write_text(json.dumps(record))
    added = add_models([file], (), corpus=corpus, claims=content.claims, options={})
    joined = Atlas(added.models, content.claims, content.corpus)
    assert [difference.is_paired for difference in joined.differences] == [False, False]
    page = atlas_page(joined)
    assert "1 pair of models compared by independent intervals;" in page and "sentence by sentence;" not in page
    assert {d.finding: d.is_significant for d in joined.differences} == {"high": False, "low": True}
