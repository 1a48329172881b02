"""Analyses of recordings: attention of another program gives the numbers of the model, two recordings are compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.analyses.test_contract import ANALYSES, CORPORA, is_annotated, read_corpus

import bertology
from bertology.analyses import registry
from bertology.analyses.declaration import Analysis
from bertology.analyses.run import RunInputs, run_analysis
from bertology.corpus.read import load_corpus
from bertology.encoder.load import load
from bertology.errors import Refusal
from bertology.recording.manifest import open_recording
from bertology.recording.recorder import record
from bertology.recording.recording import Recording
from bertology.recording.sites import ReducedSite, resolve_sites
from bertology.results.result import Result
from bertology.results.shapes import UnmeasuredShape


def needs_only_attention(analysis: Analysis) -> bool:
    sites = resolve_sites(analysis.sites(analysis.resolve_options({})))
    from_attention = all(isinstance(s, ReducedSite) and not (s.needs_values or s.needs_gradient) for s in sites)
    return bool(sites) and from_attention and not {"encoder", "against"} & analysis.required_inputs


def numbers(result: Result) -> dict[str, Any]:
    assert not isinstance(result.data, UnmeasuredShape)
    return {name: estimates.value for name, estimates in result.data.measures.items()}


@pytest.mark.parametrize("analysis", [a for a in ANALYSES if needs_only_attention(a)], ids=lambda a: a.name)
def test_saved_attention_gives_the_numbers_of_the_model(analysis: Analysis, tmp_path: Path) -> None:
    corpus = next(c for c in map(read_corpus, CORPORA) if is_annotated(c, analysis))
    recording = record(load("tiny"), corpus, ["attention"])
    opened = open_recording(recording.save(tmp_path / "saved"))
    options = {"word_vectors": "static:tiny"} if "word_vectors" in analysis.options else {}
    direct = run_analysis(analysis, RunInputs(corpus, load("tiny"), random_baseline=False), options)
    imported = run_analysis(analysis, RunInputs(recording=opened), options)
    expected = numbers(direct)
    assert numbers(imported)
    for name, values in numbers(imported).items():
        np.testing.assert_allclose(values, expected[name], atol=2e-5, err_msg=name)


CORPUS = load_corpus("english", limit=20)
FIRST, SECOND, THIRD = "tiny", "random:tiny@1", "random:tiny"


def recorded(model: str, *sites: str) -> Recording:
    return record(load(model), CORPUS, list(sites or ("attention", "hidden")))


@pytest.mark.parametrize(
    "name", ["attention/model_similarity", "geometry/representation_similarity", "geometry/finetuning_change"]
)
def test_two_recordings_are_compared_like_two_models(name: str) -> None:
    analysis = registry.get(name)
    direct = run_analysis(analysis, RunInputs(CORPUS, load(FIRST), against=load(SECOND)))
    inputs = RunInputs(
        recording=recorded(FIRST), against_recording=recorded(SECOND), untrained_recording=recorded(THIRD)
    )
    result = run_analysis(analysis, inputs)
    assert not isinstance(result.data, UnmeasuredShape) and not isinstance(direct.data, UnmeasuredShape)
    for measure, values in numbers(direct).items():
        np.testing.assert_allclose(numbers(result)[measure], values, atol=2e-5, err_msg=measure)
    assert set(result.data.baselines) == set(direct.data.baselines)
    for baseline, measures in direct.data.baselines.items():
        for measure, estimates in measures.items():
            found = result.data.baselines[baseline][measure].value
            np.testing.assert_allclose(found, estimates.value, atol=2e-5, err_msg=f"{baseline}, {measure}")


def test_a_recording_compared_with_itself_is_equal_and_python_takes_two_recordings() -> None:
    one = recorded(FIRST, "attention")
    result = bertology.run("attention/model_similarity", recording=one, against=one)
    np.testing.assert_allclose(numbers(result)["cosine similarity"], 1, atol=1e-5)
    np.testing.assert_allclose(numbers(result)["Jensen-Shannon divergence"], 0, atol=1e-5)


def test_recordings_that_cannot_be_compared_are_refused() -> None:
    one = recorded(FIRST, "attention")
    with pytest.raises(Refusal, match="20 and 5 inputs"):
        RunInputs(recording=one, against_recording=one.first_examples(5))
    with pytest.raises(Refusal, match="differ in the words of input 1"):
        RunInputs(recording=one, against_recording=one.select_examples(range(19, -1, -1)))
    with pytest.raises(Refusal, match="no recording of the model"):
        RunInputs(CORPUS, load(FIRST), against_recording=one)
    with pytest.raises(Refusal, match=r"random:tiny@1 has no site .*--sites attention -o DIR"):
        bertology.run("attention/model_similarity", recording=one, against=recorded(SECOND, "hidden"))


def test_a_selection_of_examples_has_their_arrays_and_counts() -> None:
    whole = recorded(FIRST, "attention")
    part = whole.select_examples([7, 2])
    assert [example.id for example in part.corpus] == [CORPUS[7].id, CORPUS[2].id]
    assert [recorded_input.example_index for recorded_input in part.inputs] == [0, 1]
    np.testing.assert_array_equal(part["attention"][0], whole["attention"][7])
    assert part.counts["words"] == sum(len(CORPUS[index].segments[0]) for index in (7, 2))
    assert part.counts["inputs"] == 2 and whole.first_examples(50) is whole
