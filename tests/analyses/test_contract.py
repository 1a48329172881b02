"""The contract that every registered analysis fulfils."""

from __future__ import annotations

import csv
import io
import json
import re
from contextlib import redirect_stdout
from dataclasses import replace
from functools import cache
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import planted
import planted_senses
from bertology.analyses import registry
from bertology.analyses.declaration import REPORT_SECTIONS, Analysis
from bertology.analyses.run import RunInputs, run_all, run_analysis
from bertology.citations import CITATIONS
from bertology.cli.terminal import print_result
from bertology.corpus.corpus import Corpus
from bertology.corpus.read import as_corpus, load_corpus
from bertology.corpus.sentence import ANNOTATIONS
from bertology.encoder.encoder import Encoder, TaskEncoder
from bertology.encoder.layer_variants import LayerVariant
from bertology.encoder.load import load
from bertology.encoder.task_heads import add_task_head
from bertology.errors import Refusal
from bertology.recording.plan import RecordingConfig, default_tokens_per_batch
from bertology.results.result import Result
from bertology.results.shapes import Curve, HeadGrid, LayerCurve, Matrix, Table
from bertology.views.report.content import AnalysisSection, ReportContent, ReportSubject
from bertology.views.report.page import report_page

MeasuredShapes = HeadGrid | LayerCurve | Curve | Matrix | Table
ANALYSES = registry.load_all()

every_analysis = pytest.mark.parametrize("analysis", ANALYSES, ids=lambda a: a.name, scope="module")
"""With the scope of the module all tests of an analysis follow each other, so that they share its `result`."""

CORPORA = (
    "english",
    "generated:reflexives",
    "english+roles",
    "generated:minimal_pairs",
    "tasks:bigram_shift:english",
    "english+questions",
)
"""An analysis without a `test_corpus` runs on the first of these that is annotated for it."""


OPTIONS: dict[str, dict[str, Any]] = {
    "interventions/head_gates": {"steps": 12},
    "interventions/layer_freezing": {"epochs": 1},
    "interventions/unanswerable_training": {"epochs": 1, "corruptions": "P-Shuffle,PQ-Remove"},
}
"""Options other than the defaults: less is trained, which changes no property tested here."""
N_QUESTIONS = 12


@cache
def read_corpus(name: str) -> Corpus:
    """A corpus by name; `+senses`, `+roles` and `+questions` plant annotations."""
    base, _, planted_annotation = name.partition("+")
    if planted_annotation == "senses":
        return planted_senses.sentences_with(load_corpus(base), "bank", "match")
    corpus = load_corpus(base, limit=40)
    if planted_annotation == "questions":
        return planted.question_corpus(corpus[: N_QUESTIONS + 1])
    return corpus.map_sentences(planted.with_roles) if planted_annotation else corpus


@cache
def tiny(labels: tuple[str, ...] = ()) -> Encoder:
    base = load("tiny")
    assert isinstance(base, TaskEncoder)
    return add_task_head(base, "label", labels, variant=LayerVariant(), seed=0) if labels else base


def is_annotated(corpus: Corpus, analysis: Analysis) -> bool:
    return all(corpus.annotations[annotation] for annotation in analysis.annotations)


def corpus_of(analysis: Analysis) -> Corpus:
    if analysis.test_corpus is not None:
        return read_corpus(analysis.test_corpus)
    return next(corpus for corpus in map(read_corpus, CORPORA) if is_annotated(corpus, analysis))


def encoder_of(analysis: Analysis) -> Encoder:
    if analysis.needs_task_head is None:
        return tiny()
    return tiny(tuple(sorted({example.label for example in corpus_of(analysis) if example.label is not None})))


@pytest.fixture
def corpus(analysis: Analysis) -> Corpus:
    return corpus_of(analysis)


@pytest.fixture
def encoder(analysis: Analysis) -> Encoder:
    return encoder_of(analysis)


@pytest.fixture
def result(analysis: Analysis) -> Result:
    return default_result(analysis.name)


def run_tiny(analysis: Analysis, encoder: Encoder, corpus: Corpus, **config: object) -> Result:
    against = load("random:tiny@1") if "against" in analysis.inputs else None
    recording_config = RecordingConfig(**config)  # type: ignore[arg-type]  # any field
    inputs = RunInputs(corpus, encoder, against=against, config=recording_config)
    return run_analysis(analysis, inputs, OPTIONS.get(analysis.name))


@cache
def default_result(name: str) -> Result:
    """The result on the default batches, computed once for all tests that only look at it."""
    analysis = registry.get(name)
    return run_tiny(analysis, encoder_of(analysis), corpus_of(analysis))


def values_by_measure(result: Result) -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float64]]]:
    assert isinstance(result.data, MeasuredShapes)
    return {name: estimates.value for name, estimates in result.data.measures.items()}


