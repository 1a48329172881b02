"""How well does a model answer with parts of it changed? Many changes of heads or layers judged on the same items.

What lies below a change is as it was: a sheet is run once whole, and every change from its lowest layer on; where heads
are changed, from what the heads of that layer gave. Of the last layer no more is run than what is read for the answers.
Changes of heads that begin in one layer are run together, rows being changes times items. A model that cannot be run on
from a layer gets one full pass a change; the numbers are the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertology.encoder.attend import Gates, LayerActivations
from bertology.encoder.encoder import Encoder, Output
from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.encoder.partial_layer import Attended
from bertology.encoder.resumable import Journey, Resumable, resumable
from bertology.errors import Refusal
from bertology.finetuning.division import digest
from bertology.finetuning.metrics import Counts
from bertology.measures.causes.examination import Examination, Marks, Sheet
from bertology.measures.work import Work

How = Literal["uniform", "zero", "mean"]
"""What becomes of a head: it attends to all it may see alike, it gives nothing, or always what it gives on average."""

PIECES_AT_ONCE = {"cpu": 2048}
"""Of all rows of a pass, padding included; more is no faster on a processor, whose caches they then leave."""
PIECES_ELSEWHERE = 65536
LOGITS_AT_ONCE = 2**25
"""What a language model says of every piece is the largest thing a pass makes: 128 MB."""


@dataclass(frozen=True, eq=False)
class HeadChange:
    """Some heads disabled: (layer, head) booleans, not all of them false."""

    heads: NDArray[np.bool_]

    @property
    def first(self) -> int:
        """The lowest layer that is changed."""
        return int(np.flatnonzero(self.heads.any(1))[0])

    @property
    def last(self) -> int:
        """The highest layer that is changed."""
        return int(np.flatnonzero(self.heads.any(1))[-1])

    def told(self) -> list[int]:
        """What tells it from others."""
        return [int(place) for place in np.flatnonzero(self.heads)]


@dataclass(frozen=True)
class LayerChange:
    """The layers that are run, in their order: (0, 2, 1, 3) or (0, 2, 3) or (0, 1, 1, 2, 3)."""

    order: tuple[int, ...]

    def told(self) -> list[int]:
        """What tells it from others."""
        return list(self.order)


Change = HeadChange | LayerChange


@dataclass(frozen=True, eq=False)
class Ablation:
    """An encoder that is changed in many ways; `how` heads are disabled, with their `means` where these are needed.

    `parts` is None where the encoder cannot be run on from a layer.
    """

    encoder: HuggingFaceEncoder
    how: How = "uniform"
    means: Tensor | None = None
    """(layer, head, size)"""
    whole_passes: bool = False
    """One full pass a change, for comparison."""

    @cached_property
    def parts(self) -> Resumable | None:
        """The encoder as it can be run on from a layer; None where it cannot."""
        return None if self.whole_passes else resumable(self.encoder)

    @torch.no_grad()
    def judge(self, examination: Examination, changes: Sequence[Change], work: Work) -> list[Marks]:
        """The marks of the whole model, and then of each change, for all items; finished sheets are kept."""
        meter = work.meter(f"{len(changes)} changes of {self.encoder.name}")
        about = self._about(examination, changes)
        marks = np.zeros((1 + len(changes), 3, len(examination.items)))
        for place, sheet in enumerate(examination.sheets):

            def tell(done: int, before: int = place * len(changes)) -> None:
                meter(before + done, len(examination.sheets) * len(changes))

            shown = {
                "items": [digest([examination.items[item]]) for item in sheet.items],
                "shown": _hash(sheet.shown.ids),
            }
            marks[:, :, sheet.items] = work.kept(about | shown, partial(self._marks, sheet, changes, tell))
            tell(len(changes))
        return [Marks(losses, Counts(right, of)) for losses, right, of in marks]

    def _about(self, examination: Examination, changes: Sequence[Change]) -> dict[str, Any]:
        """What the marks of a sheet depend on, but for the sheet."""
        return {
            "what": "ablation",
            "format": 1,
            "model": self.encoder.fingerprint,
            "how": self.how if self.means is None else [self.how, _hash(self.means)],
            "task": examination.task,
            "changes": [change.told() for change in changes],
        }

    def _marks(self, sheet: Sheet, changes: Sequence[Change], tell: Callable[[int], None]) -> list[list[list[float]]]:
        """[whole or change][loss, right, of][item]."""
        marks = np.zeros((1 + len(changes), 3, len(sheet.items)))
        for done, (change, output) in enumerate(self.outputs(sheet, changes)):
            counts = sheet.counts(output)
            marks[change + 1] = sheet.losses(output).double().cpu().numpy(), counts.right, counts.of
            tell(done)
        return marks.tolist()

    def outputs(self, sheet: Sheet, changes: Sequence[Change]) -> Iterator[tuple[int, Output]]:
        """What comes of a sheet: of the whole model first, as change -1, then of every change, in any order."""
        parts = self.parts
        if parts is None:
            yield -1, self.encoder.run(sheet.shown)
            for place, change in enumerate(changes):
                yield place, self._from_the_input(sheet, change)
            return
        journey = parts.travel(sheet.shown, head=sheet.head, asked=sheet.asked)
        yield -1, journey.output
        heads: dict[int, list[int]] = {}
        for place, change in enumerate(changes):
            if isinstance(change, LayerChange):
                yield place, parts.rearranged(journey, change.order)
            else:
                heads.setdefault(change.first, []).append(place)
        times = self._times(journey)
        for first, places in heads.items():
            midway = parts.midway(journey, first)
            for start in range(0, len(places), times):
                some = {place: changes[place] for place in places[start : start + times]}
                yield from zip(some, self._together(parts, journey, midway, list(some.values())), strict=True)

    def _together(
        self, parts: Resumable, journey: Journey, midway: Attended, changes: Sequence[Change]
    ) -> Iterator[Output]:
        """What comes of changes of heads that begin in one layer, in one pass."""
        some = [change for change in changes if isinstance(change, HeadChange)]
        rows = len(journey.batch.ids)
        gates = by_row([self.gates(change) for change in some], rows)
        last = max(change.last for change in some)
        output = parts.gated(journey, midway, gates, times=len(some), first=some[0].first, last=last)
        for start in range(0, len(some) * rows, rows):
            logits = {name: logits[start : start + rows] for name, logits in output.logits.items()}
            yield replace(journey.output, logits=logits)

    def _times(self, journey: Journey) -> int:
        """How often the rows of a sheet fit into one pass."""
        kind = torch.device(self.encoder.device).type
        pieces = journey.batch.ids.numel()
        logits = sum(one.numel() for one in journey.output.logits.values())
        return max(1, min(PIECES_AT_ONCE.get(kind, PIECES_ELSEWHERE) // pieces, LOGITS_AT_ONCE // max(1, logits)))

    def _from_the_input(self, sheet: Sheet, change: Change) -> Output:
        if isinstance(change, HeadChange):
            return self.encoder.gated(self.gates(change)).run(sheet.shown)
        raise Refusal(
            f"The layers of {self.encoder.name} cannot be left out or exchanged one by one",
            "a model of a family whose layers bertology knows",
            "Choose another model; its heads can be disabled with causes/heads",
        )

    def gates(self, change: HeadChange) -> Gates:
        """The gates that disable the heads of a change, for every batch."""
        chosen = torch.from_numpy(change.heads.copy()).to(self.encoder.device)
        if self.how == "uniform":
            return Gates(uniform=chosen)
        if self.how == "zero" or self.means is None:
            return Gates(scale=(~chosen).float())
        return Gates(scale=(~chosen).float(), shift=self.means * chosen[..., None])


def _hash(tensor: Tensor) -> str:
    return hashlib.sha256(tensor.cpu().numpy().tobytes()).hexdigest()[:32]


def by_row(gates: Sequence[Gates], rows: int) -> Gates:
    """Gates for so many rows of each, one after the other."""
    joined: dict[str, Tensor] = {}
    for kind in (field.name for field in fields(Gates)):
        some: list[Tensor] = [gate for one in gates if (gate := getattr(one, kind)) is not None]
        if some:
            joined[kind] = torch.stack(some, 2).repeat_interleave(rows, 2)
    return Gates(**joined)


def ablation(
    encoder: Encoder, examination: Examination, how: How = "uniform", *, whole_passes: bool = False
) -> Ablation:
    """A model made ready to be changed; refused where it has no heads, or is changed already."""
    if not isinstance(encoder, HuggingFaceEncoder) or encoder.gates is not None:
        raise Refusal(f"Nothing can be taken away from {encoder.name}", "a transformer", "Choose another model")
    means = mean_outputs(encoder, examination) if how == "mean" else None
    return Ablation(encoder, how, means, whole_passes)


@torch.no_grad()
def mean_outputs(encoder: Encoder, examination: Examination) -> Tensor:
    """(layer, head, size) what each head gives on average over all pieces of the items, special tokens among them."""
    sums: dict[int, Tensor] = {}
    pieces = 0
    for sheet in examination.sheets:
        real = sheet.shown.mask.bool()
        pieces += int(real.sum())

        def see(layer: LayerActivations, real: Tensor = real) -> None:
            assert layer.context is not None, "a forward pass has it"
            given = (layer.context.double() * real[:, None, :, None]).sum((0, 2))
            sums[layer.layer] = sums.get(layer.layer, 0) + given

        encoder.run(sheet.shown, on_layer=see)
    return torch.stack([sums[layer] for layer in range(encoder.layers)]).float() / pieces
