"""Measures of the heads of the built-in models, so that the model view is coloured by them without any analysis run.

`python -m bertology.views.shipped_measures` runs the analyses and writes the files; tests compare them with a new run.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel

from bertology.views.head_measures import measures_from_results
from bertology.views.payload import HeadMeasure
from bertology.views.shipped_files import read_shipped
from bertology.views.shipped_labels import CORPUS, MODELS, file_stem

if TYPE_CHECKING:
    from bertology.encoder.encoder import Encoder
    from bertology.recording.recording import EncoderSummary

PREFIX = "head-measures"
DIVERGENCE = "Jensen-Shannon divergence"


@dataclass(frozen=True)
class ShippedRun:
    """An analysis and the measures of it that are shipped, with the names they have in the view."""

    analysis: str
    names: dict[str, str]
    corpus: str = CORPUS
    against: str | None = None


PATTERNS = ("previous word", "next word", "delimiters", "related words", "predictive words")


def shipped_runs(model: str) -> list[ShippedRun]:
    """What is shipped for a model: entropy, pattern scores, effect of removal and change by fine-tuning."""
    requests = [
        ShippedRun("attention/entropy", {"entropy": "entropy"}),
        ShippedRun("attention/word_patterns", {name: f"attention to {name}" for name in PATTERNS}),
        # mini-pairs has no masked-language-model head: its own task is inference.
        ShippedRun(
            "interventions/head_ablation",
            {"change in loss": "effect of removal (change in loss)"},
            corpus="generated:nli" if model == "mini-pairs" else CORPUS,
        ),
    ]
    tuned = {"mini": "mini-pairs", "mini-pairs": "mini", "mini-ner": "mini"}.get(model)
    if tuned is not None:
        name = f"change by fine-tuning (divergence from {tuned})"
        requests.append(ShippedRun("attention/model_similarity", {DIVERGENCE: name}, against=tuned))
    return requests


class MeasureSource(BaseModel):
    """An analysis that measures were taken from: its version, its corpus and the model it compares with, if any."""

    name: str
    version: int
    corpus: str
    corpus_fingerprint: str
    n: int
    against: str | None


class ShippedMeasures(BaseModel):
    """The measures of one model, and what they were measured with."""

    model: str
    fingerprint: str
    analyses: list[MeasureSource]
    measures: list[HeadMeasure]


def shipped_measures(encoder: Encoder | EncoderSummary) -> list[HeadMeasure]:
    """The measures of a built-in model; none of any other, and of a changed one."""
    shipped = _by_fingerprint().get(encoder.fingerprint)
    return [] if shipped is None else shipped.measures


@cache
def _by_fingerprint() -> dict[str, ShippedMeasures]:
    return {measures.fingerprint: measures for measures in read_shipped(ShippedMeasures, PREFIX)}


def compute_measures(
    model: str, requests: Sequence[ShippedRun] | None = None, store: str | None = None
) -> ShippedMeasures:
    """Run the analyses on their corpora, and keep the measures of each head."""
    from bertology.analyses.run_by_name import run
    from bertology.corpus.read import load_corpus
    from bertology.encoder.load import load

    encoder = load(model)
    sources: list[MeasureSource] = []
    measures: list[HeadMeasure] = []
    for request in shipped_runs(model) if requests is None else requests:
        corpus = load_corpus(request.corpus)
        result = run(request.analysis, encoder, corpus, against=request.against, store=store)
        computed = {m.name: m for m in measures_from_results([result], encoder.layers, encoder.heads)}
        measures += [computed[name].model_copy(update={"name": shown}) for name, shown in request.names.items()]
        sources.append(
            MeasureSource(
                name=request.analysis,
                version=result.version,
                corpus=request.corpus,
                corpus_fingerprint=corpus.fingerprint,
                n=len(corpus),
                against=request.against,
            )
        )
    return ShippedMeasures(model=model, fingerprint=encoder.fingerprint, analyses=sources, measures=measures)


if __name__ == "__main__":
    for name in sys.argv[1:] or MODELS:
        target = Path(__file__).with_name("data") / f"{PREFIX}-{file_stem(name)}.json"
        target.write_text(compute_measures(name).model_dump_json() + "\n", "utf-8")
