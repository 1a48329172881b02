from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from starlette.testclient import TestClient

import bertology
from bertology.analyses import registry
from bertology.server.jobs import JobRequest
from bertology.server.model_session import Sources
from bertology.server.openapi import openapi_document
from bertology.server.workbench import Workbench
from serving import SENTENCE, finished_job
from warm_processes import warm_workers


@pytest.fixture(scope="session")
def indexed(served: tuple[TestClient, Workbench]) -> TestClient:
    """The client when the indices of links and states are built."""
    client = served[0]
    with warm_workers():
        jobs = [client.post("/api/jobs", json={"kind": kind}).json() for kind in ("links", "states")]
        assert [finished_job(client, job["id"])["state"] for job in jobs] == ["done", "done"]
    return client


def test_without_an_index_the_job_to_start_is_named(tmp_path: Any) -> None:
    from serving import served_workbench

    with served_workbench(tmp_path) as (client, _):
        response = client.post("/api/links", json={"query": "1-1 * -> *"})
        assert response.status_code == 409 and "'links'" in response.json()["remedy"]
        card = client.get("/api/heads/1-1").json()
        assert {"part": "links", "kind": "links", "analysis": "", "reason": ""} in card["missing"]
        assert "heads/functions" in {part["analysis"] for part in card["missing"]}
        assert card["strongest"] == [] and card["numbers"] == []


def test_links_are_counted_as_in_the_attention_itself(indexed: TestClient, bench: Workbench) -> None:
    answer = indexed.post("/api/links", json={"query": "2-3 NOUN -> VERB > 0.25", "count": 5}).json()
    corpus = bench.session.corpus("")
    recording = bertology.record("tiny", corpus, ["attention"])
    n_links = n_pairs = 0
    for number, recorded in enumerate(recording.inputs):
        attention = np.asarray(recording["attention"][number], np.float32)[1, 2]
        words, tags = recorded.tokens.word_ids, recorded.text.segments[0].pos or ()
        for i, source in enumerate(tags):
            for j, target in enumerate(tags):
                if i != j and (source, target) == ("NOUN", "VERB"):
                    n_pairs += 1
                    n_links += bool(attention[words == i][:, words == j].sum(-1).mean() > 0.25)
    assert (answer["n_links"], answer["n_pairs"]) == (n_links, n_pairs)
    assert (answer["complete"] and "chance" in answer["summary"]) or not n_links
    by_parts = {"head": "2-3", "source": {"pos": "NOUN"}, "target": {"pos": "VERB"}, "min_weight": 0.25, "count": 5}
    assert indexed.post("/api/links", json=by_parts).json() == answer


def test_a_search_that_cannot_be_read_is_refused(indexed: TestClient) -> None:
    for query in ("hello", "1-1 NUON -> *", "9-9 * -> *"):
        response = indexed.post("/api/links", json={"query": query})
        assert response.status_code == 422 and response.json()["remedy"]
    assert indexed.post("/api/links", json={}).status_code == 422


def test_neighbours_of_a_word_of_the_corpus_begin_with_itself(indexed: TestClient, bench: Workbench) -> None:
    words = bench.session.corpus("")[5].segments[0].words
    answer = indexed.post("/api/neighbours", json={"example": 5, "position": 1, "layer": 2}).json()
    first = answer["neighbours"][0]
    assert answer["word"] == words[0] and (first["example"], first["word"]) == (5, 0)
    assert first["cosine"] == pytest.approx(1, abs=1e-3) and answer["chance"] < 1
    wrong = indexed.post("/api/neighbours", json={"text": SENTENCE, "position": 0, "layer": 2})
    assert wrong.status_code == 422


@pytest.mark.slow
def test_a_head_card_has_numbers_of_stored_results(indexed: TestClient, bench: Workbench) -> None:
    for analysis in ("attention/entropy", "heads/functions"):
        job = indexed.post("/api/jobs", json={"kind": "analysis", "analysis": analysis}).json()
        assert finished_job(indexed, job["id"], 300)["state"] == "done"
    card = indexed.get("/api/heads/2-3").json()
    result = bertology.run("attention/entropy", "tiny", bench.session.corpus(""))
    number = next(n for n in card["numbers"] if n["measure"] == "entropy")
    estimate = result["entropy"]["2-3"]
    assert (number["value"], number["low"], number["n"]) == (estimate.value, estimate.low, estimate.n)
    values = result.data.measures["entropy"].value  # pyright: ignore[reportAttributeAccessIssue]
    assert number["rank"] == int((values > estimate.value).sum()) + 1 and number["n_heads"] == 8
    assert set(number["baselines"]) == set(result.data.baselines_of("entropy"))  # pyright: ignore[reportAttributeAccessIssue]
    assert len(card["strongest"]) == len(card["random"]) == 10 and len(card["similar"]) == 3
    assert next(histogram["name"] for histogram in card["histograms"]) == "offset"
    assert "attention/entropy" not in {part["analysis"] for part in card["missing"]}
    stored = indexed.get("/api/results", params={"analysis": "attention/entropy"}).json()
    assert stored["data"] == result.to_json()["data"] and stored["baselines"] == result.to_json()["baselines"]
    assert indexed.get("/api/results", params={"analysis": "attention/norms"}).status_code == 404


