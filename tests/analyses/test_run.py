"""`analyses.run`: outcomes in request order, passes shared, changes named."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from bertology.analyses import registry
from bertology.analyses.declaration import MAX_SAMPLED_WORDS, Cost
from bertology.analyses.run import RunInputs, run_all, run_analysis, stored_result
from bertology.corpus.read import as_corpus
from bertology.encoder.attention_hook import Gates
from bertology.encoder.encoder import TaskEncoder
from bertology.encoder.load import load
from bertology.encoder.pruning import prune
from bertology.errors import Refusal
from bertology.progress import time_left
from bertology.results.result import Result


def test_outcomes_are_in_request_order_and_refusals_do_not_stop_the_others() -> None:
    names = ("attention/entropy", "heads/dependency", "attention/distance")
    inputs = RunInputs(as_corpus(["The cat sat.", "A dog ran."]), load("tiny"))
    report = run_all([(registry.get(name), {}) for name in names], inputs)
    first, refused, last = report.outcomes
    assert isinstance(first, Result) and first.analysis == names[0]
    assert isinstance(refused, Refusal) and "governors" in str(refused)
    assert isinstance(last, Result) and last.analysis == names[2]
    assert len(report.passes) == 2  # the model and the untrained model
    assert set(names) - {names[1]} <= set(report.elapsed)
    with pytest.raises(Refusal):
        report.results()


def test_the_cost_of_sampled_words_is_bounded() -> None:
    cost = Cost(1.0, seconds_per_word=0.1, seconds_per_sampled_word=1.0)
    assert cost.estimate(10) == 1.0 + 1.0 + 10.0
    n_words = MAX_SAMPLED_WORDS + 100
    assert cost.estimate(n_words) == pytest.approx(1.0 + 0.1 * n_words + MAX_SAMPLED_WORDS)


@pytest.mark.parametrize(
    ("elapsed", "done", "total", "text"),
    [
        (10.0, 0, 100, ""),
        (10.0, 1, 100, ""),
        (10.0, 50, 100, "about 10 s left"),
        (600.0, 25, 100, "about 30 min left"),
        (10.0, 100, 100, ""),
        (10.0, 0, 0, ""),
    ],
)
def test_the_time_left_is_reported_once_it_can_be_estimated(elapsed: float, done: int, total: int, text: str) -> None:
    assert time_left(elapsed, done, total) == text


def test_results_name_the_heads_that_were_changed() -> None:
    encoder, corpus = load("tiny"), as_corpus(["The cat sat.", "A dog ran."])
    assert isinstance(encoder, TaskEncoder)
    scale, uniform = torch.ones(encoder.layers, encoder.heads), torch.zeros(encoder.layers, encoder.heads).bool()
    scale[0, 1], scale[1, 0], uniform[1, 1] = 0.0, 0.5, True
    gated = encoder.with_gates(Gates(scale=scale, uniform=uniform))
    pruned = prune(encoder, scale.numpy() > 0)
    changes = {"heads set to zero": ["1-2"], "scaled heads": ["2-1"], "heads with uniform attention": ["2-2"]}
    for variant, name, expected in (
        (encoder, "attention/entropy", {}),
        (gated, "attention/entropy", changes),
        (pruned, "interventions/attacks", {"removed heads": ["1-2"]}),
    ):
        result = run_analysis(registry.get(name), RunInputs(corpus, variant))
        model = result.inputs["model"]["model"]
        assert model["changes"] == expected and model["fingerprint"] == variant.fingerprint
        assert all(f"{change}: {' '.join(heads)}" in result.describe_inputs()[0] for change, heads in expected.items())
    untrained = run_analysis(registry.get("attention/entropy"), RunInputs(corpus, encoder)).inputs["untrained"]
    assert untrained["model"]["changes"] == {"all weights": ["random"]}


def test_a_stored_result_is_found_by_its_content_and_nothing_is_computed(tmp_path: Path) -> None:
    encoder, corpus = load("tiny"), as_corpus(["The king saw the queen .", "A dog ran .", "It is late ."])
    inputs = RunInputs(corpus=corpus, encoder=encoder, store=tmp_path)
    analysis = registry.get("attention/confidence")
    assert stored_result(analysis, inputs) is None and not list(tmp_path.rglob("*.safetensors"))
    run_all([(analysis, {"seed": 1})], inputs)
    assert stored_result(analysis, inputs, {"seed": 1}) is None, "stored only with cache_results"
    computed = run_all([(analysis, {"seed": 1})], inputs, cache_results=True).results()[0]
    found = stored_result(analysis, inputs, {"seed": 1})
    assert found is not None and found.to_json() == computed.to_json()
    assert stored_result(analysis, inputs) is None
    assert stored_result(analysis, RunInputs(corpus=corpus[:2], encoder=encoder, store=tmp_path), {"seed": 1}) is None
    assert stored_result(analysis, RunInputs(corpus=corpus, encoder=encoder), {"seed": 1}) is None
