"""bertology: an executable primer in BERTology.

    import bertology

    encoder = bertology.load("mini")                      # a built-in name, a directory, a hub name, random:MODEL ...
    corpus = bertology.read("treebank.conllu")            # any format of `bertology list corpora`, or a name: "english"
    corpus = bertology.corpus(["A text.", "Another."])    # or pairs, words, a data frame, a dataset, spaCy documents
    result = bertology.run("attention/entropy", encoder, corpus)
    result.to_pandas()
    bertology.view("mini", "I went to the store.")        # attention of every head, as a page or in a notebook

Importing this package imports neither torch nor transformers; they are imported with the first model.
"""

from __future__ import annotations

from types import FunctionType
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_MODULES = {
    "Corpus": "bertology.corpus.corpus",
    "Estimate": "bertology.estimates.estimate",
    "Head": "bertology.results.shapes",
    "RecordingConfig": "bertology.recording.plan",
    "Recording": "bertology.recording.recording",
    "Refusal": "bertology.errors",
    "CostError": "bertology.errors",
    "MachineError": "bertology.errors",
    "Result": "bertology.results.result",
    "AnalysisCallback": "bertology.analyses.trainer_callback",
    "LayerProbe": "bertology.analyses.probing.estimator",
    "analysis": "bertology.analyses.declaration",
    "probe": "bertology.analyses.probe",
    "states": "bertology.analyses.probe",
    "corpus": "bertology.corpus",
    "finetune": "bertology.training.finetune",
    "head_view": "bertology.views.bertviz",
    "load": "bertology.encoder.load",
    "model_view": "bertology.views.bertviz",
    "neuron_view": "bertology.views.bertviz",
    "open_recording": "bertology.recording.manifest",
    "read": "bertology.corpus.read",
    "record": "bertology.recording.recorder",
    "record_slice": "bertology.recording.slices",
    "reduction": "bertology.recording.sites",
    "stream_corpus": "bertology.corpus.stream",
    "run": "bertology.analyses.run_by_name",
    "compare": "bertology.analyses.compare",
    "claims": "bertology.claims",
    "atlas": "bertology.atlas",
    "report": "bertology.views.report.build",
    "show": "bertology.views.html_view",
    "view": "bertology.views.view",
    "view_recording": "bertology.views.view",
    "Claim": "bertology.claims.claim",
    "all_claims": "bertology.claims.catalogue",
    "read_claims": "bertology.claims.catalogue",
    "judge": "bertology.claims.judge",
    "Example": "bertology.corpus.example",
    "Sentence": "bertology.corpus.sentence",
    "sentence_from_text": "bertology.corpus.sentence",
    "sentence_from_words": "bertology.corpus.sentence",
    "ParseError": "bertology.corpus.text_files",
    "ParseErrorHandler": "bertology.corpus.text_files",
    "non_blank_lines": "bertology.corpus.text_files",
    "parse_all": "bertology.corpus.text_files",
    "reader": "bertology.corpus.read",
    "HeadGrid": "bertology.results.shapes",
    "mean_grid": "bertology.analyses.head_grids",
    "LayerActivations": "bertology.encoder.attention_hook",
    "TokenBatch": "bertology.encoder.token_batch",
    "ModelFamily": "bertology.encoder.families",
    "LayerSpec": "bertology.encoder.families",
}

__all__ = [*sorted(_MODULES), "__version__"]  # pyright: ignore[reportUnsupportedDunderAll]  # resolved by __getattr__

if TYPE_CHECKING:
    from bertology.analyses.compare import compare as compare
    from bertology.analyses.declaration import analysis as analysis
    from bertology.analyses.head_grids import mean_grid as mean_grid
    from bertology.analyses.probe import probe as probe
    from bertology.analyses.probe import states as states
    from bertology.analyses.probing.estimator import LayerProbe as LayerProbe
    from bertology.analyses.run_by_name import run as run
    from bertology.analyses.trainer_callback import AnalysisCallback as AnalysisCallback
    from bertology.atlas.build import atlas as atlas
    from bertology.claims.catalogue import all_claims as all_claims
    from bertology.claims.catalogue import read_claims as read_claims
    from bertology.claims.claim import Claim as Claim
    from bertology.claims.judge import judge as judge
    from bertology.claims.run import claims as claims
    from bertology.corpus.corpus import Corpus as Corpus
    from bertology.corpus.example import Example as Example
    from bertology.corpus.from_objects import build_corpus
    from bertology.corpus.read import read as read
    from bertology.corpus.read import reader as reader
    from bertology.corpus.sentence import Sentence as Sentence
    from bertology.corpus.sentence import sentence_from_text as sentence_from_text
    from bertology.corpus.sentence import sentence_from_words as sentence_from_words
    from bertology.corpus.stream import stream_corpus as stream_corpus
    from bertology.corpus.text_files import ParseError as ParseError
    from bertology.corpus.text_files import ParseErrorHandler as ParseErrorHandler
    from bertology.corpus.text_files import non_blank_lines as non_blank_lines
    from bertology.corpus.text_files import parse_all as parse_all
    from bertology.encoder.attention_hook import LayerActivations as LayerActivations
    from bertology.encoder.families import LayerSpec as LayerSpec
    from bertology.encoder.families import ModelFamily as ModelFamily
    from bertology.encoder.load import load as load
    from bertology.encoder.token_batch import TokenBatch as TokenBatch
    from bertology.errors import CostError as CostError
    from bertology.errors import MachineError as MachineError
    from bertology.errors import Refusal as Refusal
    from bertology.estimates.estimate import Estimate as Estimate
    from bertology.recording.manifest import open_recording as open_recording
    from bertology.recording.plan import RecordingConfig as RecordingConfig
    from bertology.recording.recorder import record as record
    from bertology.recording.recording import Recording as Recording
    from bertology.recording.sites import reduction as reduction
    from bertology.recording.slices import record_slice as record_slice
    from bertology.results.result import Result as Result
    from bertology.results.shapes import Head as Head
    from bertology.results.shapes import HeadGrid as HeadGrid
    from bertology.training.finetune import finetune as finetune
    from bertology.views.bertviz import head_view as head_view
    from bertology.views.bertviz import model_view as model_view
    from bertology.views.bertviz import neuron_view as neuron_view
    from bertology.views.html_view import show as show
    from bertology.views.report.build import report as report
    from bertology.views.view import view as view
    from bertology.views.view import view_recording as view_recording

    corpus = build_corpus


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'bertology' has no attribute {name!r}")
    from importlib import import_module

    if _MODULES[name] == f"bertology.{name}":  # a package that is a function, see `lazy.make_callable`
        return import_module(_MODULES[name])
    value = getattr(import_module(_MODULES[name]), name)
    if not isinstance(value, FunctionType):
        return value
    from bertology.public_functions import public_function

    return public_function(value)


def __dir__() -> list[str]:
    return sorted(__all__)
