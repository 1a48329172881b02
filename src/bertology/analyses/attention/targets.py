"""What does each head look at: special tokens, punctuation, itself, its neighbours (clark2019, 3.1-3.2)?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from bertology.analyses.declaration import Sites, analysis
from bertology.measures.attention.head_measures import Average, head_grid, ratio_grid
from bertology.measures.attention.linguistic_targets import TO_ROLE, TO_TAGS, occurring, roles_of, tags_of, to_features
from bertology.recording.piece_kinds import SOURCES
from bertology.recording.recording import Recording
from bertology.recording.sites import ReducedSite, reduction
from bertology.recording.wanted import Wanted
from bertology.results.shapes import HeadGrid

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attend import LayerActivations
    from bertology.recording.frame import Frame
    from bertology.recording.pairs import Pairs

MEASURES = (
    "to [CLS]",
    "to [SEP]",
    "to punctuation",
    "to itself",
    "to previous",
    "to next",
    "to same word",
    "to other",
    "[SEP] to [SEP]",
    "other to [SEP]",
    "to previous, ordinary",
    "to next, ordinary",
)


OFFSETS = (0, -1, 1)
"""Itself, the previous piece, the next: as `Rows.near` has them."""


class _Prepared(NamedTuple):
    """What of a batch is the same in every layer.

    `pairs` are pieces of one word, and of these the ones that no other kind covers; `steps` is (offset, batch, piece,
    3): which sources count with any target, with one of no kind, between ordinary pieces; `sources` (batch, measure).
    """

    pairs: Pairs
    steps: Tensor
    sources: Tensor


def _prepare(frame: Frame) -> _Prepared:
    import torch

    from bertology.recording.pairs import Pairs

    real, ordinary, kinds = frame.real, frame.ordinary, frame.kinds
    plain, separators = kinds[..., 3], kinds[..., 1].sum(1)
    row, source, target = _mates(frame).unbind(1)
    far = plain[row, target] & ((source - target).abs() > 1)
    listed = [_listed(row, source, target, 0), _listed(row[far], source[far], target[far], 1)]
    pairs = Pairs(torch.cat(listed, 1), torch.ones((len(real), 2), device=real.device), frame.width)
    steps = torch.stack(
        [
            torch.stack(
                [
                    real & _beside(real, offset),
                    real & _beside(plain, offset),
                    ordinary & _beside(ordinary, offset),
                ],
                -1,
            )
            for offset in OFFSETS
        ]
    ).float()
    inner = steps[1:, ..., 2].sum(-1)
    sources = [*[frame.lengths] * 8, separators, frame.lengths - separators, *inner]
    return _Prepared(pairs, steps, torch.stack(sources, -1))


def _beside(flags: Tensor, offset: int) -> Tensor:
    """(batch, piece): the flag of the piece that far away, False beyond the ends."""
    from torch.nn.functional import pad

    return pad(flags, (1, 1))[:, 1 + offset : 1 + offset + flags.shape[1]]


def _listed(row: Tensor, source: Tensor, target: Tensor, column: int) -> Tensor:
    import torch

    return torch.stack([row, source, target, torch.full_like(row, column)])


def _mates(frame: Frame) -> Tensor:
    """(pair, 3): batch row, source and target of every pair of different pieces of one word."""
    import torch

    alike = (frame.word[:, :, None] == frame.word[:, None]) & (frame.word >= 0)[:, None]
    return torch.nonzero(alike & ~torch.eye(frame.width, dtype=torch.bool, device=frame.device))


@reduction(
    "attention.targets",
    axes=("target",),
    labels=MEASURES,
    about="share of each head's attention by what it falls on, mean over source pieces",
    prepare=_prepare,
    wants=lambda prepared: Wanted(pairs=prepared.pairs),
)
def TARGETS(layer: LayerActivations, frame: Frame, prepared: _Prepared) -> Tensor:
    """(batch, head, measure) shares; NaN where a sentence has no source piece of that kind."""
    import torch

    from bertology.recording.pairs import pair_sums
    from bertology.recording.rows import rows_of

    rows = rows_of(layer, frame)
    to_kind, between = rows.to_kinds[:, :, SOURCES.index("all")], rows.to_kinds[:, :, SOURCES.index("separators"), 1]
    same, same_far = pair_sums(layer, prepared.pairs).unbind(-1)
    steps = torch.stack([near @ own.to(near.dtype) for near, own in zip(rows.near, prepared.steps, strict=True)], 2)
    other = (to_kind[..., 3] - steps[..., 1].sum(-1) - same_far).clamp(min=0)
    shares = torch.stack([*to_kind[..., :3].unbind(-1), *steps[..., 0].unbind(-1), same, other, between], -1)
    apart = (to_kind[..., 1] - between).clamp(min=0)
    found = torch.cat([shares, apart.unsqueeze(-1), steps[..., 1:, 2]], -1)
    return found / prepared.sources.to(found.dtype)[:, None]


By = Literal["kind", "pos", "role", "features"]
NEEDED: dict[str, tuple[str, ...]] = {"pos": ("pos",), "role": ("relations",), "features": ("pos", "relations")}


def _sites(options: Mapping[str, Any]) -> Sites:
    sites: dict[str, ReducedSite] = {
        "kind": TARGETS,
        "pos": TO_TAGS,
        "role": TO_ROLE,
        "features": to_features(0.0) if options["legacy"] else to_features(),
    }
    return (sites[options["by"]],)


@analysis(
    question="What does each head look at: special tokens, punctuation, itself, its neighbours?",
    special="sources and targets, but not in measures that say `ordinary`, nor by part of speech or role",
    cites=("clark2019", "kovaleva2019", "vig2019structure"),
    sites=_sites,
    version=2,
)
def targets(
    recording: Recording,
    randomised: Recording | None,
    *,
    by: Annotated[By, "what targets are told apart by; all but `kind` need annotation"] = "kind",
    average: Annotated[
        Average, "by part of speech and role: `pooled` as in the paper, or the mean over `sentences`"
    ] = "pooled",
    legacy: Annotated[bool, "by features: a sentence without the feature counts as 0, as in the released code"] = False,
    seed: Annotated[int, "seed of the bootstrap over sentences"] = 0,
) -> HeadGrid:
    """Share of attention by target: 0 none of it, 1 all of it; the mean over source pieces, then over sentences.

    `to other` is what falls on none of the seven kinds before it. The kinds overlap ([SEP] can be the next piece), so
    shares need not sum to 1. `[SEP] to [SEP]` and `other to [SEP]` have only [SEP], or all but [SEP], as sources. The
    `ordinary` measures count only steps between two ordinary pieces, from pieces that have such a neighbour: a head
    that always looks one back scores 1. Clark's released figure swaps the legends of next and previous; here previous
    is the piece before.

    By `pos` and `role` (Vig & Belinkov): of all attention between ordinary pieces, the share that falls on pieces of
    such words; the shares sum to 1. By `features` (Kovaleva et al.): for each sentence the one piece with the feature
    that gets most attention, mean over all source pieces, special ones included; sentences without the feature are
    disregarded. Their code counts those as 0, finds negation by substring ("another") and marks every token spelt like
    a feature word; here words are found by their characters. Nouns are NOUN and PROPN, verbs VERB and AUX.
    """
    if by in NEEDED:
        recording.corpus.require(*NEEDED[by], purpose=f"attention/targets --by {by}")
    (site,) = _sites({"by": by, "legacy": legacy})
    assert isinstance(site, ReducedSite)
    if by in ("kind", "features"):
        units = "share, 0 to 1" if by == "kind" else "mean weight of one piece, 0 to 1"
        return head_grid(recording, randomised, site, units=units, seed=seed)
    labels = occurring(recording.entries, tags_of if by == "pos" else roles_of)
    units = dict.fromkeys(labels, "share of attention between ordinary pieces, 0 to 1")
    return ratio_grid(recording, randomised, site, units=units, average=average, seed=seed, labels=labels)
