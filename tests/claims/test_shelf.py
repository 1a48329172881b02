"""The claims that come with bertology can be asked: their analyses, options and measures are there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import models
from bertology.analyses import registry
from bertology.analyses.run import Subject
from bertology.citations import CITATIONS
from bertology.claims.claim import Claim
from bertology.claims.examine import examine
from bertology.claims.shelf import all_claims, read_claims
from bertology.corpus.builtin import corpus_named
from bertology.corpus.corpus import read_text
from bertology.encoder.load import load
from bertology.measures.work import FOLDER
from bertology.recording.policy import Policy

ALLOWED = ("not measured here", "could not be measured", "too few")


def test_there_are_many_and_each_is_told_in_full() -> None:
    claims = all_claims()
    assert len(claims) >= 50
    for claim in claims:
        assert claim.finding.endswith(".") and claim.place and claim.published, claim.id
        assert claim.paper in CITATIONS


@pytest.mark.parametrize("claim", all_claims(), ids=lambda claim: claim.id)
def test_analyses_and_options_are_known(claim: Claim) -> None:
    for run in claim.measured_by.values():
        registry.get(run.analysis).settled(dict(run.options))


def test_a_file_is_named_after_a_paper(tmp_path: Path) -> None:
    file = tmp_path / "nobody1900.toml"
    file.write_text("", "utf-8")
    with pytest.raises(ValueError, match="no paper"):
        read_claims(file)


def test_every_claim_on_attention_gets_a_verdict_on_an_untrained_model_and_few_hold() -> None:
    """Most findings must not hold for random weights: a judge that says yes to those says yes to everything."""
    claims = [claim for claim in all_claims() if all(_cheap(run.analysis) for run in claim.measured_by.values())]
    findings = examine(claims, Subject(corpus=corpus_named("english", limit=25), encoder=load("tiny")))
    assert [finding.claim.id for finding in findings] == [claim.id for claim in claims]
    holding = [finding.claim.id for finding in findings if finding.verdict.outcome == "holds"]
    assert len(holding) <= len(claims) // 4, holding
    for finding in findings:
        if finding.verdict.outcome == "not applicable":
            assert any(part in finding.verdict.why for part in ALLOWED), finding


def _cheap(analysis: str) -> bool:
    return analysis in {f"attention/{name}" for name in ("targets", "entropy", "patterns", "kovaleva", "confidence")}


def test_findings_about_fine_tuned_models_are_asked_of_the_partner_or_not_at_all() -> None:
    test = {"kind": "greater", "this": {"measure": "all", "layers": [1, 12]}, "than": 0.0}
    told = {
        "id": "c",
        "finding": "f.",
        "place": "p",
        "published": "x",
        "analysis": "attention/entropy",
        "of": "against",
    }
    claim = Claim.model_validate({**told, "test": test})
    alone = Subject(corpus=corpus_named("english", limit=5), encoder=load("tiny"))
    [without] = examine([claim], alone)
    assert without.verdict.outcome == "not applicable"
    assert "--against" in without.verdict.why
    [with_partner] = examine([claim], replace(alone, against=load("mini-pairs")))
    assert "mini-pairs" in str(with_partner.results[0].inputs)


def test_results_are_kept_as_they_come_and_a_second_run_makes_none_again(tmp_path: Path) -> None:
    """Stopped in the middle, the finished analyses are there; the second run ends with the same verdicts."""
    wanted = ("attention/targets", "attention/entropy", "attention/confidence")
    claims = [claim for claim in all_claims() if all(run.analysis in wanted for run in claim.measured_by.values())]
    subject = Subject(corpus=corpus_named("english", limit=8), encoder=load("tiny"), store=tmp_path)
    second = list(dict.fromkeys(run.analysis for claim in claims for run in claim.measured_by.values()))[1]

    def stopping(title: str) -> Callable[[int, int], None]:
        def move(done: int, total: int) -> None:
            if title == second:
                raise KeyboardInterrupt

        return move

    with pytest.raises(KeyboardInterrupt):
        examine(claims, subject, progress=stopping)
    [first] = (tmp_path / FOLDER).iterdir()
    made_at = first.stat().st_mtime_ns
    again = examine(claims, subject)
    assert len(list((tmp_path / FOLDER).iterdir())) == len(wanted)
    assert first.stat().st_mtime_ns == made_at
    passes: list[str] = []
    assert [f.verdict for f in examine(claims, subject, passes=passes)] == [f.verdict for f in again]
    assert passes == []
    assert [f.verdict for f in examine(claims, replace(subject, store=None))] == [f.verdict for f in again]


def test_an_analysis_that_a_model_cannot_have_spoils_no_other() -> None:
    """A bare encoder has no loss, so no gradients; what shares a pass with gradients is measured all the same."""
    wanted = {"sep-gradient-vanishes", "next-token-head", "anisotropy"}
    claims = [claim for claim in all_claims() if claim.id in wanted]
    passes: list[str] = []
    corpus = corpus_named("english", limit=30)
    subject = Subject(corpus=corpus, encoder=models.encoder("bert"), policy=Policy(long="skip"))
    found = {f.claim.id: f.verdict for f in examine(claims, subject, passes=passes)}
    assert found["sep-gradient-vanishes"].outcome == "not applicable"
    assert "no head" in found["sep-gradient-vanishes"].why
    assert found["next-token-head"].outcome != "not applicable"
    assert found["anisotropy"].outcome != "not applicable"
    assert len(passes) == 2


def test_what_is_kept_for_one_partner_is_not_given_for_another(tmp_path: Path) -> None:
    claims = [claim for claim in all_claims() if claim.id == "top-layers-change-most"]
    encoder = load("tiny")
    subject = Subject(corpus=corpus_named("english", limit=12), encoder=encoder, store=tmp_path)
    [same] = examine(claims, replace(subject, against=encoder))
    [other] = examine(claims, replace(subject, against=load("random:tiny@3")))
    assert same.verdict.why != other.verdict.why


def test_how_much_probes_train_on_can_be_said_for_all_of_them() -> None:
    every = {claim.id: claim.learning_from(7) for claim in all_claims()}
    said = [run.options["train_limit"] for run in every["words-add-to-attention"].measured_by.values()]
    assert said == [7]
    assert every["next-token-head"].measured_by == {c.id: c for c in all_claims()}["next-token-head"].measured_by


def test_how_long_each_part_took_is_told_unless_it_was_there_from_before(tmp_path: Path) -> None:
    claims = [claim for claim in all_claims() if claim.id == "next-token-head"]
    subject = Subject(corpus=corpus_named("english", limit=8), encoder=load("tiny"), store=tmp_path)
    seconds: dict[str, float] = {}
    examine(claims, subject, seconds=seconds)
    assert set(seconds) == {"tiny over english.conllu", "random:tiny over english.conllu", "attention/targets"}
    assert all(took > 0 for took in seconds.values())
    again: dict[str, float] = {}
    examine(claims, subject, seconds=again)
    assert again == {}


def test_each_claim_is_told_the_reason_of_its_own_run() -> None:
    """One analysis with several options, each of which lacks something else, between two that can be run."""

    def claim(analysis: str, **options: str) -> Claim:
        test = {"kind": "between", "this": {"measure": "all"}, "low": 0, "high": 9}
        about = {"finding": "Something is so.", "place": "here", "published": "yes", "paper": "clark2019"}
        name = options.get("task", analysis)
        return Claim.model_validate({"id": name, "analysis": analysis, "options": options, "test": test, **about})

    tasks = ("role", "coreference", "relation")
    asked = [claim("attention/entropy"), *(claim("probes/edge", task=task) for task in tasks)]
    subject = Subject(read_text("A dog runs.", "A cat sits here."), load("tiny"))
    entropy, *others = examine(asked, subject)
    assert entropy.results[0].analysis == "attention/entropy" and entropy.verdict.outcome == "holds"
    for task, finding in zip(tasks, others, strict=True):
        assert finding.verdict.outcome == "not applicable" and f"--task {task} " in finding.verdict.why
