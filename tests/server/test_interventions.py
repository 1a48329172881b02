from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from starlette.testclient import TestClient

import bertology
from bertology.encoder.attention_hook import Gates
from bertology.server.interventions import InterventionRequest, corpus_mean_outputs, random_control
from bertology.server.workbench import Workbench
from bertology.views.payload import QuantisedRows, dequantise
from serving import SENTENCE

MASKED = "The old man [MASK] the door ."


def top_probabilities(encoder: Any, text: str, position: int) -> torch.Tensor:
    with torch.no_grad():
        return encoder.forward(encoder.batch(text)).logits["mlm"][0, position].softmax(-1)


@pytest.mark.parametrize(
    ("changes", "calls"),
    [
        ({"off": ["1-2", "2-1"]}, {"without": ("1-2", "2-1")}),
        ({"uniform": ["2-3"]}, {"uniform": ("2-3",)}),
        ({"keep": ["1-1", "2-2"]}, {"keeping": ("1-1", "2-2")}),
        ({"layers_off": [1]}, {"with_layers": (2,)}),
        ({"off": ["2-1"], "layers_off": [1]}, {"without": ("2-1",), "with_layers": (2,)}),
    ],
)
def test_an_intervention_is_that_of_the_library(
    client: TestClient, changes: dict[str, Any], calls: dict[str, Any]
) -> None:
    encoder: Any = bertology.load("tiny")
    for method, arguments in calls.items():
        encoder = getattr(encoder, method)(*arguments)
    answer = client.post("/api/live", json={"text": MASKED, "intervention": changes}).json()
    expected = top_probabilities(encoder, MASKED, 4)
    strings = encoder.tokeniser.token_strings
    for candidate in answer["predictions"]["masked_tokens"][0]["candidates"]:
        assert candidate["probability"] == pytest.approx(float(expected[strings.index(candidate["text"])]), rel=1e-4)
    site = np.asarray(bertology.record(encoder, [MASKED], ["attention"])["attention"][0])
    sent = dequantise(QuantisedRows.model_validate(answer["run"]["quantities"][0]["weights"]))
    np.testing.assert_allclose(sent, site, atol=1e-4)
    assert answer["changes"]


def test_a_mean_is_the_mean_over_the_corpus(client: TestClient, bench: Workbench) -> None:
    answer = client.post("/api/live", json={"text": MASKED, "intervention": {"mean": ["1-3"]}}).json()
    encoder: Any = bertology.load("tiny")
    means = corpus_mean_outputs(encoder, bench.session.corpus(""))
    scale, offset = torch.ones(2, 4), torch.zeros_like(means)
    scale[0, 2], offset[0, 2] = 0.0, means[0, 2]
    expected = top_probabilities(encoder.with_gates(Gates(scale=scale, offset=offset)), MASKED, 4)
    first = answer["predictions"]["masked_tokens"][0]["candidates"][0]
    index = encoder.tokeniser.token_strings.index(first["text"])
    assert first["probability"] == pytest.approx(float(expected[index]), rel=1e-4)


def test_before_and_after_stand_beside_a_random_head(client: TestClient) -> None:
    request = {"text": MASKED, "intervention": {"off": ["2-2"]}, "control_seed": 3}
    answer = client.post("/api/intervene", json=request).json()
    before, after = (
        {c["text"]: c["probability"] for c in answer[w]["masked_tokens"][0]["candidates"]} for w in ("before", "after")
    )
    assert set(before) <= set(after) and before != after
    (control,) = answer["control_intervention"]["off"]
    assert control != "2-2" and control.startswith("2-")
    plain = client.post("/api/live", json={"text": MASKED}).json()
    assert plain["predictions"] == answer["before"]
    controlled = client.post("/api/live", json={"text": MASKED, "intervention": {"off": [control]}}).json()
    assert (
        controlled["predictions"]["masked_tokens"][0]["candidates"][0]
        in answer["control"]["masked_tokens"][0]["candidates"]
    )
    job = answer["corpus_job"]
    assert job["analysis"] == "interventions/head_ablation" and job["options"] == {
        "ablation": "zero",
        "head_sets": "2-2",
    }


def test_an_empty_intervention_is_refused(client: TestClient) -> None:
    assert client.post("/api/intervene", json={"text": SENTENCE}).status_code == 422


def test_a_control_never_has_a_changed_head_and_may_be_impossible() -> None:
    encoder: Any = bertology.load("tiny")
    for seed in range(20):
        control = random_control(encoder, InterventionRequest(off=["1-1"], uniform=["1-2", "2-1"]), seed)
        assert control is not None
        assert not {"1-1", "1-2", "2-1"} & {*control.off, *control.uniform}
        assert [head[0] for head in control.uniform] == ["1", "2"] and control.off[0][0] == "1"
    assert random_control(encoder, InterventionRequest(off=[f"1-{head}" for head in range(1, 5)]), 0) is None
    assert random_control(encoder, InterventionRequest(layers_off=[1]), 0) == InterventionRequest(layers_off=[2])
