"""Where shares over all pieces fall, by the source they are of: itself, [CLS], [SEP], neighbours, all other pieces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertology.encoder.pieces import Special
from bertology.errors import Refusal
from bertology.measures.attention.special_tokens import LEAST_SHARE
from bertology.results.estimate import Estimates
from bertology.results.sampling import mean_over_sentences

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.recording.frame import Frame

Source = Literal["cls", "all", "ordinary"]
SOURCES: tuple[Source, ...] = ("cls", "all", "ordinary")
MEASURES = ("itself", "[CLS]", "[SEP]", "neighbours", "other", "spread")
UNITS = dict.fromkeys(MEASURES, "share, 0 to 1") | {"spread": "1 / n one piece, 1 all n alike"}


class Places(NamedTuple):
    """(batch, from, to) booleans for each of the first five measures, exactly one of them true of every real pair.

    `sources` is (batch, from, source): the rows that count for each source.
    """

    kinds: tuple[Tensor, ...]
    sources: Tensor
    ordinary: Tensor


def places_of(frame: Frame) -> Places:
    """Where the pieces of a batch stand to each other."""
    import torch

    pairs = frame.real[:, :, None] & frame.real[:, None, :]
    steps = torch.arange(frame.width, device=frame.device)
    apart = (steps[:, None] - steps).abs()
    left, kinds = pairs, list[torch.Tensor]()
    cls, sep = ((frame.special == kind)[:, None, :] for kind in (Special.CLS, Special.SEP))
    for kind in (apart == 0, cls, sep, apart == 1, torch.ones_like(pairs)):
        kinds.append(left & kind)
        left = left & ~kind
    own = frame.real & (frame.special == Special.CLS)
    return Places(tuple(kinds), torch.stack([own, frame.real, frame.ordinary], -1), frame.ordinary)


def mass_by_place(shares: Tensor, places: Places) -> Tensor:
    """(batch, source, measure) from (batch, from, to) shares whose rows sum to 1: the mean over a source's rows.

    Of `ordinary` sources special targets are left out and the rest is renormalised; rows with nothing left do not
    count. NaN where a sentence has no such source, and for what a source cannot show: [CLS] is itself where it is the
    source.
    """
    import torch

    kept = shares * places.ordinary.unsqueeze(1)
    left = kept.sum(-1, keepdim=True)
    kept = kept / left.clamp(min=LEAST_SHARE)
    found: list[Tensor] = []
    for place, source in enumerate(SOURCES):
        rows = places.sources[..., place]
        if source == "ordinary":
            rows = rows & (left.squeeze(-1) > LEAST_SHARE)
        own = kept if source == "ordinary" else shares
        targets = (places.ordinary if source == "ordinary" else places.sources[..., 1]).sum(1, keepdim=True)
        by_kind = [(own * kind).sum(-1) for kind in places.kinds]
        entropy = torch.special.entr(own).sum(-1)
        each = torch.stack([*by_kind, entropy.exp() / targets], -1)
        found.append((each * rows.unsqueeze(-1)).sum(1) / rows.sum(1, keepdim=True))
    means = torch.stack(found, 1)
    means[:, SOURCES.index("cls"), MEASURES.index("[CLS]")] = torch.nan
    means[:, SOURCES.index("ordinary"), MEASURES.index("[CLS]") : MEASURES.index("[SEP]") + 1] = torch.nan
    return means


def estimates_of(values: NDArray[Any], source: Source, seed: int) -> dict[str, Estimates]:
    """The mean over sentences of each measure from (sentence, layer, source, measure) values."""
    means = mean_over_sentences(values[:, :, SOURCES.index(source)], seed=seed)
    return {name: means[..., place] for place, name in enumerate(MEASURES)}


def refuse_without_source(values: NDArray[Any], source: Source, flag: str) -> None:
    """Refuse a source that no input has, such as [CLS] in models that add no special tokens."""
    if not np.isfinite(values[:, :, SOURCES.index(source)]).any():
        raise Refusal(
            "No input has [CLS]" if source == "cls" else "No input has an ordinary piece",
            "inputs with such a piece to start from",
            f"Choose another with --{flag} all",
        )


def evenly(maps: Tensor, frame: Frame) -> Tensor:
    """(batch, 1, from, to): a head that attends to all that pieces can see alike, from (batch, head, from, to) maps.

    How far a piece sees (back only, or through a window) is a matter of offsets: single weights of 0 may be rounding.
    Padding sees itself: through a window it may see nothing else, and a row of nothing would have no shares.
    """
    import torch

    steps = torch.arange(frame.width, device=maps.device)
    offsets = (steps - steps[:, None] + frame.width - 1).flatten()
    pairs = frame.real[:, :, None] & frame.real[:, None, :]
    most = (maps.amax(1) * pairs).flatten(1)
    widest = most.new_zeros(len(most), 2 * frame.width - 1).scatter_reduce(1, offsets.expand_as(most), most, "amax")
    seen = (widest > 0)[:, offsets].view_as(pairs) & frame.real[:, None, :] | (~frame.real).diag_embed()
    return (seen / seen.sum(-1, keepdim=True)).to(maps.dtype).unsqueeze(1)
