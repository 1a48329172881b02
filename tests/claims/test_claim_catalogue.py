"""The claims that ship with bertology: their analyses, options and measures exist, and every one gets a verdict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import tiny_models
from bertology.analyses import registry
from bertology.analyses.run import FOLDER, RunInputs
from bertology.citations import CITATIONS
from bertology.claims.claim import Claim, all_claims, read_claims
from bertology.claims.run import judge_claims
from bertology.corpus.corpus import corpus_from_texts
from bertology.corpus.read import load_corpus
from bertology.encoder.load import load
from bertology.recording.plan import RecordingConfig

CHEAP = {
    *(f"attention/{name}" for name in ("targets", "entropy", "word_patterns", "pattern_classes", "confidence")),
    *("attention/norms", "attention/mixing_ratio", "heads/dependency", "heads/antecedent_confusion"),
    *("geometry/contextuality", "geometry/phrase_clusters"),
}
"""Analyses of one model that take seconds on `tiny`."""
ALLOWED = ("the result has no", "could not be measured", "too few")


def test_every_claim_has_a_sentence_a_section_and_a_published_value() -> None:
    claims = all_claims()
    assert len(claims) >= 50
    for claim in claims:
        assert claim.statement.endswith(".") and claim.section and claim.published_value, claim.id
        assert claim.paper in CITATIONS


@pytest.mark.parametrize("claim", all_claims(), ids=lambda claim: claim.id)
def test_analyses_and_options_are_known(claim: Claim) -> None:
    for run in claim.all_runs.values():
        registry.get(run.analysis).resolve_options(dict(run.options))


def test_a_file_is_named_after_a_paper(tmp_path: Path) -> None:
    file = tmp_path / "nobody1900.toml"
    file.write_text("", "utf-8")
    with pytest.raises(ValueError, match="not named after a paper"):
        read_claims(file)


def test_every_claim_on_attention_gets_a_verdict_on_an_untrained_model_and_few_hold() -> None:
    """Most claims must not hold for an untrained model: a judge that accepts those accepts everything."""
    claims = [claim for claim in all_claims() if all(_cheap(run.analysis) for run in claim.all_runs.values())]
    inputs = RunInputs(corpus=load_corpus("english", limit=25), encoder=load("tiny"))
    results = judge_claims(claims, inputs).results
    assert [result.claim.id for result in results] == [claim.id for claim in claims]
    holding = [result.claim.id for result in results if result.verdict.outcome == "holds"]
    assert len(holding) <= len(claims) // 4, holding
    for result in results:
        if result.verdict.outcome == "not applicable":
            assert any(part in result.verdict.reason for part in ALLOWED), result


def _cheap(analysis: str) -> bool:
    return analysis in CHEAP


def test_cheap_analyses_exist() -> None:
    """A renamed analysis must not silently leave the tests above and below."""
    assert set(registry.names()) >= CHEAP


def test_claims_find_the_numbers_they_name() -> None:
    """A claim that names a measure, row or baseline its analysis does not have would never apply.

    Only numbers that depend on the annotations of the corpus may be missing.
    """
    claims = [claim for claim in all_claims() if all(_cheap(run.analysis) for run in claim.all_runs.values())]
    inputs = RunInputs(corpus=load_corpus("english", limit=25), encoder=load("tiny"))
    for result in judge_claims(claims, inputs).results:
        assert "the result has no" not in result.verdict.reason, result.claim.id


def test_findings_about_fine_tuned_models_are_asked_of_the_partner_or_not_at_all() -> None:
    test = {"kind": "greater", "left": {"measure": "entropy", "layers": [1, 12]}, "right": 0.0}
    told = {
        "id": "c",
        "statement": "f.",
        "section": "p",
        "published_value": "x",
        "analysis": "attention/entropy",
        "target": "against",
    }
    claim = Claim.model_validate({**told, "test": test})
    alone = RunInputs(corpus=load_corpus("english", limit=5), encoder=load("tiny"))
    [without] = judge_claims([claim], alone).results
    assert without.verdict.outcome == "not applicable"
    assert "--against" in without.verdict.reason
    [with_partner] = judge_claims([claim], replace(alone, against=load("mini-pairs"))).results
    assert "mini-pairs" in str(with_partner.results[0].inputs)


def test_results_are_kept_as_they_come_and_a_second_run_makes_none_again(tmp_path: Path) -> None:
    """Stopped in the middle, the finished analyses are there; the second run ends with the same verdicts."""
    wanted = ("attention/targets", "attention/entropy", "attention/confidence")
    claims = [claim for claim in all_claims() if all(run.analysis in wanted for run in claim.all_runs.values())]
    inputs = RunInputs(corpus=load_corpus("english", limit=8), encoder=load("tiny"), store=tmp_path)
    second = list(dict.fromkeys(run.analysis for claim in claims for run in claim.all_runs.values()))[1]

    def stopping(title: str) -> Callable[[int, int], None]:
        def move(done: int, total: int) -> None:
            if title == second:
                raise KeyboardInterrupt

        return move

    with pytest.raises(KeyboardInterrupt):
        judge_claims(claims, inputs, progress=stopping)
    [first] = (tmp_path / FOLDER).iterdir()
    made_at = first.stat().st_mtime_ns
    again = judge_claims(claims, inputs).results
    assert len(list((tmp_path / FOLDER).iterdir())) == len(wanted)
    assert first.stat().st_mtime_ns == made_at
    cached = judge_claims(claims, inputs)
    assert [r.verdict for r in cached.results] == [r.verdict for r in again] and cached.passes == ()
    unstored = judge_claims(claims, replace(inputs, store=None))
    assert [r.verdict for r in unstored.results] == [r.verdict for r in again]


def test_an_analysis_that_a_model_cannot_have_spoils_no_other() -> None:
    """A bare encoder has no loss, so no gradients; what shares a pass with gradients is measured all the same."""
    wanted = {"sep-gradient-vanishes", "next-token-head", "anisotropy"}
    claims = [claim for claim in all_claims() if claim.id in wanted]
    corpus = load_corpus("english", limit=30)
    inputs = RunInputs(corpus=corpus, encoder=tiny_models.encoder("bert"), config=RecordingConfig(overflow="skip"))
    report = judge_claims(claims, inputs)
    verdicts = {result.claim.id: result.verdict for result in report.results}
    assert verdicts["sep-gradient-vanishes"].outcome == "not applicable"
    assert "task head" in verdicts["sep-gradient-vanishes"].reason
    assert verdicts["next-token-head"].outcome != "not applicable"
    assert verdicts["anisotropy"].outcome != "not applicable"
    assert len(report.passes) == 2


def test_what_is_kept_for_one_partner_is_not_given_for_another(tmp_path: Path) -> None:
    claims = [claim for claim in all_claims() if claim.id == "top-layers-change-most"]
    encoder = load("tiny")
    inputs = RunInputs(corpus=load_corpus("english", limit=12), encoder=encoder, store=tmp_path)
    [same] = judge_claims(claims, replace(inputs, against=encoder)).results
    [other] = judge_claims(claims, replace(inputs, against=load("random:tiny@3"))).results
    assert same.verdict.reason != other.verdict.reason


def test_the_training_size_of_probes_can_be_set_for_all_claims() -> None:
    resized = {claim.id: claim.with_train_size(7) for claim in all_claims()}
    sizes = [run.options["train_size"] for run in resized["words-add-to-attention"].all_runs.values()]
    assert sizes == [7]
    assert resized["next-token-head"].all_runs == {c.id: c for c in all_claims()}["next-token-head"].all_runs


def test_elapsed_seconds_leave_out_cached_parts(tmp_path: Path) -> None:
    claims = [claim for claim in all_claims() if claim.id == "next-token-head"]
    inputs = RunInputs(corpus=load_corpus("english", limit=8), encoder=load("tiny"), store=tmp_path)
    elapsed = judge_claims(claims, inputs).elapsed
    assert set(elapsed) == {"tiny on english.conllu", "random:tiny on english.conllu", "attention/targets"}
    assert all(seconds > 0 for seconds in elapsed.values())
    assert judge_claims(claims, inputs).elapsed == {}


def test_each_claim_has_the_refusal_of_its_own_run() -> None:
    """One analysis with several options, each of which lacks something else, between two that can be run."""

    def claim(analysis: str, **options: str) -> Claim:
        test = {"kind": "between", "value": {"measure": "entropy"}, "low": 0, "high": 9}
        source = {"statement": "Something is so.", "section": "here", "published_value": "yes", "paper": "clark2019"}
        name = options.get("label", analysis)
        return Claim.model_validate({"id": name, "analysis": analysis, "options": options, "test": test, **source})

    labels = ("role", "coreference", "relation")
    claims = [claim("attention/entropy"), *(claim("probes/edge", label=label) for label in labels)]
    inputs = RunInputs(corpus_from_texts("A dog runs.", "A cat sits here."), load("tiny"))
    entropy, *others = judge_claims(claims, inputs).results
    assert entropy.results[0].analysis == "attention/entropy" and entropy.verdict.outcome == "holds"
    for label, result in zip(labels, others, strict=True):
        assert result.verdict.outcome == "not applicable" and f"--label {label} " in result.verdict.reason
