"""BertViz's calls on plain tensors: the same arguments, our views.

`attention` is what transformers returns: one tensor a layer, (1, head, from, to).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertology.encoder.pieces import NOWHERE, Special
from bertology.errors import Refusal
from bertology.recording.spelling import is_byte_level, special_kind, words_of
from bertology.views.payload import Payload, Piece, Quantity, Run, coded
from bertology.views.runs import QUANTITIES
from bertology.views.view import View, shortened, state_text, view

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
    """Lines between tokens; `layer` and `heads` are counted from 0, as BertViz does."""
    opened = {"view": "head"} | ({"layer": layer + 1} if layer is not None else {})
    opened |= {"heads": [head + 1 for head in heads]} if heads is not None else {}
    return _of_tensors(attention, tokens, sentence_b_start, opened | state)


def model_view(attention: Tensors, tokens: Sequence[str], sentence_b_start: int | None = None, **state: Any) -> View:
    """All layers and heads at once."""
    return _of_tensors(attention, tokens, sentence_b_start, {"view": "model"} | state)


def neuron_view(
    model: Any, sentence_a: str, sentence_b: str | None = None, *, layer: int = 0, head: int = 0, **state: Any
) -> View:
    """Queries, keys and their products; any model that `bertology.load` knows, where BertViz needs its own classes."""
    return view(model, sentence_a, sentence_b, neurons=True, view="neuron", layer=layer + 1, heads=[head + 1], **state)


def _of_tensors(attention: Tensors, tokens: Sequence[str], start: int | None, state: dict[str, Any]) -> View:
    maps = _stacked(attention, len(tokens))
    if start is not None and not 0 < start < len(tokens):
        raise Refusal(
            f"The second sentence starts at {start} of {len(tokens)} tokens",
            "the index of its first token",
            "Leave sentence_b_start out where there is one sentence",
        )
    pieces, words = _pieces(tokens, len(tokens) if start is None else start)
    shown = Quantity(name="attention", about=QUANTITIES["attention"], maps=coded(maps))
    run = Run(
        name="attention",
        pieces=pieces,
        words=words,
        pair=start is not None,
        causal=not np.triu(maps, 1).any(),
        reach=[],
        quantities=[shown],
        lengths=None,
        query=None,
        key=None,
        labels=[],
        trees=[],
    )
    return View(Payload(title=shortened(" ".join(words)), runs=[run], notes=[], state=state_text(state)))


def _stacked(attention: Tensors, count: int) -> NDArray[np.float32]:
    """(layer, head, from, to), without the axis of a batch of one."""
    layers = [_array(layer) for layer in attention]
    layers = [layer[0] if layer.ndim == 4 and layer.shape[0] == 1 else layer for layer in layers]
    shapes = {layer.shape for layer in layers}
    if not layers or len(shapes) != 1 or count == 0 or shapes != {(layers[0].shape[0], count, count)}:
        found = ", ".join(str(shape) for shape in sorted(shapes)) or "no layers"
        raise Refusal(
            f"The attention has {found} for {count} tokens",
            "one tensor a layer, (1, head, from, to) or (head, from, to), as many from and to as tokens",
            "Give one input at a time; with transformers, load the model with attn_implementation='eager' and ask for "
            "output_attentions=True",
        )
    return np.stack(layers)


def _array(layer: Any) -> NDArray[np.float32]:
    """An array, or a tensor of any device and precision that may want gradients."""
    if isinstance(layer, np.ndarray | list | tuple):
        return np.asarray(layer, np.float32)
    return np.asarray(layer.detach().float().cpu().numpy(), np.float32)


def _pieces(tokens: Sequence[str], start: int) -> tuple[list[Piece], list[str]]:
    """Tokens put together into words by their markers, as far as they have any."""
    byte_level = is_byte_level(tokens)
    marked = byte_level or any("▁" in token for token in tokens)
    pieces: list[Piece] = []
    groups: list[list[str]] = []
    open_word = False
    for place, token in enumerate(tokens):
        special = special_kind(token) is not Special.NONE
        continues = not token.startswith(("Ġ", "▁")) if marked else token.startswith("##") and len(token) > 2
        if not special and open_word and continues and place != start:
            groups[-1].append(token)
        elif not special:
            groups.append([token])
        open_word = not special
        word = NOWHERE if special else len(groups) - 1
        pieces.append(Piece(text=token, word=word, segment=int(place >= start), special=special))
    return pieces, ["".join(words_of(group, byte_level=byte_level)) or "".join(group) for group in groups]