def test_a_job_is_queued_with_the_sources_of_its_inputs(tmp_path: Path) -> None:
    bench = Workbench(Sources.from_names(["tiny", "random:tiny@3"], ["english"]), tmp_path)
    try:
        for against in ("", "random:tiny@3"):
            job = bench.submit(JobRequest(kind="analysis", analysis="attention/entropy", against=against))
            assert bench.jobs.get(job.id).sources == {"model": "tiny", "corpus": "english", "against": against}
    finally:
        bench.close()


def test_a_head_that_does_not_exist_is_refused(client: TestClient) -> None:
    assert client.get("/api/heads/9-9").status_code == 422
    assert client.get("/api/heads/x").status_code == 422


def test_the_corpus_is_searched_and_paged(client: TestClient, bench: Workbench) -> None:
    corpus = bench.session.corpus("")
    page = client.get("/api/corpus", params={"word": "THE", "pos": "DET", "count": 3, "start": 2}).json()
    fitting = [
        index
        for index, example in enumerate(corpus)
        if any(
            word.lower() == "the" and tag == "DET"
            for word, tag in zip(example.segments[0].words, example.segments[0].pos or (), strict=True)
        )
    ]
    assert page["n_examples"] == len(fitting) and [e["index"] for e in page["examples"]] == fitting[2:5]
    segment = page["examples"][0]["segments"][0]
    assert all(segment["words"][match].lower() == "the" for match in segment["matches"]) and segment["matches"]
    nsubj = client.get("/api/corpus", params={"relation": "nsubj"}).json()
    assert nsubj["n_words"] >= nsubj["n_examples"] > 0 and nsubj["total"] == len(corpus)
    refused = client.get("/api/corpus", params={"label": "positive"})
    assert refused.status_code == 422 and "label" in refused.json()["problem"]


def test_every_analysis_and_claim_is_listed_with_its_options(client: TestClient) -> None:
    listed = {analysis["name"]: analysis for analysis in client.get("/api/analyses").json()["analyses"]}
    assert set(listed) == set(registry.names())
    ablation = {option["name"]: option for option in listed["interventions/head_ablation"]["options"]}
    assert ablation["ablation"]["choices"] == ["uniform", "zero", "mean"] and ablation["ablation"]["type"] == "choice"
    assert ablation["seed"]["type"] == "int" and ablation["seed"]["minimum"] == 0
    claims = client.get("/api/claims").json()["claims"]
    assert {claim["id"] for claim in claims} == {claim.id for claim in bertology.all_claims()}


def test_what_is_kept_opens_offline_and_names_how_to_make_it(client: TestClient) -> None:
    live = {"text": SENTENCE, "layers": [2], "intervention": {"off": ["2-3"]}, "quantities": ["attention", "norm"]}
    commands = client.post("/api/commands", json=live).json()
    assert commands["command_line"] == f"bertology view '{SENTENCE}' --model tiny --quantity norm"
    assert "encoder.without('2-3')" in commands["python"] and commands["notes"]
    table = client.post("/api/keep/csv", json=live)
    lines = table.text.splitlines()
    n_tokens = len(bertology.record("tiny", [SENTENCE], ["attention"])["attention"][0][0, 0])
    assert len(lines) == 1 + 2 * 4 * n_tokens**2 and lines[1].startswith(
        "tiny without 2-3,attention,2,1,1,[CLS],1,[CLS],"
    )
    assert 'filename="weights.csv"' in table.headers["content-disposition"]


def test_pins_become_one_page(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    from bertology.views import page

    def asset(name: str) -> str:
        return f"/* {name} */"

    monkeypatch.setattr(page, "asset", asset)
    pin = {
        "live": {"text": SENTENCE},
        "against": {"text": SENTENCE, "intervention": {"off": ["1-1"]}},
        "caption": "A <pin>",
    }
    one = client.post("/api/keep", json={"pins": [pin]})
    assert one.status_code == 200 and "default-src 'none'" in one.text and "page.js" in one.text
    payload = json.loads(one.text.partition('data-bertology-payload="page">')[2].partition("</script>")[0])
    assert [run["name"] for run in payload["runs"]] == ["tiny", "tiny without 1-1"]
    two = client.post("/api/keep", json={"title": "Mine", "pins": [pin, {"live": {"text": "Another one ."}}]})
    assert two.text.count("data-bertology-view=") == 2 and "A &lt;pin&gt;" in two.text and "<h1>Mine</h1>" in two.text
    assert client.post("/api/keep", json={"pins": []}).status_code == 422
    assert client.post("/api/keep", json={"pins": [{**pin, "state": '"><script>'}]}).status_code == 422


def test_references_are_bibtex(client: TestClient) -> None:
    assert client.get("/api/bibtex", params={"keys": "clark2019,voita2019"}).text.count("@") >= 2
    assert client.get("/api/bibtex", params={"keys": "nobody1900"}).status_code == 422


def test_the_openapi_document_describes_every_answer(client: TestClient) -> None:
    document = client.get("/api/openapi.json").json()
    assert document == openapi_document() and document["openapi"].startswith("3.")
    schemas = document["components"]["schemas"]
    for path, operations in document["paths"].items():
        for operation in operations.values():
            assert operation["summary"] and "200" in operation["responses"], path
    answer = client.post("/api/live", json={"text": SENTENCE}).json()
    schema = {**schemas["LiveAnswer"], "components": {"schemas": schemas}}
    jsonschema.validate(answer, schema)
    page = client.get("/api/")
    assert page.status_code == 200 and "POST api/live" in page.text
