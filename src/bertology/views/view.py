"""`bertology.view`: the attention of a model on a text as an interactive page, for browsers and notebooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import numpy as np

from bertology.citations import bibtex_entry
from bertology.encoder.load import as_encoder
from bertology.errors import Refusal, unknown_name
from bertology.recording.recording import check_same_inputs
from bertology.views.annotations import Results, annotations_from_results
from bertology.views.command_line import command_of_view
from bertology.views.head_labels import labels_from_user
from bertology.views.html_view import HtmlView
from bertology.views.model_run import QUANTITIES, Text, build_input, build_model_run, recorded_model_run
from bertology.views.page import view_page
from bertology.views.payload import Citation, HeadMeasure, ModelRun, Payload, dequantise
from bertology.views.shipped_labels import shipped_labels
from bertology.views.shipped_measures import shipped_measures

if TYPE_CHECKING:
    from bertology.corpus.example import TextInput
    from bertology.encoder.encoder import Encoder
    from bertology.recording.recording import EncoderSummary, Recording

MAX_TITLE_LENGTH, MAX_FIRST_WORDS = 200, 40
N_FIRST_WORDS = 4
STATE = (
    "view", "layer", "heads", "across", "fusion", "units", "special", "part", "keep", "mass", "threshold", "top",
    "token", "side", "tree", "relation", "theme", "measure", "cells", "order", "compared",
)  # fmt: skip
"""The names of a page's state, as in the fragment of its address."""


@dataclass(frozen=True)
class View(HtmlView):
    """The views of one or two model runs; `save` writes a page, or the weights if the suffix is .npz."""

    payload: Payload
    height: int = 760

    @property
    def title(self) -> str:
        """The title of the page."""
        return self.payload.title

    def html(self) -> str:
        """The page; it needs no network."""
        return view_page(self.payload)

    def content(self, suffix: str) -> bytes:
        """The page, or the weights."""
        if suffix != ".npz":
            return super().content(suffix)
        buffer = BytesIO()
        np.savez_compressed(buffer, **self.arrays())
        return buffer.getvalue()

    def with_command(self, command: str) -> View:
        """The same page with the command that makes it."""
        return replace(self, payload=self.payload.model_copy(update={"command": command}))

    def arrays(self) -> dict[str, Any]:
        """Weights (layer, head, from, to) by quantity, and the tokens.

        Names of a second run end in .against, those of an encoder-decoder in .encoder, .decoder and .cross.
        """
        arrays: dict[str, Any] = {}
        for index, run in enumerate(self.payload.runs):
            suffix = f".{run.role}" if run.role else ".against" * index
            arrays[f"tokens{suffix}"] = np.array([token.text for token in run.tokens], np.str_)
            arrays |= {f"{quantity.name}{suffix}": dequantise(quantity.weights) for quantity in run.quantities}
        return arrays

    def widget(self) -> Any:
        """The views as a Jupyter widget (anywidget) whose `state` can be read and set."""
        from bertology.views.widget import make_widget

        return make_widget(self.payload, self._repr_html_())


