"""The claims that ship with bertology: their analyses, options and measures exist, and every one gets a verdict."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import tiny_models
from bertology.analyses import registry
from bertology.analyses.cache import FOLDER
from bertology.analyses.run import RunInputs
from bertology.citations import CITATIONS
from bertology.claims.catalogue import all_claims, claim_plugins, read_claims
from bertology.claims.claim import OWN_TOPIC, TOPICS, Claim
from bertology.claims.run import judge_claims
from bertology.corpus.read import as_corpus, load_corpus
from bertology.encoder.load import load
from bertology.errors import Refusal
from bertology.recording.plan import RecordingConfig

CHEAP = {
    *(f"attention/{name}" for name in ("targets", "entropy", "word_patterns", "pattern_classes", "confidence")),
    *("attention/norms", "attention/mixing_ratio", "heads/dependency", "heads/antecedent_confusion"),
    *("geometry/contextuality", "geometry/phrase_clusters"),
}
"""Analyses of one model that take seconds on `tiny`."""
MISSING_DATA = ("could not be measured", "too few")
"""Parts of the reasons for which a claim about a cheap analysis may not apply."""


def cheap_claims() -> list[Claim]:
    """The claims that need cheap analyses only."""
    return [claim for claim in all_claims() if all(run.analysis in CHEAP for run in claim.all_runs.values())]


def test_every_claim_has_a_sentence_a_section_and_a_published_value() -> None:
    claims = all_claims()
    assert len(claims) >= 50
    for claim in claims:
        assert claim.statement.endswith(".") and claim.section and claim.published_value, claim.id
        assert claim.paper in CITATIONS


@pytest.mark.parametrize("claim", all_claims(), ids=lambda claim: claim.id)
def test_analyses_and_options_of_a_claim_exist(claim: Claim) -> None:
    for run in claim.all_runs.values():
        registry.get(run.analysis).resolve_options(dict(run.options))


OWN_CLAIM = """
[[claim]]
id = "own-claim"
statement = "At least one head attends to the previous token."
section = "section 1"
published_value = "one head"
analysis = "attention/targets"
test = { kind = "any head", measure = "attention to previous token", threshold = 0.5 }
"""
CITATION = 'citation = "Author, Other & Third (2026). Title. Venue."\n'


def test_a_file_of_ones_own_names_its_paper(tmp_path: Path) -> None:
    file = tmp_path / "mine2026.toml"
    file.write_text(CITATION + OWN_CLAIM, "utf-8")
    (claim,) = read_claims(file)
    assert (claim.id, claim.paper, claim.short_reference) == ("own-claim", "mine2026", "Author et al. 2026")
    assert claim.reference == "Author, Other & Third (2026). Title. Venue."
    file.write_text(OWN_CLAIM, "utf-8")
    assert read_claims(file)[0].reference == read_claims(file)[0].short_reference == "mine2026"
    assert "own-claim" not in [claim.id for claim in all_claims()]


@pytest.mark.parametrize(
    ("claim_id", "problem"),
    [("own-claim", ""), ("next-token-head", "built-in claims have the ids next-token-head")],
)
def test_claims_of_a_plug_in_are_added_unless_an_id_is_taken(
    claim_id: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package, info = tmp_path / "plugged_in_claims", tmp_path / "plugged_in_claims-1.0.dist-info"
    for folder in (package, info):
        folder.mkdir()
    (package / "__init__.py").touch()
    (package / "mine2026.toml").write_text(CITATION + OWN_CLAIM.replace("own-claim", claim_id), "utf-8")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plugged-in-claims\nVersion: 1.0\n", "utf-8")
    (info / "entry_points.txt").write_text("[bertology.claims]\nmine2026 = plugged_in_claims\n", "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    claim_plugins.cache_clear()
    try:
        (plugin,) = (plugin for plugin in claim_plugins() if plugin.name == "mine2026")
    finally:
        sys.modules.pop("plugged_in_claims", None)
        claim_plugins.cache_clear()
    assert plugin.problem == problem
    if not problem:
        assert [(claim.id, claim.paper) for claim in plugin.value] == [(claim_id, "mine2026")]


def test_references_of_built_in_claims_are_those_of_the_papers() -> None:
    for claim in all_claims():
        assert claim.reference == CITATIONS[claim.paper] and not claim.citation


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "no claim"),
        ("claim = 3", "no claim"),
        ("claim = [3]", "no claim"),
        ("claim = [[]]", "no claim"),
        ("[[claims]]\nid = 'a'", "claims"),
        ("[[claim", "not TOML"),
        ("claim = " + "[" * 50_000, "not TOML: it is nested too deeply"),
        (OWN_CLAIM.replace("threshold = 0.5", "treshold = 0.5"), "own-claim is malformed: .*treshold"),
        (OWN_CLAIM.replace('section = "section 1"', ""), "section"),
        (OWN_CLAIM.replace('analysis = "attention/targets"', ""), "either `analysis` or `runs`"),
        (OWN_CLAIM + OWN_CLAIM, "Two claims have the id own-claim"),
        (OWN_CLAIM.replace("own-claim", "next-token-head"), "next-token-head"),
    ],
)
def test_mistakes_in_a_file_of_ones_own_are_refused(content: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(content, "utf-8")
    with pytest.raises(Refusal, match=message):
        read_claims(file)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="cannot be read"):
        read_claims(tmp_path / "absent.toml")


def test_every_claim_on_attention_gets_a_verdict_on_an_untrained_model_and_few_hold() -> None:
    """Most claims must not hold for an untrained model: a judge that accepts those accepts everything."""
    claims = cheap_claims()
    inputs = RunInputs(corpus=load_corpus("english", limit=25), encoder=load("tiny"))
    results = judge_claims(claims, inputs).results
    assert [result.claim.id for result in results] == [claim.id for claim in claims]
    holding = [result.claim.id for result in results if result.verdict.outcome == "holds"]
    assert len(holding) <= len(claims) // 4, holding
    for result in results:
        if result.verdict.outcome == "not applicable":
            assert any(reason in result.verdict.obstacle for reason in MISSING_DATA), result


def test_cheap_analyses_exist() -> None:
    """A renamed analysis must not silently leave these tests."""
    assert set(registry.names()) >= CHEAP


def test_claims_find_the_numbers_they_name() -> None:
    """A claim that names a measure, row or baseline its analysis does not have would never apply.

    Only numbers that depend on the annotations of the corpus may be missing.
    """
    claims = cheap_claims()
    inputs = RunInputs(corpus=load_corpus("english", limit=25), encoder=load("tiny"))
    for result in judge_claims(claims, inputs).results:
        assert "the result has no" not in result.verdict.obstacle, result.claim.id


def test_claims_about_fine_tuned_models_are_tested_on_the_second_model_only() -> None:
    test = {"kind": "greater", "left": {"measure": "entropy", "layers": [1, 12]}, "right": 0.0}
    fields = {
        "id": "c",
        "statement": "f.",
        "section": "p",
        "published_value": "x",
        "analysis": "attention/entropy",
        "target": "against",
    }
    claim = Claim.model_validate({**fields, "test": test})
    inputs = RunInputs(corpus=load_corpus("english", limit=5), encoder=load("tiny"))
    [without] = judge_claims([claim], inputs).results
    assert without.verdict.outcome == "not applicable"
    assert "--against" in without.verdict.obstacle
    [with_second_model] = judge_claims([claim], replace(inputs, against=load("mini-pairs"))).results
    assert "mini-pairs" in str(with_second_model.results[0].inputs)


def test_finished_results_are_stored_and_not_computed_again(tmp_path: Path) -> None:
    """After an interruption the finished analyses are in the store; the second run ends with the same verdicts."""
    analyses = ("attention/targets", "attention/entropy", "attention/confidence")
    claims = [claim for claim in all_claims() if all(run.analysis in analyses for run in claim.all_runs.values())]
    inputs = RunInputs(corpus=load_corpus("english", limit=8), encoder=load("tiny"), store=tmp_path)
    second_analysis = list(dict.fromkeys(run.analysis for claim in claims for run in claim.all_runs.values()))[1]

    def interrupting_progress(title: str) -> Callable[[int, int], None]:
        def update(done: int, total: int) -> None:
            if title == second_analysis:
                raise KeyboardInterrupt

        return update

    with pytest.raises(KeyboardInterrupt):
        judge_claims(claims, inputs, progress=interrupting_progress)
    [stored] = (tmp_path / FOLDER).glob("*.json")
    written_at = stored.stat().st_mtime_ns
    resumed = judge_claims(claims, inputs).results
    assert len(list((tmp_path / FOLDER).glob("*.json"))) == len(analyses)
    assert stored.stat().st_mtime_ns == written_at
    cached = judge_claims(claims, inputs)
    assert [r.verdict for r in cached.results] == [r.verdict for r in resumed] and cached.passes == ()
    unstored = judge_claims(claims, replace(inputs, store=None))
    assert [r.verdict for r in unstored.results] == [r.verdict for r in resumed]


def test_a_refused_analysis_does_not_affect_the_others() -> None:
    """Without a task head there are no gradients; other sites of the same pass are still measured."""
    claim_ids = {"sep-gradient-vanishes", "next-token-head", "anisotropy"}
    claims = [claim for claim in all_claims() if claim.id in claim_ids]
    corpus = load_corpus("english", limit=30)
    inputs = RunInputs(corpus=corpus, encoder=tiny_models.encoder("bert"), config=RecordingConfig(overflow="skip"))
    report = judge_claims(claims, inputs)
    verdicts = {result.claim.id: result.verdict for result in report.results}
    assert verdicts["sep-gradient-vanishes"].outcome == "not applicable"
    assert "task head" in verdicts["sep-gradient-vanishes"].obstacle
    assert verdicts["next-token-head"].outcome != "not applicable"
    assert verdicts["anisotropy"].outcome != "not applicable"
    assert len(report.passes) == 2


def test_stored_results_depend_on_the_second_model(tmp_path: Path) -> None:
    claims = [claim for claim in all_claims() if claim.id == "top-layers-change-most"]
    encoder = load("tiny")
    inputs = RunInputs(corpus=load_corpus("english", limit=12), encoder=encoder, store=tmp_path)
    [same] = judge_claims(claims, replace(inputs, against=encoder)).results
    [different] = judge_claims(claims, replace(inputs, against=load("random:tiny@3"))).results
    assert same.verdict.obstacle != different.verdict.obstacle


def test_the_training_size_of_probes_can_be_set_for_all_claims() -> None:
    resized = {claim.id: claim.with_train_size(7) for claim in all_claims()}
    sizes = [run.options["train_size"] for run in resized["words-add-to-attention"].all_runs.values()]
    assert sizes == [7]
    assert resized["next-token-head"].all_runs == {c.id: c for c in all_claims()}["next-token-head"].all_runs


def test_elapsed_time_excludes_stored_results(tmp_path: Path) -> None:
    claims = [claim for claim in all_claims() if claim.id == "next-token-head"]
    inputs = RunInputs(corpus=load_corpus("english", limit=8), encoder=load("tiny"), store=tmp_path)
    elapsed = judge_claims(claims, inputs).elapsed
    assert set(elapsed) == {"tiny on english.conllu", "random:tiny on english.conllu", "attention/targets"}
    assert all(seconds > 0 for seconds in elapsed.values())
    assert judge_claims(claims, inputs).elapsed == {}


def test_each_claim_gets_the_refusal_of_its_run() -> None:
    """The runs of one analysis differ in an option, and the corpus lacks another annotation for each."""

    def claim(analysis: str, **options: str) -> Claim:
        test = {"kind": "between", "value": {"measure": "entropy"}, "low": 0, "high": 9}
        fields = {"statement": "Attention is broad.", "section": "1", "published_value": "yes", "paper": "clark2019"}
        name = options.get("label", analysis)
        return Claim.model_validate({"id": name, "analysis": analysis, "options": options, "test": test, **fields})

    labels = ("role", "coreference", "relation")
    claims = [claim("attention/entropy"), *(claim("probes/edge", label=label) for label in labels)]
    inputs = RunInputs(as_corpus(["A dog runs.", "A cat sits here."] * 10), load("tiny"))
    entropy, *edge_results = judge_claims(claims, inputs).results
    assert entropy.results[0].analysis == "attention/entropy" and entropy.verdict.outcome == "holds"
    for label, result in zip(labels, edge_results, strict=True):
        assert result.verdict.outcome == "not applicable" and f"--label {label} " in result.verdict.obstacle


MAX_HEADLINE = 62
"""A headline fits on two lines of a card."""


@pytest.mark.parametrize("claim", all_claims(), ids=lambda claim: claim.id)
def test_every_claim_has_a_topic_and_short_headlines(claim: Claim) -> None:
    assert claim.topic in TOPICS and claim.topic != OWN_TOPIC
    for headline in (claim.headline, claim.denial):
        assert headline.endswith(".") and len(headline) <= MAX_HEADLINE, headline
    assert claim.headline != claim.denial


def test_no_two_claims_share_a_headline() -> None:
    headlines = [headline for claim in all_claims() for headline in (claim.headline, claim.denial)]
    assert len(set(headlines)) == len(headlines)


def test_a_claim_without_topic_and_headline_has_its_statement(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(OWN_CLAIM, "utf-8")
    (claim,) = read_claims(file)
    statement = "At least one head attends to the previous token."
    assert (claim.topic, claim.headline_for("holds")) == (OWN_TOPIC, statement)
    assert claim.headline_for("fails") == f"Not so: {statement}"
    assert claim.headline_for("inconclusive") == statement.replace(".", "?")
