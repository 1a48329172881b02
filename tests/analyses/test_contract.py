"""Registered means checked: what every analysis must do, whoever wrote it."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import planted
import sensed
from bertology.analyses import registry
from bertology.analyses.declaration import Analysis
from bertology.analyses.run import Subject, run, run_all
from bertology.citations import CITATIONS
from bertology.cli.terminal import show
from bertology.corpus.builtin import corpus_named
from bertology.corpus.corpus import Corpus, read_text
from bertology.corpus.sentence import LAYERS
from bertology.encoder.encoder import Encoder
from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.encoder.load import load
from bertology.encoder.task_heads import with_head
from bertology.encoder.variant import Variant
from bertology.errors import Refusal
from bertology.recording.recorder import Policy
from bertology.report.content import Content, Section
from bertology.report.page import page
from bertology.results.result import Result
from bertology.results.shapes import Curve, HeadGrid, LayerCurve, Matrix, Table

Measured = HeadGrid | LayerCurve | Curve | Matrix | Table
ANALYSES = registry.load_all()

every_analysis = pytest.mark.parametrize("analysis", ANALYSES, ids=lambda a: a.name)


CLASSIFIED = {"causes/substitution": ("contradiction", "entailment", "neutral")}
"""Analyses of models that give classes, and the classes of their corpus."""


@cache
def tiny(labels: tuple[str, ...] = ()) -> Encoder:
    base = load("tiny")
    if not labels:
        return base
    assert isinstance(base, HuggingFaceEncoder)
    return with_head(base, "label", labels, variant=Variant(), seed=0)


@pytest.fixture
def encoder(request: pytest.FixtureRequest) -> Encoder:
    given = getattr(request.node, "callspec", None)
    return tiny(CLASSIFIED.get(given.params["analysis"].name, ()) if given else ())


CORPORA = (
    "english",
    "generated:reflexives",
    "english+roles",
    "generated:minimal_pairs",
    "tasks:bigram_shift:english",
    "english+questions",
)
"""Each analysis is run on the first of these that carries the annotation it needs; roles and questions are planted."""
OWN_CORPORA = {
    "causes/substitution": "generated:nli@0:6",
    "causes/unanswerable": "generated:reading@0:8",
    "probes/agreement": "generated:minimal_pairs",
    "probes/sentence": "tasks:bigram_shift:english",
    "meaning/diagnostic": "diagnostic",
    "meaning/senses": "english+senses",
    "meaning/context_pairs": "english+senses",
    "meaning/sense_probe": "english+senses",
    "meaning/sense_map": "english+senses",
}
"""Of so few sentences of a treebank some analyses could make nothing."""


@cache
def read(name: str) -> Corpus:
    named, _, added = name.partition("+")
    corpus = corpus_named(named, limit=40)
    if added == "senses":
        return sensed.only_with(corpus_named(named), "bank", "match")
    if added == "questions":
        return planted.asked(corpus)
    return corpus.map(planted.with_roles) if added else corpus


def carries(corpus: Corpus, analysis: Analysis) -> bool:
    return all(corpus.layers[layer] for layer in analysis.layers)


@pytest.fixture
def corpus(request: pytest.FixtureRequest) -> Corpus:
    given = getattr(request.node, "callspec", None)
    analysis = given.params["analysis"] if given else None
    own = OWN_CORPORA.get(analysis.name) if analysis else None
    return read(own) if own else next(c for c in map(read, CORPORA) if analysis is None or carries(c, analysis))


def result_of(analysis: Analysis, encoder: Encoder, corpus: Corpus, **policy: object) -> Result:
    against = load("random:tiny@1") if "against" in analysis.inputs else None
    return run(analysis, Subject(corpus, encoder, against=against, policy=Policy(**policy)))  # type: ignore[arg-type]  # any field


def values_of(result: Result) -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float64]]]:
    assert isinstance(result.data, Measured)
    return {name: estimates.value for name, estimates in result.data.measures.items()}


@every_analysis
def test_the_declaration_is_complete(analysis: Analysis) -> None:
    assert analysis.question.endswith("?")
    assert analysis.special
    assert len(analysis.about.splitlines()[0]) > 30
    assert set(analysis.cites) <= set(CITATIONS)
    assert set(analysis.layers) <= {*LAYERS, "marks", "minimal pairs"}
    assert all(option.about for option in analysis.options.values())


@every_analysis
def test_same_seed_same_result(analysis: Analysis, encoder: Encoder, corpus: Corpus) -> None:
    first, again = (result_of(analysis, encoder, corpus).to_json() for _ in range(2))
    assert first == again


@every_analysis
def test_batches_change_nothing(analysis: Analysis, encoder: Encoder, corpus: Corpus) -> None:
    small = values_of(result_of(analysis, encoder, corpus, batch_pieces=40))
    for name, values in values_of(result_of(analysis, encoder, corpus, batch_pieces=4000)).items():
        np.testing.assert_allclose(values, small[name], atol=2e-5, err_msg=name)


@every_analysis
def test_sentence_order_changes_nothing(analysis: Analysis, encoder: Encoder, corpus: Corpus) -> None:
    backwards = replace(corpus, items=corpus.items[::-1])
    turned = values_of(result_of(analysis, encoder, backwards))
    for name, values in values_of(result_of(analysis, encoder, corpus)).items():
        np.testing.assert_allclose(values, turned[name], atol=2e-5, err_msg=name)


@every_analysis
@pytest.mark.parametrize(
    "texts",
    [("Yes",), ("...", "?!"), ("word " * 600,), ("", "one more"), (("A pair.", "Of texts."), "and a sentence")],
    ids=["one word", "punctuation only", "longest", "empty", "pair and single"],
)
def test_odd_input_gives_numbers_or_a_refusal(analysis: Analysis, encoder: Encoder, texts: tuple[str, ...]) -> None:
    try:
        result = result_of(analysis, encoder, read_text(*texts), long="truncate")
    except Refusal as refusal:
        assert str(refusal)
        return
    assert isinstance(result.data, Measured)
    for name, estimates in result.data.measures.items():
        measured = estimates.n > 0
        assert np.isfinite(estimates.value[measured]).all(), name
        assert np.isnan(estimates.value[~measured]).all(), name
    json.dumps(result.to_json(), allow_nan=False)


@every_analysis
def test_missing_annotation_is_refused(analysis: Analysis, encoder: Encoder) -> None:
    if not analysis.layers:
        pytest.skip(f"{analysis.name} needs no annotation")
    with pytest.raises(Refusal, match=analysis.layers[0]):
        result_of(analysis, encoder, read_text("No annotation here."))


@every_analysis
def test_every_measure_has_company(analysis: Analysis, encoder: Encoder, corpus: Corpus) -> None:
    result = result_of(analysis, encoder, corpus)
    if isinstance(result.data, Measured):
        assert result.n == max(estimates.n.max() for estimates in result.data.measures.values()) > 0
        for name, estimates in result.data.measures.items():
            assert any(name in baseline for baseline in result.data.baselines.values()), name
            there = estimates.n > 1
            assert (estimates.low[there] <= estimates.value[there] + 1e-9).all(), name
            assert (estimates.high[there] >= estimates.value[there] - 1e-9).all(), name
            assert result.data.units.get(name), f"{name} has no unit"
    assert result.provenance["versions"]["bertology"]
    assert result.provenance["special_tokens"] == analysis.special


@every_analysis
def test_json_round_trips_and_everything_renders(analysis: Analysis, encoder: Encoder, corpus: Corpus) -> None:
    result = result_of(analysis, encoder, corpus)
    whole = result.to_json()
    assert Result.from_json(json.dumps(whole, allow_nan=False)).to_json() == whole
    assert len(result.to_pandas()) == len(result.rows()) > 0
    with redirect_stdout(io.StringIO()) as printed:
        show(result, analysis)
    assert analysis.question in printed.getvalue()
    html = page(Content("title", [], [], [Section(analysis.question, analysis.about, result)]))
    assert analysis.name in html and "http" not in html.replace("http-equiv", "")
    assert result.figure().to_dict()["datasets"]


def test_many_analyses_share_one_pass(encoder: Encoder, corpus: Corpus) -> None:
    runs: list[str] = []
    fitting = [analysis for analysis in ANALYSES if carries(corpus, analysis)]
    wanted = [analysis for analysis in fitting if set(analysis.inputs) <= {"recording", "randomised"}]
    together = run_all([(a, {}) for a in wanted], Subject(corpus, encoder), passes=runs)
    assert len(runs) == 2, runs  # the model and its randomised twin, once each
    for analysis, result in zip(wanted, together, strict=True):
        alone = values_of(result_of(analysis, encoder, corpus))
        for name, values in values_of(result).items():
            np.testing.assert_allclose(values, alone[name], atol=1e-6, err_msg=name)