NOT_RESAMPLED_WITH_THE_MODEL = {
    ("attention/head_clusters", "shuffled layers"): "its interval is over permutations",
    ("heads/relation_probe", "control task"): "it has no F1 of single relations",
}
"""Baselines whose difference from the model is not paired, and why."""


@every_analysis
def test_a_baseline_is_resampled_with_the_model(analysis: Analysis, result: Result) -> None:
    """Else models that are compared with such a baseline cannot be compared sentence by sentence."""
    if not isinstance(result.data, MeasuredShapes):
        pytest.skip("no baselines")
    kept = set(result.data.kept_resamples)
    lost = {
        name
        for name, measures in result.data.baselines.items()
        for measure, estimates in measures.items()
        if estimates.interval == "bootstrap" and np.isfinite(estimates.low).any()
        if ("model", measure) in kept and (name, measure) not in kept
    }
    assert lost == {baseline for name, baseline in NOT_RESAMPLED_WITH_THE_MODEL if name == analysis.name}


@every_analysis
def test_the_declaration_is_complete(analysis: Analysis) -> None:
    assert analysis.question.endswith("?")
    assert analysis.special_tokens.startswith("Special tokens: ")
    assert len(analysis.description.splitlines()[0]) > 30
    assert set(analysis.citations) <= set(CITATIONS)
    assert set(analysis.annotations) <= {*ANNOTATIONS, "marked_words", "minimal pairs"}
    assert all(option.description for option in analysis.options.values())
    assert analysis.report_section in REPORT_SECTIONS


@every_analysis
def test_same_seed_same_result(analysis: Analysis, encoder: Encoder, corpus: Corpus, result: Result) -> None:
    assert run_tiny(analysis, encoder, corpus).to_json() == result.to_json()
    default_view = "show" in analysis.options and analysis.options["show"].default
    has_answers = analysis.answers if isinstance(analysis.answers, bool) else default_view in analysis.answers
    assert bool(result.answers()) == has_answers
    json.dumps(result.answers(), allow_nan=False)


@every_analysis
def test_batches_change_nothing(analysis: Analysis, encoder: Encoder, corpus: Corpus, result: Result) -> None:
    assert default_tokens_per_batch(encoder.device) > 1000
    small = values_by_measure(run_tiny(analysis, encoder, corpus, tokens_per_batch=40))
    for name, values in values_by_measure(result).items():
        np.testing.assert_allclose(values, small[name], atol=2e-5, err_msg=name)


@every_analysis
def test_sentence_order_changes_nothing(analysis: Analysis, encoder: Encoder, corpus: Corpus, result: Result) -> None:
    reversed_corpus = replace(corpus, examples=corpus.examples[::-1])
    reversed_values = values_by_measure(run_tiny(analysis, encoder, reversed_corpus))
    for name, values in values_by_measure(result).items():
        np.testing.assert_allclose(values, reversed_values[name], atol=2e-5, err_msg=name)


@every_analysis
@pytest.mark.parametrize(
    "texts",
    [("Yes",), ("...", "?!"), ("word " * 600,), ("", "one more"), (("A pair.", "Of texts."), "and a sentence")],
    ids=["one word", "punctuation only", "longest", "empty", "pair and single"],
)
def test_odd_input_gives_numbers_or_a_refusal(analysis: Analysis, encoder: Encoder, texts: tuple[str, ...]) -> None:
    try:
        result = run_tiny(analysis, encoder, planted.make_corpus(*texts), overflow="truncate")
    except Refusal as refusal:
        assert str(refusal)
        return
    assert isinstance(result.data, MeasuredShapes)
    for name, estimates in result.data.measures.items():
        measured = estimates.n > 0
        assert np.isfinite(estimates.value[measured]).all(), name
        assert np.isnan(estimates.value[~measured]).all(), name
    json.dumps(result.to_json(), allow_nan=False)


@every_analysis
def test_missing_annotation_is_refused(analysis: Analysis, encoder: Encoder) -> None:
    if not analysis.annotations:
        pytest.skip(f"{analysis.name} needs no annotation")
    with pytest.raises(Refusal, match=analysis.annotations[0]):
        run_tiny(analysis, encoder, as_corpus(["No annotation here."]))


@every_analysis
def test_every_measure_has_a_baseline_an_interval_and_a_unit(analysis: Analysis, result: Result) -> None:
    if isinstance(result.data, MeasuredShapes):
        assert result.n == max(estimates.n.max() for estimates in result.data.measures.values()) > 0
        for name, estimates in result.data.measures.items():
            assert any(name in baseline for baseline in result.data.baselines.values()), name
            has_interval = estimates.n > 1
            assert (estimates.low[has_interval] <= estimates.value[has_interval] + 1e-9).all(), name
            assert (estimates.high[has_interval] >= estimates.value[has_interval] - 1e-9).all(), name
            assert result.data.units.get(name), f"{name} has no unit"
    assert result.provenance["versions"]["bertology"]
    assert result.provenance["special_tokens"] == analysis.special_tokens