def view(
    model: Any,
    text: Text,
    text_b: Text | None = None,
    *,
    against: Any = None,
    against_text: Text | tuple[Text, Text] | None = None,
    quantities: Sequence[str] = ("attention",),
    neurons: bool | None = None,
    labels: Mapping[str, str] | None = None,
    results: Results | None = None,
    title: str | None = None,
    **state: Any,
) -> View:
    """The attention of a model on a text or a pair of texts.

    A text can be a string, a sentence or an example of a corpus; an annotated dependency tree is drawn over its tokens.
    `against` is a second model and `against_text` a second input (a tuple for a pair); if the words of both have the
    same positions, the page shows their difference. `quantities` can add `norm` and `gradient` to `attention`.
    `neurons` includes queries and keys (by default for up to 128 tokens).

    `labels` describes heads: {"3-5": "previous token (0.83 of its weight)"}. `results` are results of analyses, files
    or a folder of them: analyses of heads label those whose score meets the criterion of the label, with the score,
    the model view colours heads by every measure of a `HeadGrid`, and the arcs of probes/structural are drawn over the
    same words.

    `state` is the initial state of the page, for example view="matrix", layer=3, heads=[1, 2] (counted from 1),
    units="words", special="hide", theme="dark". Without layer and heads, the page opens on the most clearly labelled
    head, else on the one with the most focused attention. Labels of the built-in models come with the package, unless
    `results` label heads, and so do measures of their heads.
    """
    neurons = _check_options(quantities, neurons, state, has_second=against is not None or against_text is not None)
    encoder = as_encoder(model)
    input_ = build_input(text, text_b)
    run = build_model_run(encoder, input_, quantities, neurons)
    second_run = None
    if against is not None or against_text is not None:
        second_input = input_
        if against_text is not None:
            second_input = build_input(*(against_text if isinstance(against_text, tuple) else (against_text,)))
        second = encoder if against is None else as_encoder(against)
        second_run = build_model_run(second, second_input, quantities, neurons)
    shown = _assemble_view(run, second_run, encoder, labels, results, input_, title, state)
    if against_text is not None and second_run is not None:
        shown = _with_letters(shown, against is not None)
    return shown.with_command(command_of_view(model, text, text_b, against, against_text, quantities))


def view_recording(
    recording: Recording,
    index: int = 0,
    *,
    against: Recording | None = None,
    quantities: Sequence[str] = ("attention",),
    neurons: bool | None = None,
    labels: Mapping[str, str] | None = None,
    results: Results | None = None,
    title: str | None = None,
    **state: Any,
) -> View:
    """The attention of one input of a recording, `recording.inputs[index]`; no model is needed.

    `against` is a recording of another model on the same inputs. Queries and keys are included if they were recorded,
    `norm` and `gradient` can be added to `quantities` if theirs were. The other arguments are those of `view`.
    """
    neurons = _check_options(quantities, neurons, state, has_second=against is not None)
    run = recorded_model_run(recording, index, quantities, neurons=neurons)
    second_run = None
    if against is not None:
        check_same_inputs(recording, against)
        second_run = recorded_model_run(against, index, quantities, neurons=neurons)
    input_ = recording.inputs[index].text
    return _assemble_view(run, second_run, recording.encoder, labels, results, input_, title, state)


def _assemble_view(
    run: ModelRun,
    second_run: ModelRun | None,
    encoder: Encoder | EncoderSummary,
    labels: Mapping[str, str] | None,
    results: Results | None,
    input_: TextInput,
    title: str | None,
    state: Mapping[str, Any],
) -> View:
    head_labels = labels_from_user(labels or {}, encoder.layers, encoder.heads)
    shown: dict[str, Any] = {}
    notes = list[str]()
    measures = list[HeadMeasure]()
    if results is not None:
        annotations = annotations_from_results(results, encoder, input_)
        notes = annotations.notes
        head_labels += annotations.labels
        trees = run.trees + annotations.trees
        shown = {"labelling": annotations.labelling, "trees": trees}
        measures = annotations.measures
    if not shown.get("labelling") and (shipped := shipped_labels(encoder)):
        head_labels += shipped.labels
        shown["labelling"] = shipped.labelling
    measures = [*measures, *shipped_measures(encoder)]
    runs = [run.model_copy(update={"labels": head_labels, "measures": measures, **shown})]
    if second_run is not None:
        runs.append(_with_distinct_name(second_run, run))
    page_title = truncate_title(title if title is not None else _title(input_))
    return View(
        Payload(
            title=page_title,
            runs=runs,
            notes=notes,
            state=state_text(opening_state(runs[0], state)),
            citations=_citations(runs),
        )
    )


def _opens_at_a_difference(state: Mapping[str, Any]) -> bool:
    """Whether the page opens on the difference view without a head: it shows the most changed one."""
    return state.get("view") == "difference" and not {"layer", "heads"} & state.keys()


