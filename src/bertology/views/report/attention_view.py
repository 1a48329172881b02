"""The attention view of a report: one example sentence, with heads labelled by the results of the report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from bertology.encoder.threads import single_thread
from bertology.errors import Refusal
from bertology.results.result import Result
from bertology.views.page import fragment, page_script
from bertology.views.report.text_views import labelling_results
from bertology.views.view import View, view, view_recording

if TYPE_CHECKING:
    from bertology.corpus.corpus import Corpus
    from bertology.corpus.example import Example
    from bertology.encoder.encoder import Encoder
    from bertology.recording.recording import Recording

MIN_TOKENS, MAX_TOKENS = 8, 48
MAX_CANDIDATES = 50


def attention_view_fragment(encoder: Encoder, corpus: Corpus, results: Sequence[Result] = (), texts: str = "") -> str:
    """The head view and the model view of the first short text of the corpus, as HTML for another page.

    `texts` is the data of further texts that the page can show in the head view.

    Empty if the encoder has no attention, if no text is short enough, or if the front-end has not been built.
    """
    candidates = corpus[:MAX_CANDIDATES] if encoder.heads else ()
    example = next((example for example in candidates if _has_suitable_length(encoder, example)), None)
    if example is None:
        return ""
    with single_thread():
        shown = view(encoder, example, neurons=False, results=labelling_results(results, encoder))
    return _fragment(shown, texts)


def recorded_view_fragment(recording: Recording, results: Sequence[Result] = (), texts: str = "") -> str:
    """The same views of the first short input of a recording; empty if no attention was recorded."""
    candidates = enumerate(recording.inputs[:MAX_CANDIDATES] if "attention" in recording.sites else ())
    index = next((index for index, recorded in candidates if _is_suitable_length(len(recorded.tokens))), None)
    if index is None:
        return ""
    labelling = labelling_results(results, recording.encoder)
    return _fragment(view_recording(recording, index, neurons=False, results=labelling), texts)


def _fragment(shown: View, texts: str) -> str:
    try:
        return fragment(shown.payload, "view=head", "view=model") + Markup(texts) + page_script()
    except Refusal:
        return ""


def _has_suitable_length(encoder: Encoder, example: Example) -> bool:
    return _is_suitable_length(len(encoder.tokenise([example.text_inputs[0]])[0]))


def _is_suitable_length(n_tokens: int) -> bool:
    return MIN_TOKENS <= n_tokens <= MAX_TOKENS
