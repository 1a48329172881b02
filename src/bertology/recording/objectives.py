"""The scalar whose gradient a recording takes: the loss of a language model or of a task, or the score of a prediction.

Where a prediction is right its score, a log-probability, is the loss with its sign changed: magnitudes are the same.
Each objective is a sum over the sentences of a batch, so the gradient of one sentence does not depend on the others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from bertology.encoder.encoder import Batch, Encoder, Objective, Output
from bertology.encoder.pieces import Special
from bertology.errors import Refusal, unknown_name
from bertology.recording.frame import Frame
from bertology.recording.golds import HEADS as GOLD_HEADS
from bertology.recording.golds import UNASKED, Gold

MASKED_SHARE = 0.15
OBJECTIVES = ("auto", "mlm", "lm", "top", "gold")
SCORED = ("choice", "label", "nsp", "sop", "token", "answer_start")
"""The heads whose predictions `top` is about, the first that a model has."""


def objective_for(
    encoder: Encoder, name: str, frame: Frame, seed: int, gold: Gold | None = None
) -> tuple[Batch, Objective]:
    """The batch to feed (with pieces masked where the objective asks for it) and the scalar to differentiate.

    `gold` tells what should come out for each entry, for the objective of that name.
    """
    head = head_for(encoder, name)
    if name == "gold":
        assert gold is not None, "the corpus has been asked for it"
        wanted = _padded([gold(entry) for entry in frame.entries]).to(frame.device)
        return frame.batch, lambda output: _gold_losses(output, head, frame, wanted)
    if head == "mlm" and encoder.mask_id is not None:
        return _masked_language_model(frame, encoder.mask_id, seed)
    if head == "lm":
        return frame.batch, lambda output: _next_pieces(output, frame)
    return frame.batch, lambda output: _top_class(output, head, frame)


def head_for(encoder: Encoder, name: str) -> str:
    """The head of the model that an objective is taken from; refused where there is none."""
    if name not in OBJECTIVES:
        raise unknown_name("objective", name, OBJECTIVES)
    if name == "auto":
        name = next((head for head in ("mlm", "lm") if head in encoder.outputs), "top")
    if name == "mlm" and "mlm" in encoder.outputs and encoder.mask_id is not None:
        return "mlm"
    if name == "lm" and "lm" in encoder.outputs:
        return "lm"
    if name == "top":
        scored = [head for head in SCORED if head in encoder.outputs]
        if scored:
            return scored[0]
    if name == "gold":
        known = [head for head in GOLD_HEADS if head in encoder.outputs]
        if known:
            return known[0]
    have = ", ".join(sorted(encoder.outputs)) or "none"
    raise Refusal(
        f"{encoder.name} has no head for the objective {name!r} (its heads: {have})",
        "a head for masked pieces (`mlm`), next ones (`lm`), classes, tags or answers (`top`, `gold`)",
        "Attention gradients need such a head; choose another model or leave this analysis out",
    )


def masked_positions(frame: Frame, seed: int) -> Tensor:
    """(batch, piece) booleans: 15 % of the ordinary pieces, at least one, chosen by its pieces and the seed."""
    chosen: list[np.ndarray[tuple[int], np.dtype[np.bool_]]] = []
    for entry in frame.entries:
        pieces = entry.pieces
        ordinary = np.flatnonzero(pieces.special == Special.NONE)
        key = hashlib.sha256(pieces.ids.tobytes() + seed.to_bytes(8, "little")).digest()
        count = min(len(ordinary), max(1, round(MASKED_SHARE * len(ordinary))))
        flags = np.zeros(len(pieces), np.bool_)
        flags[np.random.default_rng(list(key)).permutation(ordinary)[:count]] = True
        chosen.append(flags)
    return frame.per_piece(chosen)


def _masked_language_model(frame: Frame, mask_id: int, seed: int) -> tuple[Batch, Objective]:
    masked = masked_positions(frame, seed)
    batch = replace(frame.batch, ids=torch.where(masked, mask_id, frame.batch.ids))

    return batch, lambda output: masked_losses(frame, output, masked).sum()


def masked_losses(frame: Frame, output: Output, masked: Tensor) -> Tensor:
    """(batch,) the cross-entropy in nats of the pieces that were masked, summed over each sentence."""
    scores = masked_scores(output, masked).float()
    losses = torch.nn.functional.cross_entropy(scores, frame.batch.ids[masked], reduction="none")
    return torch.zeros_like(masked, dtype=losses.dtype).masked_scatter(masked, losses).sum(1)


def masked_scores(output: Output, masked: Tensor) -> Tensor:
    """(masked piece, vocabulary), one sentence after the other; an output of some pieces has these first in a row."""
    scores = output.logits["mlm"]
    if output.pieces is None:
        return scores[masked]
    counts = masked.sum(1, keepdim=True)
    return scores[torch.arange(scores.shape[1], device=counts.device) < counts]


def masked_places(masked: Tensor) -> Tensor:
    """(batch, most masked pieces of a sentence): where they are, in order; rows with fewer go on with other pieces."""
    most = int(masked.sum(1).max())
    return torch.argsort(masked.long(), dim=1, descending=True, stable=True)[:, :most]


def _gold_losses(output: Output, head: str, frame: Frame, wanted: Tensor) -> Tensor:
    """The cross-entropy in nats of what the corpus has: classes, the tags of all words, both ends of answers."""
    losses = partial(torch.nn.functional.cross_entropy, ignore_index=UNASKED, reduction="sum")
    if head == "answer_start":
        ends = [output.logits[name].float().masked_fill(~frame.real, -torch.inf) for name in (head, "answer_end")]
        return torch.stack([losses(scores, own) for scores, own in zip(ends, wanted.T, strict=True)]).sum()
    scores = output.logits[head].float()
    return losses(scores.flatten(0, -2), wanted.flatten())


def _padded(rows: Sequence[np.ndarray[tuple[int], np.dtype[np.int64]]]) -> Tensor:
    tensors = [torch.from_numpy(row) for row in rows]
    return torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True, padding_value=UNASKED)


def _next_pieces(output: Output, frame: Frame) -> Tensor:
    """The cross-entropy in nats of all pieces but the first, each from those before it."""
    scores, asked = output.logits["lm"][:, :-1].float(), frame.real[:, 1:]
    return torch.nn.functional.cross_entropy(scores[asked], frame.batch.ids[:, 1:][asked], reduction="sum")


def _top_class(output: Output, head: str, frame: Frame) -> Tensor:
    """The log-probability of what is predicted: a class, the tags of all ordinary pieces, both ends of an answer."""
    if head == "answer_start":
        ends = (output.logits[name].float().masked_fill(~frame.real, -torch.inf) for name in (head, "answer_end"))
        return torch.stack([scores.log_softmax(-1).max(-1).values for scores in ends]).sum()
    scores = output.logits[head].float()
    # The one score of a regression or of an option has no rival: its log-probability would be 0 whatever the input.
    comparable = scores.log_softmax(-1) if scores.shape[-1] > 1 else scores
    best = comparable.max(-1).values
    return best[frame.ordinary].sum() if head == "token" else best.sum()
