"""The scalar whose gradient a recording takes: the masked-language-model loss, or the score of the top class.

Each objective is a sum over the sentences of a batch, so the gradient of one sentence does not depend on the others.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from bertology.encoder.encoder import Batch, Encoder, Objective, Output
from bertology.encoder.pieces import Special
from bertology.errors import Refusal
from bertology.recording.frame import Frame

MASKED_SHARE = 0.15


def objective_for(encoder: Encoder, name: str, frame: Frame, seed: int) -> tuple[Batch, Objective]:
    """The batch to feed (with pieces masked where the objective asks for it) and the scalar to differentiate."""
    head = head_for(encoder, name)
    if head == "mlm" and encoder.mask_id is not None:
        return _masked_language_model(frame, encoder.mask_id, seed)
    return frame.batch, lambda output: _top_class(output, head)


def head_for(encoder: Encoder, name: str) -> str:
    """The head of the model that an objective is taken from; refused where there is none."""
    if name == "auto":
        name = "mlm" if "mlm" in encoder.outputs else "top"
    if name == "mlm" and "mlm" in encoder.outputs and encoder.mask_id is not None:
        return "mlm"
    if name == "top":
        scored = sorted(encoder.outputs & {"label", "nsp", "choice", "sop"})
        if scored:
            return scored[0]
    have = ", ".join(sorted(encoder.outputs)) or "none"
    raise Refusal(
        f"{encoder.name} has no head for the objective {name!r} (its heads: {have})",
        "a masked-language-model head for `mlm`, a sentence-level head for `top`",
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


def _top_class(output: Output, head: str) -> Tensor:
    scores = output.logits[head].float()
    # The one score of a regression or of an option has no rival: its log-probability would be 0 whatever the input.
    comparable = scores.log_softmax(-1) if scores.shape[-1] > 1 else scores
    return comparable.max(-1).values.sum()
