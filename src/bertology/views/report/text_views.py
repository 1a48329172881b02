"""The texts of the findings, for the attention view of a report: each once, in few bytes, with the layers it needs.

A finding has texts in which it shows most and least. Whoever reads it can look at its head on these texts, so their
attention travels in the page: all layers of short texts, else the layers of the findings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from markupsafe import Markup

from bertology.claims.run_plan import run_inputs_for
from bertology.encoder.threads import single_thread
from bertology.errors import Refusal
from bertology.results.result import Result
from bertology.views.annotations import model_fingerprint
from bertology.views.head_labels import head_labelling
from bertology.views.page import payload_script
from bertology.views.payload import COARSE_LEVELS, Payload, dequantise, quantise
from bertology.views.view import View, view, view_recording

if TYPE_CHECKING:
    from bertology.analyses.run import RunInputs
    from bertology.claims.example_texts import ExampleTexts
    from bertology.encoder.encoder import Encoder
    from bertology.recording.recording import EncoderSummary

MAX_TOKENS = 128
"""Longer texts are not in the page."""
MAX_VALUES = 100_000
"""A text has all layers if they have at most this many weights."""


@dataclass(frozen=True)
class FindingTexts:
    """The example texts of one finding, the model and corpus they come from, and the layers it is about, from 0."""

    examples: ExampleTexts
    inputs: RunInputs
    layers: frozenset[int]


@dataclass(frozen=True)
class TextViews:
    """The data of texts as HTML, and the name of each by claim id and index of the example."""

    html: Markup = field(default=Markup(), repr=False)
    names: Mapping[tuple[str, int], str] = field(default_factory=dict[tuple[str, int], str])


def text_views(findings: Mapping[str, FindingTexts], results: Sequence[Result] = ()) -> TextViews:
    """The attention of all texts of the findings, by claim id; a text of several findings is there once."""
    claims_by_text: dict[tuple[str, str, int], list[str]] = {}
    for claim_id, finding in findings.items():
        inputs = run_inputs_for(finding.inputs, finding.examples.run)
        model = inputs.recording.encoder if inputs.recording is not None else inputs.encoder
        if model is None or inputs.corpus is None or not model.heads:
            continue
        for measured in finding.examples.texts:
            key = (model.fingerprint, inputs.corpus.fingerprint, measured.index)
            claims_by_text.setdefault(key, []).append(claim_id)
    scripts: list[Markup] = []
    names: dict[tuple[str, int], str] = {}
    for (_, _, index), claim_ids in claims_by_text.items():
        first = findings[claim_ids[0]]
        shown = _view(run_inputs_for(first.inputs, first.examples.run), index, results)
        if shown is None:
            continue
        name = f"text-{len(scripts) + 1}"
        layers = frozenset[int]().union(*(findings[claim_id].layers for claim_id in claim_ids))
        scripts.append(payload_script(compact_payload(shown.payload, layers), name))
        names |= {(claim_id, index): name for claim_id in claim_ids}
    return TextViews(Markup().join(scripts), names)


def _view(inputs: RunInputs, index: int, results: Sequence[Result]) -> View | None:
    """The attention of one example; None if it is too long, or was not recorded."""
    if inputs.recording is not None:
        recording = inputs.recording.select_examples([index])
        if "attention" not in recording.sites or not recording.inputs or len(recording.inputs[0].tokens) > MAX_TOKENS:
            return None
        return view_recording(recording, neurons=False, results=labelling_results(results, recording.encoder))
    encoder, corpus = inputs.encoder, inputs.corpus
    assert encoder is not None and corpus is not None, "texts were measured in a model"
    example = corpus[index]
    if len(encoder.tokenise([example.text_inputs[0]])[0]) > min(MAX_TOKENS, encoder.max_length):
        return None
    try:
        with single_thread():
            return view(encoder, example, neurons=False, results=labelling_results(results, encoder))
    except Refusal:  # an encoder that gives no attention weights
        return None


def labelling_results(results: Sequence[Result], encoder: Encoder | EncoderSummary) -> list[Result] | None:
    """The results that label heads of this model; None if there are none."""
    labelling = [r for r in results if head_labelling(r) and model_fingerprint(r) in {None, encoder.fingerprint}]
    return labelling or None


def compact_payload(payload: Payload, layers: frozenset[int]) -> Payload:
    """The same page in few bytes: coarse steps, no measures and, of long texts, only these layers if there are any."""
    run = payload.runs[0]
    weights = dequantise(run.quantities[0].weights)
    n_layers = len(weights)
    kept = sorted(layer for layer in layers if layer < n_layers)
    if weights.size <= MAX_VALUES or not kept:
        kept = list(range(n_layers))
    norms = run.value_norms
    is_whole = len(kept) == n_layers
    numbers = [layer + 1 for layer in kept]
    compact = run.model_copy(
        update={
            "quantities": [
                run.quantities[0].model_copy(update={"weights": quantise(weights[kept], levels=COARSE_LEVELS)})
            ],
            "value_norms": norms and norms.model_copy(update={"chunks": [norms.chunks[layer] for layer in kept]}),
            "labels": [
                label.model_copy(update={"layer": kept.index(label.layer)})
                for label in run.labels
                if label.layer in kept
            ],
            "measures": [],
            "focus": [run.focus[layer] for layer in kept] if run.focus else [],
            "layer_numbers": [] if is_whole else numbers,
        }
    )
    note = (
        f"Of this text the page has layer{'s' if len(kept) > 1 else ''} {', '.join(map(str, numbers))} of {n_layers}."
    )
    return payload.model_copy(update={"runs": [compact], "notes": [] if is_whole else [note]})
