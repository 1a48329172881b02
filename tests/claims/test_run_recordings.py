"""Every claim on recordings: what a recording lacks makes a claim not applicable, with a reason and a remedy."""

from __future__ import annotations

from functools import cache

import pytest

from bertology.analyses import registry
from bertology.analyses.run import RunInputs
from bertology.claims.catalogue import all_claims
from bertology.claims.claim_results import ClaimResult
from bertology.claims.run import judge_claims
from bertology.corpus.read import load_corpus
from bertology.encoder.load import load
from bertology.recording.recorder import record
from bertology.recording.recording import Recording

CLAIMS = {claim.id: claim for claim in all_claims()}
STIMULI = "generated:agreement@7:400"


@cache
def recorded(model: str, *sites: str) -> Recording:
    return record(load(model), load_corpus("english", limit=12), list(sites))


def imported() -> Recording:
    """Attention as another program saves it, with words and annotations."""
    original = recorded("tiny", "attention")
    return Recording.from_arrays(
        [list(inputs.tokens.tokens) for inputs in original.inputs],
        attention=original["attention"],
        words=[inputs.text.segments for inputs in original.inputs],
    )


RECORDINGS = {
    "attention and hidden states": lambda: RunInputs(recording=recorded("tiny", "attention", "hidden")),
    "hidden states": lambda: RunInputs(recording=recorded("tiny", "hidden")),
    "reduced sites": lambda: RunInputs(recording=recorded("tiny", "attention.entropy", "attention.targets")),
    "arrays of another program": lambda: RunInputs(recording=imported()),
    "three recordings": lambda: RunInputs(
        recording=recorded("tiny", "attention", "hidden"),
        against_recording=recorded("random:tiny@1", "attention", "hidden"),
        untrained_recording=recorded("random:tiny", "attention", "hidden"),
    ),
    "a model to compare with": lambda: RunInputs(
        recording=recorded("tiny", "attention.entropy"),
        corpus=recorded("tiny", "attention.entropy").corpus,
        against=load("random:tiny@1"),
    ),
}


def judged(inputs: RunInputs, *ids: str) -> dict[str, ClaimResult]:
    claims = [CLAIMS[name] for name in ids] if ids else list(CLAIMS.values())
    return {result.claim.id: result for result in judge_claims(claims, inputs).results}


@pytest.mark.slow
@pytest.mark.parametrize("name", RECORDINGS)
def test_every_claim_has_a_verdict_on_a_recording(name: str) -> None:
    results = judged(RECORDINGS[name]())
    assert set(results) == set(CLAIMS)
    for result in results.values():
        assert bool(result.verdict.obstacle) == (result.verdict.outcome == "not applicable")
        assert (
            result.answer.startswith(("Yes", "No.", "Undecided, because ", "Not tested. ")) and "{" not in result.answer
        )
        assert result.as_record()["verdict"] == result.verdict.outcome


def test_a_claim_with_stimuli_of_its_own_names_the_commands_that_test_it() -> None:
    inputs = RunInputs(recording=recorded("tiny", "attention"))
    verdict = judged(inputs, "confusion-falls-with-depth")["confusion-falls-with-depth"].verdict
    assert verdict.outcome == "not applicable"
    assert f"its own stimuli ({STIMULI})" in verdict.obstacle
    assert f"bertology record MODEL {STIMULI} --sites attention,hidden -o DIR" in verdict.obstacle


def test_a_recording_of_the_stimuli_of_a_claim_is_used() -> None:
    stimuli = record(load("tiny"), load_corpus(STIMULI), ["attention"])
    result = judged(RunInputs(recording=stimuli), "confusion-falls-with-depth")["confusion-falls-with-depth"]
    assert result.results and result.verdict.outcome != "not applicable"


def test_missing_sites_are_named_with_the_command_that_records_them() -> None:
    results = judged(RunInputs(recording=recorded("tiny", "hidden")), "confident-heads", "sep-small-vectors")
    assert (
        "bertology record tiny english.conllu --sites attention -o DIR" in results["confident-heads"].verdict.obstacle
    )
    reason = results["sep-small-vectors"].verdict.obstacle
    assert "computed from value vectors" in reason and "--sites attention.norms -o DIR" in reason


def test_attention_of_another_program_says_that_only_the_model_gives_values_and_hidden_states() -> None:
    results = judged(RunInputs(recording=imported()), "sep-small-vectors", "anisotropy")
    assert "Only the model itself gives it: use --model" in results["sep-small-vectors"].verdict.obstacle
    assert "Add the array `hidden` to the .npz files" in results["anisotropy"].verdict.obstacle


def test_a_comparison_that_is_impossible_does_not_spoil_other_claims() -> None:
    """Without attention the comparison with the second model is refused; entropy was recorded."""
    registry.get("attention/entropy")  # declares the recorded site
    inputs = RECORDINGS["a model to compare with"]()
    results = judged(inputs, "last-layers-attend-otherwise", "first-layer-broad")
    assert results["last-layers-attend-otherwise"].verdict.outcome == "not applicable"
    assert results["first-layer-broad"].results


def test_an_untrained_model_that_was_not_recorded_is_named_with_the_command() -> None:
    recording = recorded("tiny", "attention", "hidden")
    result = judged(RunInputs(recording=recording), "anisotropy")["anisotropy"]
    assert result.verdict.label == "holds, untrained model not measured"
    command = "bertology record random:tiny english.conllu --sites attention,hidden -o DIR"
    assert f"record it with `{command}` and name it with --untrained-recording DIR" in result.answer
    untrained = recorded("random:tiny@1", "attention", "hidden")
    inputs = RunInputs(recording=recording, untrained_recording=untrained)
    assert "--untrained-recording" not in judged(inputs, "anisotropy")["anisotropy"].answer


def test_arrays_of_another_program_have_no_untrained_model_to_record() -> None:
    verdict = judged(RunInputs(recording=imported()), "diagonal-maps", "sep-above-uniform")
    remedies = [control.remedy for result in verdict.values() for control in result.verdict.controls]
    assert all("use --model and --corpus instead of --recording" in remedy for remedy in remedies)
