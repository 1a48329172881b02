"""One model on one input, made into what a page shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bertology.corpus.corpus import Input, Item
from bertology.corpus.sentence import Sentence, from_text
from bertology.encoder.pieces import Special
from bertology.errors import Refusal
from bertology.views.payload import Coded, Piece, Quantity, Run, coded
from bertology.views.trees import gold_tree

if TYPE_CHECKING:
    from bertology.encoder.encoder import Encoder
    from bertology.encoder.pieces import Pieces
    from bertology.recording.recording import Recording

Text = str | Sentence | Item
QUANTITIES: dict[str, str] = {
    "attention": "attention weights, each row 1 in all",
    "norm": "‖αf(x)‖: attention times the length of what is taken over (Kobayashi et al. 2020)",
    "gradient": "attention times the gradient of the objective, with its sign",
}
NEURONS_UP_TO = 128
"""Pieces of an input whose queries and keys are put on the page unless asked otherwise."""


def input_of(text: Text, text_b: Text | None = None) -> Input:
    """What the encoder is shown: one text or two, with whatever annotation they carry."""
    if isinstance(text, Item) and text_b is None:
        return text.inputs[0]
    return Input(tuple(_sentence(one) for one in (text, text_b) if one is not None))


def _sentence(text: Text) -> Sentence:
    if isinstance(text, Item):
        return text.parts[0]
    return from_text(text) if isinstance(text, str) else text


def run_of(encoder: Encoder, input_: Input, quantities: Sequence[str], neurons: bool | None) -> Run:
    """Maps, queries and keys, and the arcs that the input is annotated with."""
    from bertology.corpus.corpus import Corpus
    from bertology.recording.recorder import Policy, record
    from bertology.views.quantities import LENGTHS, SITES

    kind = "sentence" if len(input_.parts) == 1 else "pair"
    corpus = Corpus((Item(input_.parts, kind, id="1"),), name="text")
    count = len(encoder.tokenise([input_])[0])
    if count > encoder.max_pieces:
        raise Refusal(
            f"The text has {count} pieces",
            f"at most {encoder.max_pieces}, which is as far as {encoder.name} reads",
            "Shorten the text, or choose a model that reads longer ones",
        )
    with_neurons = count <= NEURONS_UP_TO if neurons is None else neurons
    wanted: list[Any] = ["attention", LENGTHS, *(["query", "key"] if with_neurons else [])]
    wanted += [SITES[name] for name in quantities[1:]]
    # The score of a sentence needs no masked pieces, which the tokens on the page would not show.
    objective = "top" if encoder.outputs & {"label", "nsp", "choice", "sop"} else "auto"
    recording = record(encoder, corpus, wanted, policy=Policy(objective=objective))
    maps = {name: _array(recording, "attention" if name == "attention" else SITES[name]) for name in quantities}
    lengths = _array(recording, LENGTHS)[:, :, None]
    gold = gold_tree(input_)
    return Run(
        name=encoder.name,
        pieces=shown_pieces(recording.entries[0].pieces),
        words=list(input_.words),
        pair=len(input_.parts) > 1,
        causal=encoder.causal,
        reach=list(encoder.reach),
        quantities=[Quantity(name=name, about=QUANTITIES[name], maps=coded(one)) for name, one in maps.items()],
        lengths=coded(lengths) if np.isfinite(lengths).all() else None,
        query=_vectors(recording, "query", with_neurons),
        key=_vectors(recording, "key", with_neurons),
        labels=[],
        trees=[gold] if gold else [],
    )


def _array(recording: Recording, site: Any) -> NDArray[np.float32]:
    return np.asarray(recording[site][0], np.float32)


def _vectors(recording: Recording, site: str, there: bool) -> Coded | None:
    return coded(_array(recording, site)) if there else None


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
