from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from bertology.analyses import registry
from bertology.analyses.declaration import Analysis
from bertology.analyses.run import RunInputs, run_all
from bertology.encoder.encoder import TaskEncoder
from bertology.server import known_results
from bertology.server.jobs import JobRequest
from bertology.server.known_results import KnownResults, describe_settings, unsuited_analyses
from bertology.server.workbench import Workbench
from serving import finished_job
from warm_processes import warm_workers

ABLATION = "interventions/head_ablation"


@pytest.fixture(scope="module")
def ablated(served: tuple[TestClient, Workbench]) -> TestClient:
    """The client when heads have been removed one by one on a few texts."""
    client = served[0]
    request = {"kind": "analysis", "analysis": ABLATION, "limit": 12, "options": {"sample_size": 10}}
    with warm_workers():
        job = finished_job(client, client.post("/api/jobs", json=request).json()["id"], 300)
    assert job["state"] == "done", job
    return client


def shown(client: TestClient) -> tuple[list[dict[str, Any]], list[dict[str, Any]], set[str]]:
    """The measures of the ablation in the atlas, its numbers on the card, and what the card calls missing."""
    measures = client.get("/api/measures").json()["measures"]
    card = client.get("/api/heads/2-3").json()
    of_atlas = [measure for measure in measures if measure["source"].startswith(ABLATION)]
    of_card = [number for number in card["cost_of_removal"] if number["analysis"] == ABLATION]
    return of_atlas, of_card, {part["analysis"] for part in card["missing"]}


@pytest.mark.slow
def test_atlas_and_card_show_the_same_results_with_their_settings(ablated: TestClient) -> None:
    measures, numbers, missing = shown(ablated)
    assert ABLATION not in missing and len(numbers) == len(measures) > 3
    assert {number["settings"] for number in numbers} == {"first 12 texts, sample size 10"}
    by_name = {number["measure"]: number for number in numbers}
    for measure in measures:
        number = by_name[measure["name"]]
        assert measure["source"].endswith(", first 12 texts, sample size 10")
        assert measure["values"][1][2] == pytest.approx(number["value"], rel=1e-3)


@pytest.mark.slow
def test_p_values_are_compared_with_their_level_and_not_ranked(ablated: TestClient) -> None:
    measures, numbers, _ = shown(ablated)
    tests = {number["measure"]: number for number in numbers if number["is_p_value"]}
    assert set(tests) == {"p of change in score (Holm)", "p of change in loss (Holm)"}
    assert {measure["name"] for measure in measures if measure["is_p_value"]} == set(tests)
    for number in tests.values():
        assert number["rank"] is None and number["effect_size"] is None and number["n_heads"] == 8
        assert number["baselines"] == {"significance level": 0.05}
    assert [number["measure"] for number in numbers][:4] == ["change in score", "change in loss", *tests]
    assert 1 <= numbers[1]["rank"] <= 8 and numbers[1]["effect_size"] is not None, "every head changes the loss"
    for number, measure in zip(
        numbers, sorted(measures, key=lambda each: _names(numbers).index(each["name"])), strict=True
    ):
        is_constant = len({value for row in measure["values"] for value in row}) == 1
        assert (number["rank"] is None) == (is_constant or number["is_p_value"]), "equal numbers have no rank"


@pytest.mark.slow
def test_results_of_other_code_are_neither_in_the_atlas_nor_on_the_card(
    ablated: TestClient, bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = replace(registry.get(ABLATION), version=99)

    def find(name: str) -> Analysis:
        return changed if name == ABLATION else registry.get(name)

    monkeypatch.setattr(registry, "find", find)
    monkeypatch.setattr(Workbench, "results", KnownResults(bench.store))
    measures, numbers, missing = shown(ablated)
    assert measures == [] and numbers == [] and ABLATION in missing
    assert any(job["title"] == ABLATION and job["state"] == "done" for job in ablated.get("/api/jobs").json()["jobs"])


def test_results_of_finished_jobs_are_found_if_they_are_of_this_model_and_corpus(
    bench: Workbench, tmp_path: Path
) -> None:
    encoder, corpus = bench.session.encoder(""), bench.session.corpus("")[:8]
    inputs = RunInputs(corpus=corpus, encoder=encoder, store=tmp_path)
    run_all([(registry.get("attention/confidence"), {})], inputs, cache_results=True)

    def request(**fields: str) -> JobRequest:
        names = {"analysis": "attention/confidence", "model": encoder.name, "corpus": corpus.name}
        return JobRequest.model_validate({"kind": "analysis", **names, **fields})

    def found(*requests: JobRequest) -> list[str]:
        return list(KnownResults(tmp_path).of_heads(encoder, corpus, requests, bench.session.encoder))

    assert found(request()) == ["attention/confidence"]
    assert found(request(model="other"), request(corpus="other"), request(analysis="plugged/in")) == []
    assert found(request(analysis="plugged/in"), request()) == ["attention/confidence"]


def test_the_results_that_were_looked_at_last_are_kept(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder, corpus = bench.session.encoder(""), bench.session.corpus("")
    read: list[str] = []

    def read_store(analysis: Analysis, *_: object) -> str:
        read.append(analysis.name)
        return analysis.name

    monkeypatch.setattr(known_results, "stored_result", read_store)
    monkeypatch.setattr(known_results, "MAX_RESULTS", 2)
    results = KnownResults(bench.store)
    entropy, targets, distance = (f"attention/{name}" for name in ("entropy", "targets", "distance"))
    for name in (entropy, targets, entropy, distance, entropy, targets):
        assert results.by_default(registry.get(name), encoder, corpus) == name
    assert read == [entropy, targets, distance, targets]


def test_what_cannot_run_has_a_reason(bench: Workbench) -> None:
    encoder, corpus = bench.session.encoder(""), bench.session.corpus("")
    assert unsuited_analyses(encoder, corpus) == {}
    plain = replace(corpus, examples=tuple(_without_trees(example) for example in corpus))
    reasons = unsuited_analyses(encoder, plain)
    assert list(reasons) == ["heads/functions"] and "governors" in reasons["heads/functions"]
    headless: Any = encoder
    without = unsuited_analyses(_Headless(headless), corpus)  # pyright: ignore[reportArgumentType]
    assert list(without) == [ABLATION] and "task head" in without[ABLATION]


def test_settings_are_all_that_is_not_default() -> None:
    assert describe_settings(JobRequest(kind="analysis", analysis="attention/entropy")) == ""
    request = JobRequest(kind="analysis", limit=20, like="clark2019", against="b", options={"n_seeds": 3})
    assert describe_settings(request) == "first 20 texts, like clark2019, against b, n seeds 3"


def _names(numbers: list[dict[str, Any]]) -> list[str]:
    return [number["measure"] for number in numbers]


class _Headless:
    """An encoder without task heads."""

    def __init__(self, encoder: TaskEncoder) -> None:
        self.name, self.task_heads = encoder.name, frozenset[str]()


def _without_trees(example: Any) -> Any:
    segments = tuple(replace(segment, governors=None, relations=None) for segment in example.segments)
    return replace(example, segments=segments)