@every_analysis
def test_a_proportion_on_which_all_cases_agree_has_an_interval(analysis: Analysis, result: Result) -> None:
    """7 of 7 is not 1 without uncertainty: resampling cases that agree shows none, an exact interval does."""
    data = result.data
    if isinstance(data, MeasuredShapes):
        for series, measures in {"model": data.measures, **data.baselines}.items():
            for name, estimates in measures.items():
                if estimates.interval in ("bootstrap", "t", "simultaneous") and data.units[name].endswith("0 to 1"):
                    is_unanimous = (estimates.n > 0) & np.isin(estimates.value, (0, 1))
                    assert not (estimates.low == estimates.high)[is_unanimous].any(), (series, name)


@every_analysis
def test_json_round_trips_and_everything_renders(analysis: Analysis, result: Result) -> None:
    serialised = result.to_json()
    assert Result.from_json(json.dumps(serialised, allow_nan=False)).to_json() == serialised
    model_rows = [row for row in result.rows() if row.get("series", "model") == "model"]
    assert len(result.to_pandas()) == len(model_rows) > 0
    assert len(repr(result).splitlines()) <= 3 and len(repr(result)) < 800
    assert result.to_latex().count("{") == result.to_latex().count("}") and result.to_markdown() and result.bibtex()
    assert "<svg" in result._repr_html_()  # pyright: ignore[reportPrivateUsage]  # called by notebooks
    with redirect_stdout(io.StringIO()) as printed:
        print_result(result, analysis)
    assert analysis.question in printed.getvalue()
    html = report_page(ReportContent(ReportSubject("tiny"), [], [], [AnalysisSection(analysis, result)]))
    assert analysis.name in html
    assert "http" not in html.replace("http-equiv", "").replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert result.figure().svg.startswith("<svg")


@every_analysis
def test_every_output_names_models_corpus_and_options(
    analysis: Analysis, encoder: Encoder, corpus: Corpus, result: Result, tmp_path: Path
) -> None:
    model = result.to_json()["inputs"]["model"]
    assert model["model"]["name"] == encoder.name and model["model"]["fingerprint"] == encoder.fingerprint
    assert model["model"]["changes"] == {}
    assert model["corpus"]["fingerprint"] == corpus.fingerprint and model["corpus"]["examples"] == len(corpus)
    names = [encoder.name, encoder.fingerprint[:8], corpus.name, corpus.fingerprint[:8], f"{len(corpus)} examples"]
    if "against" in analysis.inputs:
        against = result.to_json()["inputs"]["against"]["model"]
        names += [against["name"], against["fingerprint"][:8]]
    names += [f"{name}={value}" for name, value in result.options.items() if value != ""]
    with redirect_stdout(io.StringIO()) as printed:
        print_result(result, analysis)
    result.figure(tmp_path / "figure.svg")
    result.figure(tmp_path / "figure.html")
    figure, page = ((tmp_path / f"figure.{suffix}").read_text("utf-8") for suffix in ("svg", "html"))
    texts = [printed.getvalue(), unescape(re.sub("<[^>]*>", " ", figure)), unescape(re.sub("<[^>]*>", " ", page))]
    if answers := result.answers():
        assert result.save_answers(tmp_path / "answers.csv") == len(answers)
        with (tmp_path / "answers.csv").open(encoding="utf-8", newline="") as stream:
            first = next(csv.DictReader(stream))
        assert first["run_model"] == f"{encoder.name} {encoder.fingerprint}"
        assert first["run_corpus"] == f"{corpus.name} {corpus.fingerprint}"
        assert json.loads(first["run_options"]) == json.loads(json.dumps(dict(result.options)))
    for text in texts:
        flat = " ".join(text.split())
        assert [name for name in names if name not in flat] == []


def test_many_analyses_share_one_pass() -> None:
    encoder, corpus = tiny(), read_corpus(CORPORA[0])
    annotated = [analysis for analysis in ANALYSES if is_annotated(corpus, analysis)]
    analyses = [analysis for analysis in annotated if set(analysis.inputs) <= {"recording", "randomised"}]
    report = run_all([(analysis, {}) for analysis in analyses], RunInputs(corpus, encoder))
    assert len(report.passes) == 2, report.passes  # the model and the untrained model, once each
    for analysis, result in zip(analyses, report.results(), strict=True):
        is_default = corpus_of(analysis) is corpus
        alone = values_by_measure(default_result(analysis.name) if is_default else run_tiny(analysis, encoder, corpus))
        for name, values in values_by_measure(result).items():
            np.testing.assert_allclose(values, alone[name], atol=1e-6, err_msg=name)
