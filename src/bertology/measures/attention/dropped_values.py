"""What changes in a model's output when the value vectors of chosen pieces count as zero in a layer or head."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from bertology.encoder.encoder import GatedEncoder
from bertology.encoder.pieces import Special
from bertology.errors import Refusal
from bertology.measures.passes import frames_of
from bertology.recording.recording import Recording

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.encoder import Output
    from bertology.recording.frame import Frame

Effect = Literal["hidden", "loss", "logits"]
Reach = Literal["alone", "onwards"]
Floats = NDArray[np.float64]

UNITS: dict[str, str] = {
    "hidden": "relative change of the last hidden state, 0 none",
    "loss": "nats a masked piece, 0 none",
    "logits": "nats (Kullback-Leibler), 0 none",
}
SCORED = ("mlm", "lm", "label", "token", "nsp", "sop")
"""Heads whose scores are a distribution, the first that a model has being looked at."""


@dataclass(frozen=True)
class Drop:
    """How to drop: what the effect is measured on, and whether later layers drop the same pieces too."""

    effect: Effect
    reach: Reach
    by_head: bool
    seed: int


def effects(
    recording: Recording, encoder: GatedEncoder, chosen: Callable[[Frame], Tensor], how: Drop
) -> tuple[Floats, Floats]:
    """The effect of dropping the chosen pieces, and of dropping as many ordinary others, for each place and sentence.

    (sentence, layer) or (sentence, layer, head); NaN where a sentence has nothing to drop, or no ordinary piece left
    to see an effect on.
    """
    from bertology.recording.objectives import masked_positions

    _refuse_without_head(encoder, how.effect)
    shape = (encoder.layers, encoder.heads) if how.by_head else (encoder.layers,)
    found, control = (np.full((len(recording), *shape), np.nan) for _ in range(2))
    for entries, frame in frames_of(recording, encoder):
        pieces = chosen(frame)
        masked = masked_positions(frame, how.seed) if how.effect == "loss" else frame.masked
        others = frame.per_piece(list(drawn_others(frame, pieces, masked, how.seed)))
        effect_of = _effect_on(encoder, frame, masked, how)
        for place in np.ndindex(*shape):
            for dropped, into in ((pieces, found), (others, control)):
                into[(entries, *place)] = effect_of(place, dropped).double().cpu().numpy()
    return found, control


def _effect_on(
    encoder: GatedEncoder, frame: Frame, masked: Tensor, how: Drop
) -> Callable[[tuple[int, ...], Tensor], Tensor]:
    """The effect on each sentence of dropping pieces (batch, piece) at a place."""
    import torch

    from bertology.encoder.attend import Gates

    fed = frame.batch
    if encoder.mask_id is not None:
        fed = replace(fed, ids=torch.where(masked, encoder.mask_id, fed.ids))

    def run(silent: Tensor) -> Output:
        with torch.inference_mode():
            return encoder.gated(Gates(silent=silent)).run(fed, hidden=how.effect == "hidden")

    before = run(torch.zeros(1, 1, *frame.real.shape, dtype=torch.bool, device=frame.device))

    def effect(place: tuple[int, ...], dropped: Tensor) -> Tensor:
        where = torch.zeros(encoder.layers, encoder.heads if how.by_head else 1, dtype=torch.bool, device=frame.device)
        layers = slice(place[0], None if how.reach == "onwards" else place[0] + 1)
        where[layers, place[1] if how.by_head else 0] = True
        after = run(where[:, :, None, None] & dropped)
        change = _changed(how.effect, encoder, frame, masked, before, after, frame.ordinary & ~dropped)
        return change.where(dropped.any(1), torch.nan)

    return effect


def _changed(
    effect: Effect, encoder: GatedEncoder, frame: Frame, masked: Tensor, before: Output, after: Output, counted: Tensor
) -> Tensor:
    """(batch,) how much the output of a sentence changed, on the pieces that count."""
    if effect == "loss":
        from bertology.recording.objectives import masked_losses

        losses = (masked_losses(frame, output, masked) for output in (after, before))
        return (next(losses) - next(losses)) / masked.sum(1)
    if effect == "hidden":
        old, new = (output.hidden[-1].float() for output in (before, after))
        return _mean((new - old).norm(dim=-1) / old.norm(dim=-1), counted)
    head = next(name for name in SCORED if name in encoder.outputs)
    old, new = (output.logits[head].float().log_softmax(-1) for output in (before, after))
    divergence = (old.exp() * (old - new)).sum(-1)
    return divergence if divergence.ndim == 1 else _mean(divergence, counted)


def _mean(values: Tensor, counted: Tensor) -> Tensor:
    return values.where(counted, 0).sum(1) / counted.sum(1)


def drawn_others(frame: Frame, pieces: Tensor, masked: Tensor, seed: int) -> Iterator[NDArray[np.bool_]]:
    """For each sentence as many ordinary pieces as are chosen in `pieces`, from among the unmasked others."""
    chosen, hidden = (flags.cpu().numpy() for flags in (pieces, masked))
    for row, entry in enumerate(frame.entries):
        length = len(entry.pieces)
        ordinary = np.flatnonzero((entry.pieces.special == Special.NONE) & ~(chosen[row] | hidden[row])[:length])
        # By the pieces and the seed alone, so that neither batches nor the order of sentences change the draw.
        key = hashlib.sha256(b"others" + entry.pieces.ids.tobytes() + seed.to_bytes(8, "little")).digest()
        flags: NDArray[np.bool_] = np.zeros(length, np.bool_)
        flags[np.random.default_rng(list(key)).permutation(ordinary)[: int(chosen[row].sum())]] = True
        yield flags


def _refuse_without_head(encoder: GatedEncoder, effect: Effect) -> None:
    needed: dict[str, Any] = {"hidden": None, "loss": {"mlm"}, "logits": set(SCORED)}
    if needed[effect] is not None and not needed[effect] & encoder.outputs:
        have = ", ".join(sorted(encoder.outputs)) or "none"
        raise Refusal(
            f"{encoder.name} has no head for --effect {effect} (its heads: {have})",
            f"one of: {', '.join(sorted(needed[effect]))}",
            "Use --effect hidden, which every model has",
        )
