"""bertology: an executable primer in BERTology.

    import bertology

    encoder = bertology.load("mini")                      # a built-in name, a directory, a hub name, random:MODEL ...
    corpus = bertology.read("treebank.conllu")            # any format of `bertology list corpora`
    result = bertology.run("attention/entropy", encoder, corpus)
    result.to_pandas()
    bertology.view("mini", "I went to the store.")        # attention of every head, as a page or in a notebook

Importing this package imports neither torch nor transformers; they are imported with the first model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_MODULES = {
    "Corpus": "bertology.corpus.corpus",
    "Estimate": "bertology.estimates.estimate",
    "Head": "bertology.results.shapes",
    "RecordingConfig": "bertology.recording.plan",
    "Recording": "bertology.recording.recording",
    "Refusal": "bertology.errors",
    "Result": "bertology.results.result",
    "analysis": "bertology.analyses.declaration",
    "from_dataset": "bertology.corpus.huggingface_datasets",
    "finetune": "bertology.training.finetune",
    "head_view": "bertology.views.bertviz",
    "load": "bertology.encoder.load",
    "model_view": "bertology.views.bertviz",
    "neuron_view": "bertology.views.bertviz",
    "open_recording": "bertology.recording.manifest",
    "read": "bertology.corpus.read",
    "corpus_from_texts": "bertology.corpus.corpus",
    "record": "bertology.recording.recorder",
    "reduction": "bertology.recording.sites",
    "run": "bertology.api",
    "show": "bertology.views.html_view",
    "view": "bertology.views.view",
    "view_recording": "bertology.views.view",
}

__all__ = [*sorted(_MODULES), "__version__"]  # pyright: ignore[reportUnsupportedDunderAll]  # resolved by __getattr__

if TYPE_CHECKING:
    from bertology.analyses.declaration import analysis as analysis
    from bertology.api import run as run
    from bertology.corpus.corpus import Corpus as Corpus
    from bertology.corpus.corpus import corpus_from_texts as corpus_from_texts
    from bertology.corpus.huggingface_datasets import from_dataset as from_dataset
    from bertology.corpus.read import read as read
    from bertology.encoder.load import load as load
    from bertology.errors import Refusal as Refusal
    from bertology.estimates.estimate import Estimate as Estimate
    from bertology.recording.manifest import open_recording as open_recording
    from bertology.recording.plan import RecordingConfig as RecordingConfig
    from bertology.recording.recorder import record as record
    from bertology.recording.recording import Recording as Recording
    from bertology.recording.sites import reduction as reduction
    from bertology.results.result import Result as Result
    from bertology.results.shapes import Head as Head
    from bertology.training.finetune import finetune as finetune
    from bertology.views.bertviz import head_view as head_view
    from bertology.views.bertviz import model_view as model_view
    from bertology.views.bertviz import neuron_view as neuron_view
    from bertology.views.html_view import show as show
    from bertology.views.view import view as view
    from bertology.views.view import view_recording as view_recording


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'bertology' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
