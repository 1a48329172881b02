"""Does each head look at what is said, or at where it stands (vig2019structure, section 4.3)?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray

from bertology.analyses.declaration import Sites, analysis
from bertology.errors import Refusal
from bertology.maths.deviation import share_of_deviation
from bertology.measures.attention.head_measures import everywhere, uniform_attention
from bertology.recording.recording import Recording
from bertology.recording.sites import ReducedSite
from bertology.results.estimate import Estimates
from bertology.results.sampling import pooled_over_sentences
from bertology.results.shapes import HeadGrid

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attend import LayerActivations
    from bertology.recording.frame import Frame

Floats = NDArray[np.floating[Any]]
MEASURES = ("all", "ordinary")


@cache
def opening(positions: int) -> ReducedSite:
    """The site that holds the first `positions` x `positions` weights of every map: of all and of ordinary pieces.

    The deviation from a mean cannot be summed before the mean is known. The corner of a map that the measure is about
    has a fixed size, so it is kept and gone through twice: once for the mean, once for the deviations.
    """

    def places(frame: Frame) -> tuple[Tensor, Tensor]:
        """(batch, measure, position) pieces, and (batch, measure) whether there are enough of them."""
        import torch

        chosen = np.zeros((len(frame.entries), len(MEASURES), positions), np.int64)
        enough = np.zeros(chosen.shape[:2], np.bool_)
        for row, entry in enumerate(frame.entries):
            # Ordinary pieces of the first part only: beyond its end a position is no longer a distance.
            for measure, there in enumerate((np.arange(len(entry.pieces)), np.flatnonzero(entry.pieces.part == 0))):
                if len(there) >= positions:
                    chosen[row, measure] = there[:positions]
                    enough[row, measure] = True
        return torch.from_numpy(chosen).to(frame.device), torch.from_numpy(enough).to(frame.device)

    def corner(layer: LayerActivations, frame: Frame, prepared: tuple[Tensor, Tensor]) -> Tensor:
        """(batch, head, measure, from, to); NaN where a sentence is too short."""
        import torch

        chosen, enough = prepared
        batch = torch.arange(len(chosen), device=chosen.device)[:, None, None, None]
        weights = layer.attention[batch, :, chosen[..., :, None], chosen[..., None, :]]
        return weights.masked_fill(~enough[:, :, None, None, None], torch.nan).movedim(-1, 1)

    about = f"weights between the first {positions} pieces, and between the first {positions} ordinary ones"
    axes = ("rows", "position", "other_position")
    return ReducedSite(f"attention.opening{positions}", axes, about, corner, prepare=places)


def _sites(options: Mapping[str, Any]) -> Sites:
    return (opening(options["positions"]),)


@analysis(
    question="Does each head look at what is said, or at where it stands?",
    special="`all` includes special tokens; `ordinary` leaves them out as sources and as targets",
    cites=("vig2019structure",),
    sites=_sites,
    version=2,
)
def variability(
    recording: Recording,
    randomised: Recording | None,
    *,
    positions: Annotated[int, "pieces from the start of a sentence that are compared; shorter ones are left out"] = 10,
    seed: Annotated[int, "seed of the bootstrap over sentences"] = 0,
) -> HeadGrid:
    """How much attention between the first positions differs from sentence to sentence: 0 never, 1 altogether.

    The summed distance of each sentence's weights from their mean over sentences, over twice their sum: 0 for a head
    that goes by position alone, 1 for one that goes by content alone. Only sentences with enough pieces count; in a
    pair, only the first. With S sentences the most there can be is 1 - 1/S. Weights are not renormalised within the
    corner, so that even uniform attention differs, by the sentences' lengths.
    """
    if positions < 2:
        raise Refusal(f"--positions was given {positions}", "at least 2", "The paper has 10")
    site = opening(positions)
    measures = _measured(recording[site], seed)
    if not any(estimates.n.any() for estimates in measures.values()):
        raise Refusal(
            f"{recording.corpus.name} has fewer than two sentences of {positions} pieces",
            "sentences to compare",
            "Use a larger corpus, or lower --positions",
        )
    grid = (recording.encoder.layers, recording.encoder.heads)
    even = _measured(list(uniform_attention(recording, site)), seed)
    baselines = {"uniform attention": {name: everywhere(even[name], grid) for name in MEASURES}}
    if randomised is not None:
        baselines["random weights"] = _measured(randomised[site], seed)
    return HeadGrid(measures=measures, baselines=baselines, units=dict.fromkeys(MEASURES, "share, 0 to 1"))


def _measured(corners: Sequence[Floats], seed: int) -> dict[str, Estimates]:
    """Each measure for corners of shape (..., measure, from, to), one array an entry."""
    estimates = pooled_over_sentences(*share_of_deviation(corners), seed=seed)
    return {name: estimates[..., place] for place, name in enumerate(MEASURES)}
