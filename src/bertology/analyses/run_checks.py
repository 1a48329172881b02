"""Whether an analysis can run on a model and a corpus, checked before any forward pass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bertology.analyses.declaration import Analysis
from bertology.errors import Refusal
from bertology.recording.paired_sites import check_same_size
from bertology.recording.recorder import check_sites_available
from bertology.recording.sites import resolve_sites

if TYPE_CHECKING:
    from bertology.analyses.run import RunInputs


def check_runnable(analysis: Analysis, options: Mapping[str, Any], inputs: RunInputs) -> Refusal | None:
    """Why the analysis cannot run, checked first so that it does not spoil passes shared with others."""
    try:
        _check_inputs(analysis, options, inputs)
        if inputs.encoder is not None and inputs.recording is None:
            sites = resolve_sites(analysis.sites(options), inputs.encoder.task_heads)
            check_sites_available(inputs.encoder, sites, inputs.config)
    except Refusal as refusal:
        return refusal
    return None


def _check_inputs(analysis: Analysis, options: Mapping[str, Any], inputs: RunInputs) -> None:
    corpus = inputs.recording.corpus if inputs.recording is not None else inputs.corpus
    if "encoder" in analysis.required_inputs and inputs.encoder is None:
        raise Refusal(
            f"{analysis.name} runs the model, and a recording cannot be run",
            "a model and a corpus",
            f"Run it on the model: `bertology run {analysis.name} --model MODEL --corpus CORPUS`",
        )
    if "overflow" in analysis.options and inputs.config.max_length is not None:
        raise Refusal(
            f"{analysis.name} evaluates whole examples, and a maximum length of {inputs.config.max_length} was given",
            "the limit of the model",
            "Leave out --max-length; --overflow says what is done with examples longer than the model allows",
        )
    if "recording" in analysis.inputs and inputs.recording is None and (inputs.encoder is None or corpus is None):
        name = corpus.name if corpus is not None else "CORPUS"
        raise Refusal(
            f"{analysis.name} needs activations on {name}, and neither a model nor a recording of {name} was given",
            f"a model, or a recording of {name}",
            "Name the model with --model instead of --recording, or use a recording of this corpus: "
            f"`bertology record MODEL {name} --sites attention,hidden -o DIR`",
        )
    if corpus is not None and analysis.annotations:
        corpus.require_annotations(*analysis.annotations, analysis_name=analysis.name)
    if corpus is not None and analysis.check_corpus is not None:
        analysis.check_corpus(corpus, options)
    if "against" in analysis.inputs and inputs.against is None and inputs.against_recording is None:
        raise Refusal(
            f"{analysis.name} compares two models, and one was given",
            "two models, or recordings of two models on the same corpus",
            "Add --against MODEL, or --against-recording DIR beside --recording",
        )
    if analysis.paired_sites and "against" in analysis.inputs:
        first = inputs.recording.encoder if inputs.recording is not None else inputs.encoder
        second = inputs.against_recording.encoder if inputs.against_recording is not None else inputs.against
        if first is not None and second is not None:
            check_same_size(first, second)
