"""The attention view of a report: one example sentence, with heads labelled by the results of the report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bertology.errors import Refusal
from bertology.results.result import Result
from bertology.views.head_labels import label_rank
from bertology.views.page import fragment, page_script
from bertology.views.view import view

if TYPE_CHECKING:
    from bertology.corpus.corpus import Corpus, Example
    from bertology.encoder.encoder import Encoder

MIN_TOKENS, MAX_TOKENS = 8, 48
MAX_CANDIDATES = 50


def attention_view_fragment(encoder: Encoder, corpus: Corpus, results: Sequence[Result] = ()) -> str:
    """The head view and the model view of the first short text of the corpus, as HTML for another page.

    Empty if the encoder has no attention, if no text is short enough, or if the front-end has not been built.
    """
    candidates = corpus[:MAX_CANDIDATES] if encoder.heads else ()
    example = next((example for example in candidates if _has_suitable_length(encoder, example)), None)
    if example is None:
        return ""
    labelling = [result for result in results if label_rank(result)]
    payload = view(encoder, example, neurons=False, results=labelling or None).payload
    try:
        return fragment(payload, "view=head", "view=model") + page_script()
    except Refusal:
        return ""


def _has_suitable_length(encoder: Encoder, example: Example) -> bool:
    return MIN_TOKENS <= len(encoder.tokenise([example.text_inputs[0]])[0]) <= MAX_TOKENS
