"""Structural probes fitted to one part of a recording, or another corpus, and what is left to judge them on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bertology.encoder.encoder import Encoder
from bertology.errors import Refusal
from bertology.measures.division import Division
from bertology.measures.probes.tree_lessons import SITE, Batches, TreeLessons, refuse_too_few, tree_lessons
from bertology.recording.recording import Recording
from bertology.recording.sites import RAW

if TYPE_CHECKING:
    from bertology.maths.structural_probe import Kind, Probes


@dataclass(frozen=True)
class Fitting:
    """How probes are fitted: `seeds` times each, in batches of so many sentences; `legacy` keeps Adam's moments."""

    seeds: int
    epochs: int
    rate: float
    batch: int
    legacy: bool
    seed: int

    def fit(self, learned: TreeLessons, kinds: Sequence[Kind], ranks: Sequence[int], device: str) -> Probes:
        """Probes of every kind, rank and seed in every layer, all at once."""
        from bertology.maths.structural_fit import Schedule, fit
        from bertology.maths.structural_probe import members_of

        members = members_of(kinds, ranks, range(self.seed, self.seed + self.seeds))
        schedule = Schedule(self.epochs, self.rate, fresh=not self.legacy, seed=self.seed)
        taught, held_out = (Batches(part, self.batch, device) for part in learned.apart(self.seed))
        return fit(taught, held_out, members, schedule)


def parts_of(
    recording: Recording, encoder: Encoder | None, division: Division, *, purpose: str
) -> tuple[TreeLessons, TreeLessons]:
    """What to fit and what to judge on; refused where there is too little of either."""
    parts = division.parts(recording, encoder, (RAW[SITE],), purpose=purpose)
    learned, tested = (tree_lessons(own, places) for own, places in parts)
    if unused := division.unused(recording):
        learned = replace(learned, skipped={**learned.skipped, "not drawn": unused})
    refuse_too_few(learned, tested, recording.corpus.name)
    return learned, tested


def chosen_layer(layer: int, layers: int) -> int:
    """The layer asked for; without one that two thirds up, where Hewitt & Manning's curve has its peak (8 of 12)."""
    if layer >= layers:
        raise Refusal(
            f"--layer was given {layer} and the model has {layers - 1} layers",
            f"0 (the embeddings) to {layers - 1}",
            "Choose one of them",
        )
    return layer if layer >= 0 else round(2 / 3 * (layers - 1))


def device_of(encoder: Encoder | None) -> str:
    """Where to fit: where the model is, if there is one."""
    return "cpu" if encoder is None else encoder.device