def opening_state(run: ModelRun, state: Mapping[str, Any]) -> dict[str, Any]:
    """The state with the head that a page opens on: the most clearly labelled, else the most focused one.

    A layer or heads that are given limit the choice. Labels of the user come before those of analyses.
    """
    if not run.focus or ("layer" in state and "heads" in state) or _opens_at_a_difference(state):
        return dict(state)
    layers = run.layer_numbers or range(1, len(run.focus) + 1)
    heads = run.head_numbers or range(1, len(run.focus[0]) + 1)
    chosen = [int(head) for head in _as_list(state["heads"])] if "heads" in state else heads
    effects = {
        (label.layer + 1, label.head + 1): 1.0 if label.effect is None else label.effect
        for label in sorted(run.labels, key=lambda label: 1.0 if label.effect is None else label.effect)
    }
    candidates = [
        (effects.get((layer, head), 0.0), focus, -layer, -head)
        for layer, row in zip(layers, run.focus, strict=True)
        if layer == int(state.get("layer", layer))
        for head, focus in zip(heads, row, strict=True)
        if head in chosen
    ]
    if not candidates:
        return dict(state)
    _, _, layer, head = max(candidates)
    return {**state, "layer": state.get("layer", -layer), "heads": state.get("heads", [-head])}


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else str(value).split(",")


def _citations(runs: Sequence[ModelRun]) -> list[Citation]:
    """All papers that parts of the page name, and those of rollout and of norms, which a page can show of any model."""
    keys = {key for run in runs for part in (*run.labels, *run.quantities) for key in part.citations}
    return [Citation(key=key, bibtex=bibtex_entry(key)) for key in sorted(keys | {"abnar2020", "kobayashi2020"})]


def _with_letters(shown: View, two_models: bool) -> View:
    """The runs of two texts named A and B, with the first words of each."""
    runs: list[ModelRun] = []
    for letter, run in zip("AB", shown.payload.runs, strict=True):
        first = " ".join(run.words[:N_FIRST_WORDS])
        more = "…" if len(run.words) > N_FIRST_WORDS else ""
        model = f" in {run.model}" if two_models else ""
        runs.append(run.model_copy(update={"name": f"{letter}{model}: {truncate_title(first, MAX_FIRST_WORDS)}{more}"}))
    return replace(shown, payload=shown.payload.model_copy(update={"runs": runs}))


def _check_options(
    quantities: Sequence[str], neurons: bool | None, state: Mapping[str, Any], *, has_second: bool
) -> bool | None:
    """Refuse options that exclude each other; returns `neurons`, True if the page starts with the neuron view."""
    _check_quantities(quantities)
    if state.get("view") == "difference" and not has_second:
        raise Refusal(
            "The difference view needs something to compare with",
            "a second model, recording or text",
            "Give against or against_text",
        )
    if state.get("view") != "neuron":
        return neurons
    if neurons is False:
        raise Refusal("view='neuron' and neurons=False exclude each other", "one of them", "Leave one of them out")
    return True


def _with_distinct_name(second: ModelRun, first: ModelRun) -> ModelRun:
    return second.model_copy(update={"name": f"{second.name} (second)"}) if second.name == first.name else second


def _title(input_: TextInput) -> str:
    return " | ".join(segment.text for segment in input_.segments)


def state_text(state: Mapping[str, Any]) -> str:
    """The initial state of a page, as in the fragment of its address; layers and heads are counted from 1."""
    for name in state:
        if name not in STATE:
            raise unknown_name("option of a view", name, STATE)
    values = {k: ",".join(map(str, v)) if isinstance(v, list | tuple) else str(v) for k, v in state.items()}
    return urlencode(values, safe=",")


def _check_quantities(quantities: Sequence[str]) -> None:
    for name in quantities:
        if name not in QUANTITIES:
            raise unknown_name("quantity", name, QUANTITIES)
    if not quantities or quantities[0] != "attention":
        raise Refusal(f"The quantities are {list(quantities)}", "attention first", "Put 'attention' before the others")


def truncate_title(text: str, length: int = MAX_TITLE_LENGTH) -> str:
    """A title of at most 200 characters, or another length."""
    return text if len(text) <= length else f"{text[: length - 1]}…"
