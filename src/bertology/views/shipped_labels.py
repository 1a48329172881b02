"""Head labels of the built-in models, with their evidence, so that a view has them without any analysis being run.

`python -m bertology.views.shipped_labels` runs the analyses and writes the files; tests compare them with a new run.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel

from bertology.views.head_labels import labelling_note, labels_from_results
from bertology.views.payload import HeadLabel
from bertology.views.shipped_files import read_shipped

if TYPE_CHECKING:
    from bertology.encoder.encoder import Encoder
    from bertology.recording.recording import EncoderSummary

MODELS = ("mini", "mini@10%", "mini-pairs", "mini-ner")
"""The trained models of the package."""
ANALYSES = ("heads/functions", "heads/dependency", "attention/word_patterns")
CORPUS = "english"
PREFIX = "head-labels"


class LabelSource(BaseModel):
    """An analysis that labels were taken from."""

    name: str
    version: int


class ShippedLabels(BaseModel):
    """The labels of one model, and what they were measured with: corpus, number of its examples, analyses."""

    model: str
    fingerprint: str
    corpus: str
    corpus_fingerprint: str
    n: int
    analyses: list[LabelSource]
    labelling: str
    labels: list[HeadLabel]


def shipped_labels(encoder: Encoder | EncoderSummary) -> ShippedLabels | None:
    """The labels of a built-in model; None for any other, and for a changed one."""
    return _by_fingerprint().get(encoder.fingerprint)


@cache
def _by_fingerprint() -> dict[str, ShippedLabels]:
    return {labels.fingerprint: labels for labels in read_shipped(ShippedLabels, PREFIX)}


def compute_labels(model: str, analyses: Sequence[str] = ANALYSES, store: str | None = None) -> ShippedLabels:
    """Run the analyses on the built-in corpus, and keep what labels heads."""
    from bertology.analyses.run_by_name import run
    from bertology.corpus.read import load_corpus
    from bertology.encoder.load import load

    encoder, corpus = load(model), load_corpus(CORPUS)
    results = run(list(analyses), encoder, corpus, store=store).all_results()
    labels = labels_from_results(results, encoder.layers, encoder.heads)
    note = labelling_note(results, labels, encoder.layers * encoder.heads)
    return ShippedLabels(
        model=model,
        fingerprint=encoder.fingerprint,
        corpus=CORPUS,
        corpus_fingerprint=corpus.fingerprint,
        n=len(corpus),
        analyses=[LabelSource(name=result.analysis, version=result.version) for result in results],
        labelling=f"{note} Measured on the {len(corpus)} sentences of `{CORPUS}`.",
        labels=labels,
    )


def file_stem(model: str) -> str:
    """The name of a model in names of files, without the signs `@` and `%`."""
    return model.replace("@", "-at-").replace("%", "-percent")


if __name__ == "__main__":
    for name in sys.argv[1:] or MODELS:
        target = Path(__file__).with_name("data") / f"{PREFIX}-{file_stem(name)}.json"
        target.write_text(compute_labels(name).model_dump_json(indent=1) + "\n", "utf-8")
