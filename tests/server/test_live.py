from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

import bertology
from bertology.server.limits import LIMITS
from bertology.server.workbench import Workbench
from bertology.views.payload import QuantisedRows, dequantise
from serving import SENTENCE


def live(client: TestClient, **fields: Any) -> dict[str, Any]:
    response = client.post("/api/live", json={"text": SENTENCE, **fields})
    assert response.status_code == 200, response.text
    return response.json()


def weights(rows: dict[str, Any]) -> Any:
    return dequantise(QuantisedRows.model_validate(rows))


def recorded(site: str, text: str = SENTENCE) -> Any:
    return np.asarray(bertology.record("tiny", [text], [site])[site][0], np.float32)


def test_the_picture_is_the_attention_that_the_library_records(client: TestClient) -> None:
    answer = live(client)
    assert answer["layers"] == [1, 2] and answer["scope"] == "one text" and answer["run"]["layer_numbers"] == []
    np.testing.assert_allclose(weights(answer["run"]["quantities"][0]["weights"]), recorded("attention"), atol=1e-4)


def test_only_the_layers_asked_for_are_sent(client: TestClient) -> None:
    answer = live(client, layers=[2])
    assert answer["layers"] == answer["run"]["layer_numbers"] == [2], "the picture names its layers as the model does"
    np.testing.assert_allclose(
        weights(answer["run"]["quantities"][0]["weights"])[0], recorded("attention")[1], atol=1e-4
    )
    assert answer["run"]["query"] is None and answer["rollout"] is None and answer["strips"] is None
    assert live(client, layers=[])["run"]["quantities"][0]["weights"]["chunks"] == []


def test_queries_norms_gradients_and_rollout_are_sent_on_request(client: TestClient) -> None:
    answer = live(client, quantities=["attention", "norm", "gradient"], neurons=True, rollout=True, strips=True)
    assert [quantity["name"] for quantity in answer["run"]["quantities"]] == ["attention", "norm", "gradient"]
    np.testing.assert_allclose(weights(answer["run"]["query"]), recorded("query"), atol=1e-3)
    view = bertology.view("tiny", SENTENCE, quantities=("attention", "norm", "gradient"))
    for name in ("norm", "gradient"):
        sent = next(q for q in answer["run"]["quantities"] if q["name"] == name)
        np.testing.assert_allclose(weights(sent["weights"]), view.arrays()[name], atol=1e-4)
    attention = recorded("attention")
    mixed = 0.5 * attention.mean(1) + 0.5 * np.eye(attention.shape[-1])
    np.testing.assert_allclose(weights(answer["rollout"])[:, 0], [mixed[0], mixed[1] @ mixed[0]], atol=1e-4)
    np.testing.assert_array_equal(answer["strips"]["targets"], attention.argmax(-1))


def test_numbers_of_heads_are_those_of_the_attention(client: TestClient) -> None:
    measures = {measure["name"]: measure for measure in live(client)["measures"]}
    attention = recorded("attention").astype(np.float64)
    n = attention.shape[-1]
    entropy = -(attention * np.log(attention)).sum(-1).mean(-1)
    np.testing.assert_allclose(measures["entropy"]["values"], entropy, atol=1e-5)
    np.testing.assert_allclose(
        measures["attention to special tokens"]["values"], attention[..., [0, -1]].sum(-1).mean(-1), atol=1e-5
    )
    previous = np.array([np.diagonal(heads, -1, 1, 2).sum(-1) / (n - 1) for heads in attention])
    np.testing.assert_allclose(measures["attention to the previous token"]["values"], previous, atol=1e-5)
    assert measures["attention to special tokens"]["uniform"] == pytest.approx(2 / n)


def test_typed_masks_and_masked_tokens_give_the_same_predictions(client: TestClient) -> None:
    typed = live(client, text="The [MASK] man opened the door .")
    clicked = live(client, text="The old man opened the door .", edits=[{"position": 2, "action": "mask"}])
    assert typed["run"]["words"][1] == "[MASK]" and clicked["run"]["words"][1] == "old"
    assert typed["predictions"]["masked_tokens"] == clicked["predictions"]["masked_tokens"]
    assert len(typed["predictions"]["masked_tokens"][0]["candidates"]) == 10
    classes = typed["predictions"]["classes"][0]
    assert classes["task_head"] == "nsp" and sum(c["probability"] for c in classes["candidates"]) == pytest.approx(1)


def test_the_last_layer_reads_as_the_model_predicts(client: TestClient) -> None:
    answer = live(client, text="The [MASK] man opened the door .", layer_predictions=True)
    readings = answer["layer_predictions"]
    assert [reading["layer"] for reading in readings] == [0, 1, 2]
    last = readings[-1]["predictions"]["masked_tokens"][0]["candidates"]
    for read, predicted in zip(last, answer["predictions"]["masked_tokens"][0]["candidates"], strict=True):
        assert read["text"] == predicted["text"] and read["probability"] == pytest.approx(
            predicted["probability"], rel=1e-4
        )
    assert "last layer only" in answer["notes"][-1]


def test_an_example_brings_its_tree(client: TestClient, bench: Workbench) -> None:
    answer = live(client, text="", example=3)
    assert answer["run"]["words"] == list(bench.session.corpus("")[3].segments[0].words)
    assert answer["run"]["trees"][0]["name"] == "gold"


def test_a_newer_request_ends_an_older_one(client: TestClient) -> None:
    assert client.post("/api/live", json={"text": SENTENCE, "client": "page", "sequence": 7}).status_code == 200
    late = client.post("/api/live", json={"text": SENTENCE, "client": "page", "sequence": 6})
    assert late.status_code == 409 and "newer request" in late.json()["problem"]
    assert client.post("/api/live", json={"text": SENTENCE, "client": "other", "sequence": 1}).status_code == 200


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"text": " "}, "empty"),
        ({"text": "word " * 300}, "tokens"),
        ({"text": "a" * (LIMITS.text_characters + 1)}, "at most"),
        ({"layers": [3]}, "no layer 3"),
        ({"model": "gpt-9"}, "gpt-9"),
        ({"corpus": "/etc/passwd", "example": 0}, "corpus that this server may use"),
        ({"example": 10_000}, "no example"),
        ({"edits": [{"position": 0, "action": "mask"}]}, "special token"),
        ({"edits": [{"position": 99, "action": "delete"}]}, "no token at position 99"),
        ({"intervention": {"off": ["9-1"]}}, "no head"),
        ({"intervention": {"layers_off": [1, 2]}}, "All layers are off"),
        ({"nonsense": 1}, "nonsense"),
        ({"quantities": ["colour"]}, "quantities"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_paragraph(
    client: TestClient, fields: dict[str, Any], problem: str
) -> None:
    response = client.post("/api/live", json={"text": SENTENCE, **fields})
    assert 400 <= response.status_code < 500
    answer = response.json()
    assert problem in answer["paragraph"] and set(answer) == {"problem", "expected", "remedy", "paragraph"}
