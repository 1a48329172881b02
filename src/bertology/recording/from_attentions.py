"""Recordings from what transformers models return with `output_attentions=True`, which is also what BertViz shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from bertology.arrays import Array
from bertology.encoder.tokens import SpecialToken
from bertology.errors import Refusal
from bertology.recording.character_alignment import PADDING_TOKENS, WILDCARD_TOKENS
from bertology.recording.from_arrays import NO_SPECIAL_TOKENS, InputWords, from_arrays
from bertology.recording.recording import Recording

EAGER_REMEDY = "Load the model with attn_implementation='eager' and call it with output_attentions=True"


class TokenConverter(Protocol):
    """What is used of a transformers tokeniser."""

    @property
    def special_tokens_map(self) -> Mapping[str, Any]:
        """The special tokens by role, such as cls_token."""
        ...

    def convert_ids_to_tokens(self, ids: list[int], /) -> list[str]:
        """The tokens of these ids."""
        ...


def from_attentions(
    attentions: Sequence[Any],
    tokens: Any,
    *,
    tokenizer: TokenConverter | None = None,
    attention_mask: Any = None,
    hidden_states: Sequence[Any] | None = None,
    words: Sequence[InputWords | None] | None = None,
    name: str = "attentions",
    corpus: str = "attentions",
    causal: bool | None = None,
    attention_windows: Sequence[int | None] = (),
    renormalise: bool = False,
) -> Recording:
    """A recording from attention as transformers returns it: one tensor per layer, (batch, head, from, to).

    `tokens` are token ids (batch, token) with the `tokenizer` that made them, or one list of strings per input. A
    single input may have layers (head, from, to) and one list of strings, as in BertViz. `attention_mask` (batch,
    token) is 0 for padding; without it padding is recognised by its name. `hidden_states` are the embeddings and one
    tensor per layer, (batch, token, width). For several batches give a list of each: of the layers, of the tokens, of
    the masks and of the hidden states. `words` are the words of each input over all batches, with or without
    annotations. The other arguments are those of `from_arrays`.
    """
    has_batches = bool(attentions) and isinstance(attentions[0], list | tuple)
    per_batch = {
        "attentions": attentions if has_batches else [attentions],
        "tokens": tokens if has_batches else [tokens],
        "attention_mask": attention_mask if has_batches and attention_mask is not None else [attention_mask],
        "hidden_states": hidden_states if has_batches and hidden_states is not None else [hidden_states],
    }
    n_batches = len(per_batch["attentions"])
    for argument, values in per_batch.items():
        if has_batches and list(values) == [None]:
            per_batch[argument] = [None] * n_batches
        elif len(values) != n_batches:
            raise Refusal(
                f"There are {n_batches} batches of attention and {len(values)} of {argument}",
                f"one element of `{argument}` per batch",
                "Give a list with one element per batch",
            )
    input_tokens: list[list[str]] = []
    attention: list[Array] = []
    hidden: list[Array] = []
    n_masked = 0
    for layers, batch_tokens, mask, states in zip(*per_batch.values(), strict=True):
        patterns = _stack_layers(layers, "attention", 4)
        token_lists = list(_token_lists(batch_tokens, tokenizer))
        _check_batch_size(patterns, len(token_lists))
        batch_states = None if states is None else _stack_layers(states, "hidden states", 3)
        masks = [None] * len(token_lists) if mask is None else _rows(mask)
        for index, (token_list, kept) in enumerate(
            zip(token_lists, _kept_positions(masks, patterns.shape[-1]), strict=True)
        ):
            # Tokens may have been listed without the padding.
            input_tokens.append([token_list[i] for i in kept] if len(token_list) > len(kept) else token_list)
            attention.append(patterns[:, index][:, :, kept][:, :, :, kept])
            n_masked += patterns.shape[-1] - len(kept)
            if batch_states is not None:
                hidden.append(batch_states[:, index][:, kept])
    recording = from_arrays(
        input_tokens,
        attention=attention,
        hidden=hidden or None,
        words=words,
        name=name,
        corpus=corpus,
        causal=causal,
        attention_windows=attention_windows,
        renormalise=renormalise,
        special_tokens=NO_SPECIAL_TOKENS if tokenizer is None else _special_tokens(tokenizer),
    )
    n_removed = n_masked + recording.counts.get("padding tokens removed", 0)
    counts = {**recording.counts, "padding tokens removed": n_removed} if n_removed else recording.counts
    return replace(recording, counts=counts)


def to_array(tensor: Any) -> NDArray[np.float32]:
    """An array from an array or from a tensor of any device and dtype, with or without gradients."""
    if isinstance(tensor, np.ndarray | list | tuple):
        return np.asarray(tensor, np.float32)
    return np.asarray(tensor.detach().float().cpu().numpy(), np.float32)


def _stack_layers(layers: Sequence[Any], quantity: str, n_axes: int) -> NDArray[np.float32]:
    """(layer, batch, ...) from one tensor per layer; a batch axis is added if there is none."""
    if not layers or any(layer is None for layer in layers):
        raise Refusal(f"There are no {quantity} of at least one layer", "one tensor per layer", EAGER_REMEDY)
    arrays = [to_array(layer) for layer in layers]
    arrays = [array[None] if array.ndim == n_axes - 1 else array for array in arrays]
    shapes = sorted({array.shape for array in arrays})
    if len(shapes) > 1 or len(shapes[0]) != n_axes:
        axes = "(batch, head, from, to)" if n_axes == 4 else "(batch, token, width)"
        raise Refusal(
            f"The {quantity} have the shapes {', '.join(map(str, shapes))}",
            f"one tensor of the same shape per layer, {axes}",
            EAGER_REMEDY,
        )
    return np.stack(arrays)


def _rows(tensor: Any) -> list[list[Any]]:
    """The rows of a (batch, token) tensor or nested list; a single row becomes a batch of one."""
    rows: list[Any] = list(tensor) if isinstance(tensor, list | tuple) else tensor.tolist()
    rows = [row if isinstance(row, int | str | float) else list(row) for row in rows]
    return rows if rows and isinstance(rows[0], list) else [rows]


def _token_lists(tokens: Any, tokenizer: TokenConverter | None) -> Iterator[list[str]]:
    for row in _rows(tokens):
        if all(isinstance(token, str) for token in row):
            yield cast("list[str]", row)
        elif tokenizer is None:
            raise Refusal("Token ids were given without a tokeniser", "the tokens", "Give `tokenizer` as well")
        else:
            yield list(tokenizer.convert_ids_to_tokens([int(token) for token in row]))


def _check_batch_size(patterns: Array, n_inputs: int) -> None:
    if patterns.shape[1] != n_inputs:
        raise Refusal(
            f"The attention is of {patterns.shape[1]} inputs, and there are tokens of {n_inputs}",
            "one list of tokens per input of the batch",
            "Check that tokens and attention come from the same call of the model",
        )


def _kept_positions(masks: Sequence[Sequence[Any] | None], n_tokens: int) -> Iterator[list[int]]:
    for mask in masks:
        if mask is not None and len(mask) != n_tokens:
            raise Refusal(
                f"The attention mask has {len(mask)} positions, and the attention {n_tokens}",
                "a mask (batch, token) of the same call of the model",
                "Pass the attention_mask that the model was called with",
            )
        yield [position for position in range(n_tokens) if mask is None or mask[position]]


def _special_tokens(tokenizer: TokenConverter) -> dict[str, SpecialToken]:
    """The special tokens of a tokeniser with their kinds; unknown and mask tokens stand for words and are left out."""
    kinds = {
        "cls_token": SpecialToken.CLS,
        "bos_token": SpecialToken.CLS,
        "sep_token": SpecialToken.SEP,
        "eos_token": SpecialToken.SEP,
    }
    special: dict[str, SpecialToken] = {}
    for role, value in tokenizer.special_tokens_map.items():
        if role not in {"unk_token", "mask_token"}:
            for token in [value] if isinstance(value, str) else value:
                special.setdefault(str(token), kinds.get(role, SpecialToken.OTHER))
    return {token: kind for token, kind in special.items() if token not in WILDCARD_TOKENS | PADDING_TOKENS}
