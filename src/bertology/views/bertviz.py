"""`head_view`, `model_view`, `neuron_view` and `show` with the arguments of BertViz 1.4, in the same order.

`attention` is what transformers returns: one tensor per layer, (1, head, from, to). Layers and heads are counted from 0
in the arguments, as in BertViz, and from 1 on the page, as everywhere else in this package. Two things differ. Without
`html_action` a call returns the view, which a notebook shows as the last expression of a cell and which can be saved;
html_action="view" shows it at once and returns nothing. And the theme follows the browser unless `display_mode` is
given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bertology.encoder.load import load
from bertology.encoder.tokens import NO_WORD, SpecialToken
from bertology.errors import Refusal, unknown_name
from bertology.recording.character_alignment import join_tokens, special_kind, subword_marker, word_starts
from bertology.recording.from_attentions import to_array
from bertology.views.model_run import QUANTITIES, head_focus
from bertology.views.payload import AttentionRole, ModelRun, Payload, Quantity, ViewToken, quantise
from bertology.views.view import View, opening_state, state_text, truncate_title, view

Tensors = Sequence[Any]
HtmlAction = Literal["view", "return"]
DisplayMode = Literal["light", "dark"]
ENCODER_DECODER = "encoder_attention, decoder_attention or cross_attention"
ROLE_NAMES: dict[AttentionRole, str] = {
    "encoder": "encoder self-attention",
    "decoder": "decoder self-attention",
    "cross": "cross-attention, from the decoder to the encoder",
}


def head_view(
    attention: Tensors | None = None,
    tokens: Sequence[str] | None = None,
    sentence_b_start: int | None = None,
    prettify_tokens: bool = True,
    layer: int | None = None,
    heads: Sequence[int] | None = None,
    encoder_attention: Tensors | None = None,
    decoder_attention: Tensors | None = None,
    cross_attention: Tensors | None = None,
    encoder_tokens: Sequence[str] | None = None,
    decoder_tokens: Sequence[str] | None = None,
    include_layers: Sequence[int] | None = None,
    html_action: HtmlAction | None = None,
    **state: Any,
) -> Any:
    """Lines between the tokens of one layer, as a `View`; `state` is that of `bertology.view`."""
    shown = {"view": "head"} | ({"layer": layer + 1} if layer is not None else {})
    shown |= {"heads": [head + 1 for head in heads]} if heads is not None else {}
    if layer is not None and include_layers is not None and layer not in include_layers:
        raise Refusal(
            f"Layer {layer} is to be shown and not among include_layers {list(include_layers)}",
            "one of the included layers",
            "Change one of them",
        )
    runs = _model_runs(
        _Tensors(attention, tokens, sentence_b_start),
        _Tensors(encoder_attention, encoder_tokens),
        _Tensors(decoder_attention, decoder_tokens),
        cross_attention,
        prettify=prettify_tokens,
        include_layers=include_layers,
        include_heads=None,
    )
    return _finish(_view_of(runs, shown | state), html_action)


def model_view(
    attention: Tensors | None = None,
    tokens: Sequence[str] | None = None,
    sentence_b_start: int | None = None,
    prettify_tokens: bool = True,
    display_mode: DisplayMode | None = None,
    encoder_attention: Tensors | None = None,
    decoder_attention: Tensors | None = None,
    cross_attention: Tensors | None = None,
    encoder_tokens: Sequence[str] | None = None,
    decoder_tokens: Sequence[str] | None = None,
    include_layers: Sequence[int] | None = None,
    include_heads: Sequence[int] | None = None,
    html_action: HtmlAction | None = None,
    **state: Any,
) -> Any:
    """All layers and heads at once, as a `View`; `state` is that of `bertology.view`."""
    runs = _model_runs(
        _Tensors(attention, tokens, sentence_b_start),
        _Tensors(encoder_attention, encoder_tokens),
        _Tensors(decoder_attention, decoder_tokens),
        cross_attention,
        prettify=prettify_tokens,
        include_layers=include_layers,
        include_heads=include_heads,
    )
    return _finish(_view_of(runs, {"view": "model"} | _theme(display_mode) | state), html_action)


def neuron_view(
    model: Any, sentence_a: str, sentence_b: str | None = None, *, layer: int = 0, head: int = 0, **state: Any
) -> View:
    """Queries, keys and their products, for any model that `bertology.load` accepts."""
    return view(model, sentence_a, sentence_b, neurons=True, view="neuron", layer=layer + 1, heads=[head + 1], **state)


def show(
    model: Any,
    model_type: str,
    tokenizer: Any,
    sentence_a: str,
    sentence_b: str | None = None,
    display_mode: DisplayMode | None = None,
    layer: int | None = None,
    head: int | None = None,
    html_action: HtmlAction | None = None,
) -> Any:
    """`bertviz.neuron_view.show`: the neuron view of a model of transformers, with its tokeniser.

    `model_type` is not used: the model says what it is, and needs no class of BertViz.
    """
    encoder = load(model, tokenizer)
    return _finish(
        neuron_view(encoder, sentence_a, sentence_b, layer=layer or 0, head=head or 0, **_theme(display_mode)),
        html_action,
    )


@dataclass(frozen=True, eq=False)
class _Tensors:
    """The attention of one part of a model with its tokens, as they were given."""

    attention: Tensors | None
    tokens: Sequence[str] | None
    start: int | None = None


def _model_runs(
    single: _Tensors,
    encoder: _Tensors,
    decoder: _Tensors,
    cross_attention: Tensors | None,
    *,
    prettify: bool,
    include_layers: Sequence[int] | None,
    include_heads: Sequence[int] | None,
) -> list[ModelRun]:
    """One run for a model of one part; for an encoder-decoder one for each kind of attention that was given."""
    parts = (encoder.attention, decoder.attention, cross_attention)
    if (single.attention is None) == all(part is None for part in parts):
        problem = (
            "No attention was given" if single.attention is None else f"attention was given beside {ENCODER_DECODER}"
        )
        raise Refusal(problem, f"either attention, or {ENCODER_DECODER}", "Give the outputs of one model")
    included = include_layers, include_heads
    if single.attention is not None:
        tokens = _required("tokens", single.tokens)
        return [_self_attention(single.attention, tokens, single.start, "", prettify, included)]
    if single.start is not None:
        raise Refusal(
            "sentence_b_start was given for an encoder-decoder model", "one text on each side", "Leave it out"
        )
    runs: list[ModelRun] = []
    if encoder.attention is not None:
        tokens = _required("encoder_tokens", encoder.tokens)
        runs.append(_self_attention(encoder.attention, tokens, None, "encoder", prettify, included))
    if decoder.attention is not None:
        tokens = _required("decoder_tokens", decoder.tokens)
        runs.append(_self_attention(decoder.attention, tokens, None, "decoder", prettify, included))
    if cross_attention is not None:
        sources = _required("encoder_tokens", encoder.tokens)
        targets = _required("decoder_tokens", decoder.tokens)
        runs.append(_cross_attention(cross_attention, targets, sources, prettify, included))
    return runs


def _required(name: str, tokens: Sequence[str] | None) -> Sequence[str]:
    if tokens is None:
        raise Refusal(f"Attention was given without {name}", "one token for each row or column", f"Give {name}")
    return tokens


Included = tuple[Sequence[int] | None, Sequence[int] | None]
"""The layers and the heads to include; None for all."""


def _self_attention(
    attention: Tensors,
    tokens: Sequence[str],
    start: int | None,
    role: AttentionRole,
    prettify: bool,
    included: Included,
) -> ModelRun:
    weights = _stack_layers(attention, len(tokens), len(tokens))
    if start is not None and not 0 < start < len(tokens):
        raise Refusal(
            f"The second sentence starts at {start} of {len(tokens)} tokens",
            "the index of its first token",
            "Leave sentence_b_start out if there is one sentence",
        )
    shown, words = _view_tokens(tokens, len(tokens) if start is None else start, prettify)
    is_causal = not np.triu(weights, 1).any()
    return _model_run(weights, shown, words, role, included, is_pair=start is not None, causal=is_causal)


def _cross_attention(
    attention: Tensors, targets: Sequence[str], sources: Sequence[str], prettify: bool, included: Included
) -> ModelRun:
    """Tokens of the decoder attend to those of the encoder: the pair of both texts, from the second to the first."""
    block = _stack_layers(attention, len(targets), len(sources))
    n = len(sources) + len(targets)
    weights = np.zeros((*block.shape[:2], n, n), np.float32)
    weights[:, :, len(sources) :, : len(sources)] = block
    source_tokens, source_words = _view_tokens(sources, len(sources), prettify)
    target_tokens, target_words = _view_tokens(targets, 0, prettify)
    moved = [
        token.model_copy(update={"word_index": token.word_index + len(source_words)})
        if token.word_index != NO_WORD
        else token
        for token in target_tokens
    ]
    return _model_run(weights, source_tokens + moved, source_words + target_words, "cross", included, is_pair=True)


def _model_run(
    weights: NDArray[np.float32],
    tokens: list[ViewToken],
    words: list[str],
    role: AttentionRole,
    included: Included,
    *,
    is_pair: bool,
    causal: bool = False,
) -> ModelRun:
    layers, heads = (
        _check_included(name, chosen, size)
        for name, chosen, size in zip(("layers", "heads"), included, weights.shape[:2], strict=True)
    )
    kept = weights[np.ix_(layers, heads)]
    return ModelRun(
        name=ROLE_NAMES.get(role, "attention"),
        role=role,
        tokens=tokens,
        words=words,
        is_pair=is_pair,
        causal=causal,
        attention_windows=[],
        quantities=[Quantity(name="attention", description=QUANTITIES["attention"], weights=quantise(kept))],
        value_norms=None,
        query=None,
        key=None,
        labels=[],
        trees=[],
        focus=head_focus(kept, tokens),
        layer_numbers=[layer + 1 for layer in layers] if len(layers) < weights.shape[0] else [],
        head_numbers=[head + 1 for head in heads] if len(heads) < weights.shape[1] else [],
    )


def _check_included(name: str, chosen: Sequence[int] | None, size: int) -> list[int]:
    if chosen is None:
        return list(range(size))
    numbers = sorted(set(chosen))
    if not numbers or numbers[0] < 0 or numbers[-1] >= size:
        raise Refusal(
            f"include_{name} is {list(chosen)}, and the attention has {size} {name}",
            f"numbers from 0 to {size - 1}",
            f"Change include_{name}",
        )
    return numbers


def _view_of(runs: list[ModelRun], state: dict[str, Any]) -> View:
    title = truncate_title(" ".join(runs[-1].words))
    return View(Payload(title=title, runs=runs, notes=[], state=state_text(opening_state(runs[0], state))))


def _theme(display_mode: DisplayMode | None) -> dict[str, str]:
    if display_mode is None:
        return {}
    if display_mode not in ("light", "dark"):
        raise unknown_name("display mode", display_mode, ("light", "dark"))
    return {"theme": display_mode}


def _finish(shown: View, html_action: HtmlAction | None) -> View | None:
    """Show the view, or return it."""
    if html_action in (None, "return"):
        return shown
    if html_action != "view":
        raise unknown_name("html_action", html_action, ("view", "return"))
    shown.display()
    return None


def _stack_layers(attention: Tensors, n_rows: int, n_columns: int) -> NDArray[np.float32]:
    """(layer, head, from, to), without a batch axis of length 1."""
    layers = [to_array(layer) for layer in attention]
    layers = [layer[0] if layer.ndim == 4 and layer.shape[0] == 1 else layer for layer in layers]
    shapes = {layer.shape for layer in layers}
    expected = (layers[0].shape[0], n_rows, n_columns) if layers and layers[0].ndim else ()
    if not layers or not n_rows or not n_columns or shapes != {expected}:
        described = ", ".join(str(shape) for shape in sorted(shapes)) or "no layers"
        sides = f"{n_rows}" if n_rows == n_columns else f"{n_rows} and {n_columns}"
        raise Refusal(
            f"The attention has {described} for {sides} tokens",
            "one tensor per layer, (1, head, from, to) or (head, from, to), with one row and column per token",
            "Pass one input at a time; with transformers, load the model with attn_implementation='eager' and call it "
            "with output_attentions=True",
        )
    return np.stack(layers)


def _view_tokens(tokens: Sequence[str], start: int, prettify: bool) -> tuple[list[ViewToken], list[str]]:
    """The tokens, joined to words by the markers of their tokeniser, if there are any.

    With `prettify`, the markers of word starts and ends (Ġ, ▁, </w>) are not shown.
    """
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
        is_plain = special or not prettify or marker == "##"
        text = token if is_plain else "".join(join_tokens([token], marker)) or token
        shown.append(ViewToken(text=text, word_index=word_index, segment=int(index >= start), special=special))
    return shown, ["".join(join_tokens(group, marker)) or "".join(group) for group in groups]
