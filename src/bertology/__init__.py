"""bertology: an executable primer in BERTology.

    import bertology

    encoder = bertology.load("mini")                      # a built-in name, a directory, a hub name, random:MODEL ...
    corpus = bertology.read("treebank.conllu")            # any format of `bertology list corpora`
    result = bertology.run("attention/entropy", encoder, corpus)
    result.to_pandas()
    bertology.view("mini", "I went to the store.")        # what every head looks at, as a page or in the notebook

Importing this package imports neither torch nor transformers; they come with the first model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "Corpus": "bertology.corpus.corpus",
    "Estimate": "bertology.results.estimate",
    "Head": "bertology.results.shapes",
    "Policy": "bertology.recording.recorder",
    "Recording": "bertology.recording.recording",
    "Refusal": "bertology.errors",
    "Result": "bertology.results.result",
    "analysis": "bertology.analyses.declaration",
    "finetune": "bertology.finetuning.finetune",
    "head_view": "bertology.views.compatible",
    "load": "bertology.encoder.load",
    "model_view": "bertology.views.compatible",
    "neuron_view": "bertology.views.compatible",
    "open_recording": "bertology.recording.opening",
    "read": "bertology.corpus.read",
    "read_text": "bertology.corpus.corpus",
    "record": "bertology.recording.recorder",
    "reduction": "bertology.recording.sites",
    "run": "bertology.interface",
    "show": "bertology.views.result_view",
    "view": "bertology.views.view",
}

__all__ = [*sorted(_HOMES), "__version__"]  # pyright: ignore[reportUnsupportedDunderAll]  # resolved by __getattr__

if TYPE_CHECKING:
    from bertology.analyses.declaration import analysis as analysis
    from bertology.corpus.corpus import Corpus as Corpus
    from bertology.corpus.corpus import read_text as read_text
    from bertology.corpus.read import read as read
    from bertology.encoder.load import load as load
    from bertology.errors import Refusal as Refusal
    from bertology.finetuning.finetune import finetune as finetune
    from bertology.interface import run as run
    from bertology.recording.opening import open_recording as open_recording
    from bertology.recording.recorder import Policy as Policy
    from bertology.recording.recorder import record as record
    from bertology.recording.recording import Recording as Recording
    from bertology.recording.sites import reduction as reduction
    from bertology.results.estimate import Estimate as Estimate
    from bertology.results.result import Result as Result
    from bertology.results.shapes import Head as Head
    from bertology.views.compatible import head_view as head_view
    from bertology.views.compatible import model_view as model_view
    from bertology.views.compatible import neuron_view as neuron_view
    from bertology.views.result_view import show as show
    from bertology.views.view import view as view


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'bertology' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
