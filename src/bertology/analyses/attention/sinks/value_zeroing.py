"""Effect on a model's output of setting the value vectors of selected tokens to zero, in a layer or head."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from bertology.arrays import BoolArray, FloatArray
from bertology.encoder.attention_hook import Gates
from bertology.encoder.encoder import GatedEncoder
from bertology.encoder.token_batch import TokenBatch
from bertology.encoder.tokens import SpecialToken
from bertology.errors import Refusal
from bertology.lazy import torch
from bertology.recording.objectives import masked_losses, masked_positions
from bertology.recording.plan import token_batches
from bertology.recording.recording import Recording

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.encoder import ModelOutput

EffectMetric = Literal["hidden", "loss", "logits"]
LayerScope = Literal["layer", "layer-and-above"]

UNITS: dict[EffectMetric, str] = {
    "hidden": "relative change of the last hidden state",
    "loss": "nats per masked token",
    "logits": "nats (Kullback-Leibler divergence)",
}
DISTRIBUTION_TASK_HEADS = ("mlm", "lm", "label", "token", "nsp", "sop")
"""Task heads whose scores are a distribution; the first one that a model has is used."""


@dataclass(frozen=True)
class ValueZeroing:
    """Where the effect is measured, whether higher layers zero the same value vectors, and how many inputs (0: all)."""

    metric: EffectMetric
    scope: LayerScope
    by_head: bool
    sample_size: int
    seed: int


def zeroing_effects(
    recording: Recording, encoder: GatedEncoder, select_tokens: Callable[[TokenBatch], Tensor], config: ValueZeroing
) -> tuple[FloatArray, FloatArray]:
    """The effect of zeroing the selected tokens, and of zeroing as many random other tokens.

    Both are (sentence, layer) or (sentence, layer, head); NaN if a sentence is not in the sample, has no token to zero,
    or no non-special token left to measure an effect on.
    """
    _check_task_head(encoder, config.metric)
    shape = (encoder.layers, encoder.heads) if config.by_head else (encoder.layers,)
    effects, control_effects = (np.full((len(recording), *shape), np.nan) for _ in range(2))
    for indices, batch in token_batches(recording, encoder, sample_size=config.sample_size, seed=config.seed):
        tokens = select_tokens(batch)
        masked = masked_positions(batch, config.seed) if config.metric == "loss" else batch.mlm_mask
        control_tokens = batch.pad_flags(list(sample_control_tokens(batch, tokens, masked, config.seed)))
        measure_effect = _effect_function(encoder, batch, masked, config)
        for position in np.ndindex(*shape):
            for zeroed, out in ((tokens, effects), (control_tokens, control_effects)):
                out[(indices, *position)] = measure_effect(position, zeroed).double().cpu().numpy()
    return effects, control_effects


def _effect_function(
    encoder: GatedEncoder, batch: TokenBatch, masked_mask: Tensor, config: ValueZeroing
) -> Callable[[tuple[int, ...], Tensor], Tensor]:
    """The effect per sentence of zeroing (batch, token) tokens in a layer or head."""
    inputs = batch.model_inputs
    if encoder.mask_token_id is not None:
        inputs = replace(inputs, input_ids=torch.where(masked_mask, encoder.mask_token_id, inputs.input_ids))

    def forward(zeroed_values: Tensor) -> ModelOutput:
        gated = encoder.with_gates(Gates(zeroed_values=zeroed_values))
        with torch.inference_mode():
            return gated.forward(inputs, hidden=config.metric == "hidden")

    before = forward(torch.zeros(1, 1, *batch.token_mask.shape, dtype=torch.bool, device=batch.device))

    def effect(index: tuple[int, ...], zeroed_tokens: Tensor) -> Tensor:
        heads = encoder.heads if config.by_head else 1
        is_zeroed = torch.zeros(encoder.layers, heads, dtype=torch.bool, device=batch.device)
        layers = slice(index[0], None if config.scope == "layer-and-above" else index[0] + 1)
        is_zeroed[layers, index[1] if config.by_head else 0] = True
        after = forward(is_zeroed[:, :, None, None] & zeroed_tokens)
        measured = batch.non_special_mask & ~zeroed_tokens
        change = _output_change(config.metric, encoder, batch, masked_mask, before, after, measured)
        return change.where(zeroed_tokens.any(1), torch.nan)

    return effect


def _output_change(
    metric: EffectMetric,
    encoder: GatedEncoder,
    batch: TokenBatch,
    masked_mask: Tensor,
    before: ModelOutput,
    after: ModelOutput,
    token_mask: Tensor,
) -> Tensor:
    """(batch,) change of a sentence's output, averaged over the tokens of the mask."""
    if metric == "loss":
        loss_after, loss_before = (masked_losses(batch, output, masked_mask) for output in (after, before))
        return (loss_after - loss_before) / masked_mask.sum(1)
    if metric == "hidden":
        old, new = (output.hidden_states[-1].float() for output in (before, after))
        return _masked_mean((new - old).norm(dim=-1) / old.norm(dim=-1), token_mask)
    task_head = next(name for name in DISTRIBUTION_TASK_HEADS if name in encoder.task_heads)
    old, new = (output.logits[task_head].float().log_softmax(-1) for output in (before, after))
    divergence = (old.exp() * (old - new)).sum(-1)
    return divergence if divergence.ndim == 1 else _masked_mean(divergence, token_mask)


def _masked_mean(values: Tensor, mask: Tensor) -> Tensor:
    return values.where(mask, 0).sum(1) / mask.sum(1)


def sample_control_tokens(batch: TokenBatch, token_mask: Tensor, masked_mask: Tensor, seed: int) -> Iterator[BoolArray]:
    """For each sentence as many random other tokens as `token_mask` selects, non-special and not masked."""
    excluded = (token_mask | masked_mask).cpu().numpy()
    n_selected = token_mask.sum(1).tolist()
    for row, recorded_input in enumerate(batch.inputs):
        tokens = recorded_input.tokens
        candidates = np.flatnonzero((tokens.special_kinds == SpecialToken.NONE) & ~excluded[row, : len(tokens)])
        # The sample depends only on the tokens and the seed, not on batches or the order of sentences.
        key = hashlib.sha256(b"others" + tokens.ids.tobytes() + seed.to_bytes(8, "little")).digest()
        flags: BoolArray = np.zeros(len(tokens), np.bool_)
        flags[np.random.default_rng(list(key)).permutation(candidates)[: n_selected[row]]] = True
        yield flags


def _check_task_head(encoder: GatedEncoder, metric: EffectMetric) -> None:
    usable = {"hidden": None, "loss": {"mlm"}, "logits": set(DISTRIBUTION_TASK_HEADS)}[metric]
    if usable is not None and not usable & encoder.task_heads:
        present = ", ".join(sorted(encoder.task_heads)) or "none"
        raise Refusal(
            f"{encoder.name} has no task head for --effect {metric} (it has: {present})",
            f"one of: {', '.join(sorted(usable))}",
            "Use --effect hidden, which needs no task head",
        )
