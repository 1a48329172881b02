"""Objectives of gradient sites: the loss of a language model or task, or the log-probability of the prediction.

For a correct prediction, its log-probability is the negative loss: gradient magnitudes are equal. Each objective is a
sum over the inputs of a batch, so that the gradient of one input does not depend on the others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from bertology.arrays import BoolArray, IntArray
from bertology.encoder.encoder import Encoder, ModelInputs, ModelOutput, Objective
from bertology.encoder.tokens import SpecialToken
from bertology.errors import Refusal, unknown_name
from bertology.lazy import torch
from bertology.recording.gold_targets import GOLD_TASK_HEADS, IGNORE_INDEX, GoldTargets

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.token_batch import TokenBatch

MASKED_FRACTION = 0.15
OBJECTIVES = ("auto", "mlm", "lm", "prediction", "gold")
PREDICTION_TASK_HEADS = ("choice", "label", "nsp", "sop", "token", "answer_start")
"""Task heads of the objective `prediction`; the first one that the model has is used."""


def build_objective(
    encoder: Encoder, name: str, batch: TokenBatch, seed: int, gold: GoldTargets | None = None
) -> tuple[ModelInputs, Objective]:
    """The model inputs (with masked tokens if the objective needs them) and the scalar to differentiate.

    `gold` returns the gold targets of each input, for the objective `gold`.
    """
    task_head = objective_task_head(encoder, name)
    if name == "gold":
        assert gold is not None, "the gold targets are read from the corpus before the pass"
        targets = _pad_targets([gold(recorded) for recorded in batch.inputs]).to(batch.device)
        return batch.model_inputs, lambda output: _gold_loss(output, task_head, batch, targets)
    if task_head == "mlm" and encoder.mask_token_id is not None:
        return _masked_language_model(batch, encoder.mask_token_id, seed)
    if task_head == "lm":
        return batch.model_inputs, lambda output: _next_token_loss(output, batch)
    return batch.model_inputs, lambda output: _prediction_score(output, task_head, batch)


def objective_task_head(encoder: Encoder, name: str) -> str:
    """The task head an objective uses; refused if the model has none."""
    if name not in OBJECTIVES:
        raise unknown_name("objective", name, OBJECTIVES)
    if name == "auto":
        name = next((task_head for task_head in ("mlm", "lm") if task_head in encoder.task_heads), "prediction")
    if name == "mlm" and "mlm" in encoder.task_heads and encoder.mask_token_id is not None:
        return "mlm"
    if name == "lm" and "lm" in encoder.task_heads:
        return "lm"
    if name in {"prediction", "gold"}:
        usable = PREDICTION_TASK_HEADS if name == "prediction" else GOLD_TASK_HEADS
        available = [task_head for task_head in usable if task_head in encoder.task_heads]
        if available:
            return available[0]
    task_heads = ", ".join(sorted(encoder.task_heads)) or "none"
    raise Refusal(
        f"{encoder.name} has no task head for the objective {name!r} (it has: {task_heads})",
        "a task head for masked tokens (`mlm`), next tokens (`lm`), or classes, tags or answers (`prediction`, `gold`)",
        "Attention gradients need such a task head; choose another model or skip this analysis",
    )


def masked_positions(batch: TokenBatch, seed: int) -> Tensor:
    """(batch, token) booleans: 15 % of the non-special tokens, at least one, chosen by the tokens and the seed."""
    masks: list[BoolArray] = []
    for recorded in batch.inputs:
        tokens = recorded.tokens
        non_special = np.flatnonzero(tokens.special_kinds == SpecialToken.NONE)
        key = hashlib.sha256(tokens.ids.tobytes() + seed.to_bytes(8, "little")).digest()
        n_masked = min(len(non_special), max(1, round(MASKED_FRACTION * len(non_special))))
        mask = np.zeros(len(tokens), np.bool_)
        mask[np.random.default_rng(list(key)).permutation(non_special)[:n_masked]] = True
        masks.append(mask)
    return batch.pad_flags(masks)


def _masked_language_model(token_batch: TokenBatch, mask_token_id: int, seed: int) -> tuple[ModelInputs, Objective]:
    mlm_mask = masked_positions(token_batch, seed)
    inputs = token_batch.model_inputs
    masked_inputs = replace(inputs, input_ids=torch.where(mlm_mask, mask_token_id, inputs.input_ids))
    return masked_inputs, lambda output: masked_losses(token_batch, output, mlm_mask).sum()


def masked_losses(batch: TokenBatch, output: ModelOutput, mlm_mask: Tensor) -> Tensor:
    """(batch,) cross-entropy of the masked tokens in nats, summed over each input."""
    logits = masked_logits(output, mlm_mask).float()
    losses = torch.nn.functional.cross_entropy(logits, batch.model_inputs.input_ids[mlm_mask], reduction="none")
    return torch.zeros_like(mlm_mask, dtype=losses.dtype).masked_scatter(mlm_mask, losses).sum(1)


def masked_logits(output: ModelOutput, mlm_mask: Tensor) -> Tensor:
    """(masked token, vocabulary) logits, input after input.

    If the output has logits of some positions only, the masked ones come first in each row.
    """
    logits = output.logits["mlm"]
    if output.logit_positions is None:
        return logits[mlm_mask]
    counts = mlm_mask.sum(1, keepdim=True)
    return logits[torch.arange(logits.shape[1], device=counts.device) < counts]


def masked_indices(mlm_mask: Tensor) -> Tensor:
    """(batch, n) positions of masked tokens, n the highest number in an input; shorter rows go on with other tokens."""
    n_masked = int(mlm_mask.sum(1).max())
    return torch.argsort(mlm_mask.long(), dim=1, descending=True, stable=True)[:, :n_masked]


def _gold_loss(output: ModelOutput, task_head: str, batch: TokenBatch, gold: Tensor) -> Tensor:
    """Cross-entropy of the gold targets in nats: classes, tags of all words, or both ends of answers."""
    cross_entropy = partial(torch.nn.functional.cross_entropy, ignore_index=IGNORE_INDEX, reduction="sum")
    if task_head == "answer_start":
        ends = zip(_answer_logits(output, batch), gold.T, strict=True)
        return torch.stack([cross_entropy(logits, targets) for logits, targets in ends]).sum()
    logits = output.logits[task_head].float()
    return cross_entropy(logits.flatten(0, -2), gold.flatten())


def _answer_logits(output: ModelOutput, batch: TokenBatch) -> list[Tensor]:
    """(batch, token) logits of the first and the last token of the answer, padding excluded."""
    both = (output.logits["answer_start"], output.logits["answer_end"])
    return [logits.float().masked_fill(~batch.token_mask, -torch.inf) for logits in both]


def _pad_targets(targets: Sequence[IntArray]) -> Tensor:
    tensors = [torch.from_numpy(row) for row in targets]
    return torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True, padding_value=IGNORE_INDEX)


def _next_token_loss(output: ModelOutput, batch: TokenBatch) -> Tensor:
    """Cross-entropy of all tokens but the first in nats, each predicted from those before it."""
    logits, mask = output.logits["lm"][:, :-1].float(), batch.token_mask[:, 1:]
    return torch.nn.functional.cross_entropy(logits[mask], batch.model_inputs.input_ids[:, 1:][mask], reduction="sum")


def _prediction_score(output: ModelOutput, task_head: str, batch: TokenBatch) -> Tensor:
    """Log-probability of the prediction: a class, the tags of all non-special tokens, or both ends of an answer."""
    if task_head == "answer_start":
        ends = _answer_logits(output, batch)
        return torch.stack([logits.log_softmax(-1).max(-1).values for logits in ends]).sum()
    logits = output.logits[task_head].float()
    # A single score (regression, an option) has no alternative: its log-probability would be 0 for every input.
    scores = logits.log_softmax(-1) if logits.shape[-1] > 1 else logits
    best = scores.max(-1).values
    return best[batch.non_special_mask].sum() if task_head == "token" else best.sum()
