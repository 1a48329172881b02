from __future__ import annotations

import numpy as np
import pytest
from starlette.testclient import TestClient

import bertology
from bertology.analyses.link_index.index import LinkIndex
from bertology.analyses.link_index.site import strongest_links_site
from bertology.corpus.read import load_corpus
from bertology.estimates.estimate import Estimates
from bertology.results.result import Result
from bertology.results.shapes import Head, HeadGrid, Table
from bertology.server.head_card import HeadCard, build_card
from bertology.server.known_results import KnownResult
from serving import finished_job

VALUES = np.array([[0.1, 0.2, 0.3, 0.4], [0.5, 0.6, 0.7, 0.9]])


def planted_card(head: Head, *, with_functions: bool, with_index: bool) -> HeadCard:
    """A card from two results, and perhaps the links of a few sentences."""

    def known(name: str, data: HeadGrid | Table) -> KnownResult:
        result = Result(analysis=name, version=1, options={}, inputs={}, n=9, data=data, provenance={})
        return KnownResult(result)

    def estimates(values: object) -> Estimates:
        array = np.asarray(values, float)
        return Estimates(value=array, low=array - 0.1, high=array + 0.1, n=np.full(array.shape, 90))

    measures = {"entropy": estimates(VALUES)}
    results = {"attention/entropy": known("attention/entropy", HeadGrid(measures=measures, baselines={"b": measures}))}
    if with_functions:
        scores = {"score": estimates([0.8, 0.4])}
        attributes = {"head": ("2-4", "1-1"), "function": ("next word", "")}
        table = Table(row_names=("a", "b"), measures=scores, baselines={"b": scores}, attributes=attributes)
        results["heads/functions"] = known("heads/functions", table)
    index = None
    if with_index:
        index = LinkIndex(bertology.record("tiny", load_corpus("english", limit=5), [strongest_links_site()]))
    return build_card(head, (2, 4), results, index, [], model="tiny", corpus="english", unsuited={})


@pytest.mark.parametrize(
    ("head", "with_functions", "with_index", "note"),
    [
        (Head(1, 3), True, True, "Words from which a head with the function 'next word' should attend elsewhere."),
        (Head(0, 0), True, True, "The head has no function by heads/functions"),
        (Head(1, 3), True, False, "Needs the results of heads/functions and the index of links."),
        (Head(1, 3), False, True, "Needs the results of heads/functions and the index of links."),
    ],
)
def test_a_card_says_what_missed_words_are_or_what_they_need(
    head: Head, with_functions: bool, with_index: bool, note: str
) -> None:
    card = planted_card(head, with_functions=with_functions, with_index=with_index)
    assert card.missed_note.startswith(note)
    assert ("links" in {part.part for part in card.missing}) == (not with_index)


def test_numbers_of_all_heads_have_an_effect_size_and_those_of_chosen_heads_a_rank_alone() -> None:
    numbers = {
        number.measure: number for number in planted_card(Head(1, 3), with_functions=True, with_index=False).numbers
    }
    assert numbers["entropy"].effect_size == pytest.approx((0.9 - VALUES.mean()) / VALUES.std())
    assert (numbers["entropy"].rank, numbers["entropy"].n_heads) == (1, 8)
    assert numbers["score"].effect_size is None and numbers["score"].rank == 1


def test_a_head_card_has_the_claims_whose_numbers_are_of_that_head(client: TestClient) -> None:
    request = {"kind": "claims", "papers": ["clark2019"], "limit": 20}
    job = finished_job(client, client.post("/api/jobs", json=request).json()["id"], 300)
    assert job["state"] == "done", job
    records = client.get(f"/api/jobs/{job['id']}/result").json()["claims"]
    expected = {record["id"]: record for record in records if record.get("head")}
    assert expected, "some claims of the paper are of single heads"
    head = next(iter(expected.values()))["head"]
    claims = client.get(f"/api/heads/{head}").json()["claims"]
    assert {claim["id"] for claim in claims} == {name for name, record in expected.items() if record["head"] == head}
    assert all(claim["answer"] == expected[claim["id"]]["answer"] for claim in claims)
