"""Distance between the activations of two versions of a text, layer by layer, at the tokens they share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bertology.arrays import FloatArray, IntArray
from bertology.corpus.example import Example, TextInput
from bertology.encoder.encoder import Encoder
from bertology.encoder.token_batch import RecordedInput, TokenBatch
from bertology.encoder.tokens import SpecialToken, TokenisedInput
from bertology.estimates.resampling import ratio
from bertology.lazy import torch
from bertology.numerics.edit_distance import alignment

if TYPE_CHECKING:
    from bertology.encoder.attention_hook import LayerActivations


STATES, FIRST_TOKEN, ATTENTION = "hidden-state distance", "[CLS] distance", "attention distance"
Divergence = dict[str, FloatArray]
"""(layer + 1,) distances of two versions of a text by name; NaN if nothing can be compared, as attention at layer 0."""


@dataclass(frozen=True)
class ForwardActivations:
    """Tokens of one text, (layer + 1, token, width) hidden states and (layer, head, from, to) attention."""

    tokens: TokenisedInput
    hidden_states: FloatArray
    attention: list[FloatArray]


def forward_activations(encoder: Encoder, text: TextInput) -> ForwardActivations | None:
    """Activations on one text; None if it is empty or too long."""
    (tokens,) = encoder.tokenise([text])
    if len(tokens) > encoder.max_length or not len(tokens):
        return None
    attention: list[FloatArray] = []

    def collect_attention(layer: LayerActivations) -> None:
        attention.append(layer.attention[0].double().cpu().numpy())

    batch = TokenBatch([RecordedInput(0, 0, 0, text, tokens)], encoder.device)
    with torch.no_grad():
        output = encoder.forward(batch.model_inputs, on_layer=collect_attention, hidden=True, logits=False)
    states = np.stack([states[0].double().cpu().numpy() for states in output.hidden_states])
    return ForwardActivations(tokens, states, attention)


def layer_divergence(encoder: Encoder, original: Example, perturbed: Example) -> Divergence | None:
    """Distances between two versions of an example, averaged over the inputs in which they differ; None without any.

    State distances are 1 - cosine at shared non-special tokens, and at the first token. Attention distance is the total
    variation of the attention of shared tokens over shared tokens and all other tokens together, averaged over heads.
    """
    divergences: list[Divergence] = []
    for first, second in zip(original.text_inputs, perturbed.text_inputs, strict=True):
        if first.words == second.words and [s.text for s in first.segments] == [s.text for s in second.segments]:
            continue
        left, right = forward_activations(encoder, first), forward_activations(encoder, second)
        if left is not None and right is not None:
            divergences.append(_activation_divergence(left, right))
    if not divergences:
        return None
    return {name: _nan_mean([divergence[name] for divergence in divergences]) for name in divergences[0]}


def shared_tokens(original: TokenisedInput, perturbed: TokenisedInput) -> list[tuple[int, int]]:
    """Pairs of positions of tokens that two texts share: aligned tokens, then moved ones in order."""
    first, second = original.ids.tolist(), perturbed.ids.tolist()
    aligned = alignment(first, second)
    matched_first, matched_second = {a for a, _ in aligned}, {b for _, b in aligned}
    unmatched: defaultdict[int, list[int]] = defaultdict(list)
    for position in range(len(second) - 1, -1, -1):
        if position not in matched_second:
            unmatched[second[position]].append(position)
    moved = [
        (position, unmatched[token].pop())
        for position, token in enumerate(first)
        if position not in matched_first and unmatched[token]
    ]
    return sorted([*aligned, *moved])


def _activation_divergence(original: ForwardActivations, perturbed: ForwardActivations) -> Divergence:
    pairs = shared_tokens(original.tokens, perturbed.tokens)
    non_special = [
        (a, b)
        for a, b in pairs
        if original.tokens.special_kinds[a] == SpecialToken.NONE == perturbed.tokens.special_kinds[b]
    ]
    positions, perturbed_positions = np.array(pairs).reshape(-1, 2).T
    attention_distances = [
        _attention_distance(a, b, positions, perturbed_positions)
        for a, b in zip(original.attention, perturbed.attention, strict=True)
    ]
    return {
        STATES: _state_distance(original.hidden_states, perturbed.hidden_states, non_special),
        FIRST_TOKEN: _state_distance(original.hidden_states, perturbed.hidden_states, [(0, 0)]),
        ATTENTION: np.array([np.nan, *attention_distances]),
    }


def _state_distance(original: FloatArray, perturbed: FloatArray, pairs: Sequence[tuple[int, int]]) -> FloatArray:
    if not pairs:
        return np.full(len(original), np.nan)
    positions, perturbed_positions = np.array(pairs).T
    first, second = original[:, positions], perturbed[:, perturbed_positions]
    norms = np.linalg.norm(first, axis=-1) * np.linalg.norm(second, axis=-1)
    return 1 - ((first * second).sum(-1) / norms.clip(1e-12)).mean(-1)


def _attention_distance(
    original: FloatArray, perturbed: FloatArray, positions: IntArray, perturbed_positions: IntArray
) -> float:
    """Total variation, 0 to 1; attention to tokens that are not shared counts as one more target."""
    if not len(positions):
        return float("nan")
    first = original[:, positions][:, :, positions]
    second = perturbed[:, perturbed_positions][:, :, perturbed_positions]
    elsewhere = np.abs(first.sum(-1) - second.sum(-1))
    return float((np.abs(first - second).sum(-1) + elsewhere).mean() / 2)


def _nan_mean(values: Sequence[FloatArray]) -> FloatArray:
    stacked = np.stack(values)
    is_defined = np.isfinite(stacked)
    return ratio(np.where(is_defined, stacked, 0.0).sum(0), is_defined.sum(0), empty=np.nan)
