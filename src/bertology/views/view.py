"""`bertology.view`: what a model does with a text, as a page to look at offline, in a notebook, or to save."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import numpy as np

from bertology.errors import Refusal, unknown_name
from bertology.views.evidence import Results, evidence
from bertology.views.labels import given_labels
from bertology.views.page import html
from bertology.views.payload import Payload, Run, decoded
from bertology.views.runs import QUANTITIES, Text, input_of, run_of
from bertology.views.shown import Shown

if TYPE_CHECKING:
    from bertology.corpus.corpus import Input
    from bertology.encoder.encoder import Encoder

STATE = (
    "view", "layer", "heads", "across", "fusion", "units", "special", "part", "keep", "threshold", "top", "tree",
    "theme",
)  # fmt: skip


@dataclass(frozen=True)
class View(Shown):
    """The views of one or two runs; with the suffix .npz `save` writes the weights."""

    payload: Payload
    height: int = 760

    @property
    def title(self) -> str:
        """What stands above it."""
        return self.payload.title

    def html(self) -> str:
        """The page as text: self-contained, fetching nothing."""
        return html(self.payload)

    def content(self, suffix: str) -> bytes:
        """The page, or the weights."""
        if suffix != ".npz":
            return super().content(suffix)
        packed = BytesIO()
        np.savez_compressed(packed, **self.arrays())
        return packed.getvalue()

    def arrays(self) -> dict[str, Any]:
        """The weights by quantity, (layer, head, from, to), and the tokens; those of a second model end in .against."""
        found: dict[str, Any] = {}
        for run, suffix in zip(self.payload.runs, ("", ".against"), strict=False):
            found[f"tokens{suffix}"] = np.array([piece.text for piece in run.pieces], np.str_)
            found |= {f"{quantity.name}{suffix}": decoded(quantity.maps) for quantity in run.quantities}
        return found

    def widget(self) -> Any:
        """The same views as a Jupyter widget (anywidget) whose `state` can be read and set from Python."""
        from bertology.views.widget import widget

        return widget(self.payload)


def view(
    model: Encoder | str,
    text: Text,
    text_b: Text | None = None,
    *,
    against: Encoder | str | None = None,
    against_text: Text | tuple[Text, Text] | None = None,
    quantities: Sequence[str] = ("attention",),
    neurons: bool | None = None,
    labels: Mapping[str, str] | None = None,
    results: Results | None = None,
    title: str | None = None,
    **state: Any,
) -> View:
    """The attention of a model on a text, or on a pair of texts.

    A text may be a sentence or an item of a corpus: a dependency tree that it is annotated with is drawn over its
    tokens. `against` is a second model, `against_text` a second input (a tuple for a pair), shown beside the first;
    their difference is shown where their pieces make up words in the same places. `quantities` are what can be looked
    at besides attention. `neurons` puts queries and keys on the page (by default for inputs of up to 128 pieces).

    `labels` says what heads do, by name: {"3-5": "previous token (0.83 of its weight)"}. `results` are results of
    analyses, files of them, or a folder of such files: those of attention/patterns and heads/* label the heads that
    stand clearly above their baselines, with the numbers; the arcs of probes/structural are drawn over the same words.

    `state` is what the page opens with, for example view="matrix", layer=3, heads=[1, 2] (counted from 1),
    units="words", special="hide", theme="dark".
    """
    from bertology.encoder.load import load

    _refuse_unknown(quantities)
    if state.get("view") == "neuron":
        if neurons is False:
            raise Refusal("The page is to open with neurons, and to have none", "one of them", "Leave out one of both")
        neurons = True
    if state.get("view") == "difference" and against is None and against_text is None:
        raise Refusal("There is nothing to compare with", "a second model or text", "Name it: against, against_text")
    encoder = load(model) if isinstance(model, str) else model
    input_ = input_of(text, text_b)
    first = run_of(encoder, input_, quantities, neurons)
    given = given_labels(labels or {}, encoder.layers, encoder.heads)
    notes: list[str] = []
    if results is None:
        first = first.model_copy(update={"labels": given})
    else:
        known = evidence(results, encoder, input_)
        notes = known.notes
        first = first.model_copy(update={"labels": given + known.labels, "trees": first.trees + known.trees})
    runs = [first]
    if against is not None or against_text is not None:
        other = input_
        if against_text is not None:
            other = input_of(*(against_text if isinstance(against_text, tuple) else (against_text,)))
        beside = encoder if against is None else load(against) if isinstance(against, str) else against
        runs.append(_told_apart(run_of(beside, other, quantities, neurons), first))
    shown = title if title is not None else _title(input_)
    return View(Payload(title=shortened(shown), runs=runs, notes=notes, state=state_text(state)))


def _told_apart(second: Run, first: Run) -> Run:
    """With a name of its own: two runs of one model are told apart by their inputs."""
    return second.model_copy(update={"name": f"{second.name} (second)"}) if second.name == first.name else second


def _title(input_: Input) -> str:
    return " | ".join(part.text for part in input_.parts)


def state_text(state: Mapping[str, Any]) -> str:
    """What a page opens with, as in the address of a link; layers and heads are counted from 1."""
    for name in state:
        if name not in STATE:
            raise unknown_name("option of a view", name, STATE)
    written = {k: ",".join(map(str, v)) if isinstance(v, list | tuple) else str(v) for k, v in state.items()}
    return urlencode(written, safe=",")


def _refuse_unknown(quantities: Sequence[str]) -> None:
    for name in quantities:
        if name not in QUANTITIES:
            raise unknown_name("quantity", name, QUANTITIES)
    if not quantities or quantities[0] != "attention":
        raise Refusal(f"The quantities are {list(quantities)}", "attention first", "Put 'attention' before the others")


def shortened(text: str) -> str:
    """A title of bounded length."""
    return text if len(text) <= 200 else text[:199] + "…"
