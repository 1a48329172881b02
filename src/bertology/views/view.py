"""`bertology.view`: what a model does with a text, as a page to look at offline, in a notebook, or to save."""

from __future__ import annotations

import webbrowser
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import numpy as np

from bertology.encoder.pieces import Special
from bertology.errors import Refusal, unknown_name
from bertology.views.labels import Labels, head_labels
from bertology.views.page import frame, html
from bertology.views.payload import Coded, Payload, Piece, Quantity, Run, coded, decoded

if TYPE_CHECKING:
    from bertology.encoder.encoder import Encoder
    from bertology.encoder.pieces import Pieces
    from bertology.recording.recording import Recording

QUANTITIES: dict[str, str] = {
    "attention": "attention weights, each row 1 in all",
    "norm": "‖αf(x)‖: attention times the length of what is taken over (Kobayashi et al. 2020)",
    "gradient": "attention times the gradient of the objective, with its sign",
}
NEURONS_UP_TO = 128
"""Pieces of an input whose queries and keys are put on the page unless asked otherwise."""
STATE = ("view", "layer", "heads", "across", "fusion", "units", "special", "part", "keep", "threshold", "top", "theme")


@dataclass(frozen=True)
class View:
    """A page that shows itself in notebooks and can be saved or opened in a browser."""

    payload: Payload
    height: int = 760

    def html(self) -> str:
        """The page as text: self-contained, fetching nothing."""
        return html(self.payload)

    def save(self, path: str | Path) -> Path:
        """Write the page, or with the suffix .npz the weights; a file half written is never left."""
        target = Path(path)
        temporary = target.with_name(f".{target.name}.partial")
        try:
            with temporary.open("wb") as file:
                if target.suffix == ".npz":
                    np.savez_compressed(file, **self.arrays())
                else:
                    file.write(self.html().encode())
            temporary.replace(target)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise Refusal(
                f"{target} cannot be written ({error.strerror})",
                "a file in a folder that exists",
                "Choose another place",
            ) from error
        return target

    def arrays(self) -> dict[str, Any]:
        """The weights by quantity, (layer, head, from, to), and the tokens; those of a second model end in .against."""
        found: dict[str, Any] = {}
        for run, suffix in zip(self.payload.runs, ("", ".against"), strict=False):
            found[f"tokens{suffix}"] = np.array([piece.text for piece in run.pieces], np.str_)
            found |= {f"{quantity.name}{suffix}": decoded(quantity.maps) for quantity in run.quantities}
        return found

    def open(self) -> Path:
        """Save it to a temporary file and show that in the browser."""
        import tempfile

        folder = Path(tempfile.mkdtemp(prefix="bertology-view-"))
        path = self.save(folder / "view.html")
        webbrowser.open(path.as_uri())
        return path

    def widget(self) -> Any:
        """The same views as a Jupyter widget (anywidget) whose `state` can be read and set from Python."""
        from bertology.views.widget import widget

        return widget(self.payload)

    def _repr_html_(self) -> str:
        return frame(self.payload, self.height)


def view(
    model: Encoder | str,
    text: str,
    text_b: str | None = None,
    *,
    against: Encoder | str | None = None,
    against_text: str | tuple[str, str] | None = None,
    quantities: Sequence[str] = ("attention",),
    neurons: bool | None = None,
    labels: Labels | None = None,
    title: str | None = None,
    **state: Any,
) -> View:
    """The attention of a model on a text, or on a pair of texts.

    `against` is a second model, `against_text` a second input (a tuple for a pair), shown beside the first; their
    difference is shown where their pieces make up words in the same places. `quantities` are what can be looked at
    besides attention. `neurons` puts queries and keys on the page (by default for inputs of up to 128 pieces).
    `labels` says what heads do, by name: {"3-5": "previous token"}, or is a result with a number for each head, such as
    that of attention/patterns: heads clearly above its baselines get its label. `state` is what the page opens with,
    for example view="matrix", layer=3, heads=[1, 2] (counted from 1), units="words", special="hide", theme="dark".
    """
    _refuse_unknown(quantities)
    own = (text,) if text_b is None else (text, text_b)
    first = _run(model, own, quantities, neurons, labels)
    runs = [first]
    if against is not None or against_text is not None:
        parts = own if against_text is None else (against_text,) if isinstance(against_text, str) else against_text
        second = _run(model if against is None else against, parts, quantities, neurons, None)
        name = second.name if second.name != first.name else f"{second.name}, second"
        runs.append(second.model_copy(update={"name": name}))
    shown = title if title is not None else text if text_b is None else f"{text} | {text_b}"
    return View(Payload(title=_short(shown), runs=runs, state=state_text(state)))


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


def _run(
    model: Encoder | str,
    texts: tuple[str] | tuple[str, str],
    quantities: Sequence[str],
    neurons: bool | None,
    labels: Labels | None,
) -> Run:
    from bertology.corpus.corpus import read_text
    from bertology.encoder.load import load
    from bertology.recording.recorder import Policy, record

    encoder = load(model) if isinstance(model, str) else model
    corpus = read_text(texts[0] if len(texts) == 1 else texts)
    input_ = corpus[0].inputs[0]
    count = len(encoder.tokenise([input_])[0])
    wanted: list[Any] = ["attention"]
    with_neurons = count <= NEURONS_UP_TO if neurons is None else neurons
    wanted += ["query", "key"] if with_neurons else []
    if len(quantities) > 1:
        from bertology.views.quantities import SITES

        wanted += [SITES[name] for name in quantities[1:]]
    # The score of a sentence needs no masked pieces, which the tokens on the page would not show.
    objective = "top" if encoder.outputs & {"label", "nsp", "choice", "sop"} else "auto"
    recording = record(encoder, corpus, wanted, policy=Policy(objective=objective))
    entry = recording.entries[0]
    maps = [Quantity(name=name, about=QUANTITIES[name], maps=coded(_maps(recording, name))) for name in quantities]
    return Run(
        name=encoder.name,
        pieces=shown_pieces(entry.pieces),
        words=list(input_.words),
        pair=len(texts) > 1,
        quantities=maps,
        query=_vectors(recording, "query", with_neurons),
        key=_vectors(recording, "key", with_neurons),
        labels=head_labels({} if labels is None else labels, encoder.layers, encoder.heads),
    )


def _maps(recording: Recording, quantity: str) -> Any:
    if quantity == "attention":
        return np.asarray(recording["attention"][0], np.float32)
    from bertology.views.quantities import SITES

    return np.asarray(recording[SITES[quantity]][0], np.float32)


def _vectors(recording: Recording, site: str, there: bool) -> Coded | None:
    return coded(np.asarray(recording[site][0], np.float32)) if there else None


def shown_pieces(pieces: Pieces) -> list[Piece]:
    """The pieces as a page shows them; special pieces belong to the part that they end or begin."""
    second = np.flatnonzero(pieces.part == 1)
    start = int(second[0]) if len(second) else len(pieces)
    return [
        Piece(
            text=token,
            word=int(pieces.word[place]),
            segment=int(place >= start),
            special=bool(pieces.special[place] != Special.NONE),
        )
        for place, token in enumerate(pieces.tokens)
    ]


def _short(text: str) -> str:
    return text if len(text) <= 200 else text[:199] + "…"
