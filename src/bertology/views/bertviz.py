"""`head_view`, `model_view` and `neuron_view` with the arguments of BertViz.

`attention` is what transformers returns: one tensor per layer, (1, head, from, to).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertology.encoder.tokens import NO_WORD, SpecialToken
from bertology.errors import Refusal
from bertology.recording.character_alignment import join_tokens, special_kind, subword_marker, word_starts
from bertology.recording.from_attentions import to_array
from bertology.views.model_run import QUANTITIES, head_focus
from bertology.views.payload import ModelRun, Payload, Quantity, ViewToken, quantise
from bertology.views.view import View, opening_state, state_text, truncate_title, view

Tensors = Sequence[Any]


def head_view(
    attention: Tensors,
    tokens: Sequence[str],
    sentence_b_start: int | None = None,
    *,
    layer: int | None = None,
    heads: Sequence[int] | None = None,
    **state: Any,
) -> View:
    """Lines between tokens; `layer` and `heads` are counted from 0, as in BertViz."""
    initial = {"view": "head"} | ({"layer": layer + 1} if layer is not None else {})
    initial |= {"heads": [head + 1 for head in heads]} if heads is not None else {}
    return _view_from_tensors(attention, tokens, sentence_b_start, initial | state)


def model_view(attention: Tensors, tokens: Sequence[str], sentence_b_start: int | None = None, **state: Any) -> View:
    """All layers and heads at once."""
    return _view_from_tensors(attention, tokens, sentence_b_start, {"view": "model"} | state)


def neuron_view(
    model: Any, sentence_a: str, sentence_b: str | None = None, *, layer: int = 0, head: int = 0, **state: Any
) -> View:
    """Queries, keys and their products, for any model that `bertology.load` accepts; BertViz needs its own classes."""
    return view(model, sentence_a, sentence_b, neurons=True, view="neuron", layer=layer + 1, heads=[head + 1], **state)


def _view_from_tensors(attention: Tensors, tokens: Sequence[str], start: int | None, state: dict[str, Any]) -> View:
    weights = _stack_layers(attention, len(tokens))
    if start is not None and not 0 < start < len(tokens):
        raise Refusal(
            f"The second sentence starts at {start} of {len(tokens)} tokens",
            "the index of its first token",
            "Leave sentence_b_start out if there is one sentence",
        )
    shown, words = _view_tokens(tokens, len(tokens) if start is None else start)
    run = ModelRun(
        name="attention",
        tokens=shown,
        words=words,
        is_pair=start is not None,
        causal=not np.triu(weights, 1).any(),
        attention_windows=[],
        quantities=[Quantity(name="attention", description=QUANTITIES["attention"], weights=quantise(weights))],
        value_norms=None,
        query=None,
        key=None,
        labels=[],
        trees=[],
        focus=head_focus(weights, shown),
    )
    opening = state_text(opening_state(run, state))
    return View(Payload(title=truncate_title(" ".join(words)), runs=[run], notes=[], state=opening))


def _stack_layers(attention: Tensors, n_tokens: int) -> NDArray[np.float32]:
    """(layer, head, from, to), without a batch axis of length 1."""
    layers = [to_array(layer) for layer in attention]
    layers = [layer[0] if layer.ndim == 4 and layer.shape[0] == 1 else layer for layer in layers]
    shapes = {layer.shape for layer in layers}
    if not layers or len(shapes) != 1 or n_tokens == 0 or shapes != {(layers[0].shape[0], n_tokens, n_tokens)}:
        described = ", ".join(str(shape) for shape in sorted(shapes)) or "no layers"
        raise Refusal(
            f"The attention has {described} for {n_tokens} tokens",
            "one tensor per layer, (1, head, from, to) or (head, from, to), with one row and column per token",
            "Pass one input at a time; with transformers, load the model with attn_implementation='eager' and call it "
            "with output_attentions=True",
        )
    return np.stack(layers)


def _view_tokens(tokens: Sequence[str], start: int) -> tuple[list[ViewToken], list[str]]:
    """The tokens, joined to words by the markers of their tokeniser, if there are any."""
    marker = subword_marker(tokens)
    shown: list[ViewToken] = []
    groups: list[list[str]] = []
    for index, (token, starts_word) in enumerate(zip(tokens, word_starts(tokens, marker), strict=True)):
        special = special_kind(token) is not SpecialToken.NONE
        if not special and (starts_word or index == start):
            groups.append([token])
        elif not special:
            groups[-1].append(token)
        word_index = NO_WORD if special else len(groups) - 1
        shown.append(ViewToken(text=token, word_index=word_index, segment=int(index >= start), special=special))
    return shown, ["".join(join_tokens(group, marker)) or "".join(group) for group in groups]
