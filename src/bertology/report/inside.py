"""Look inside, on the report's page: one text as the model sees it, labelled by the report's own results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bertology.errors import Refusal
from bertology.results.result import Result
from bertology.views.labels import labels_heads
from bertology.views.page import fragment, program
from bertology.views.view import view

if TYPE_CHECKING:
    from bertology.corpus.corpus import Corpus, Item
    from bertology.encoder.encoder import Encoder

SHORTEST, LONGEST = 8, 48
"""Pieces of the example: what shows something, and what is seen at a glance."""
TRIED = 50


def inside(encoder: Encoder, corpus: Corpus, results: Sequence[Result] = ()) -> str:
    """Views of the first text of a few words, as a fragment of a page: lines between tokens, and the maps of all heads.

    It shares no style, name or address with the page. Empty where there is no attention, no such text, or no front-end.
    """
    item = next((one for one in corpus[:TRIED] if encoder.heads and _fits(encoder, one)), None)
    if item is None:
        return ""
    labelling = [result for result in results if labels_heads(result)]
    shown = view(encoder, item, neurons=False, results=labelling or None).payload
    try:
        return fragment(shown, "view=head", "view=model") + program()
    except Refusal:  # an installation without the views still writes its report
        return ""


def _fits(encoder: Encoder, item: Item) -> bool:
    return SHORTEST <= len(encoder.tokenise([item.inputs[0]])[0]) <= LONGEST
