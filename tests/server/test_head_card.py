from __future__ import annotations

from starlette.testclient import TestClient

from serving import finished_job


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
