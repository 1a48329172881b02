"""What does each head look at: special tokens, punctuation, itself, its neighbours (clark2019, 3.1-3.2)?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from bertology.analyses.declaration import Sites, analysis
from bertology.measures.attention.head_measures import Average, head_grid, ratio_grid
from bertology.measures.attention.linguistic_targets import TO_ROLE, TO_TAGS, occurring, roles_of, tags_of, to_features
from bertology.measures.attention.piece_kinds import kinds_of
from bertology.recording.annotation import pieces_of_words
from bertology.recording.recording import Recording
from bertology.recording.sites import ReducedSite, reduction
from bertology.results.shapes import HeadGrid

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attend import LayerActivations
    from bertology.recording.frame import Frame
    from bertology.recording.stretches import Stretches

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


class _Prepared(NamedTuple):
    """What of a batch is the same in every layer.

    `kinds` is (batch, piece, 4): [CLS], [SEP], punctuation, none of them. `separators` are the batch rows and pieces of
    [SEP]. `beside` holds for each offset the places of its diagonal that count: (batch, place, 3) for any target, for
    one of no kind, and between ordinary pieces. `mates` are the batch row, source and target of pieces of one word,
    and whether the target is neither a neighbour nor of a kind.
    """

    kinds: Tensor
    separators: tuple[Tensor, Tensor]
    beside: tuple[Tensor, ...]
    mates: tuple[Tensor, Tensor, Tensor, Tensor]
    stretches: tuple[Stretches, ...]


OFFSETS = (0, -1, 1)


def _prepare(frame: Frame) -> _Prepared:
    import torch

    from bertology.recording.stretches import stretches_of

    real, ordinary, kinds = frame.real, frame.ordinary, kinds_of(frame)
    plain = kinds[..., 3]
    beside: list[Tensor] = []
    for offset in OFFSETS:
        size = frame.width - abs(offset)
        sources, targets = ((slice(start, start + size)) for start in (max(0, -offset), max(0, offset)))
        from_real = [real[:, sources] & counted[:, targets] for counted in (real, plain)]
        beside.append(torch.stack([*from_real, ordinary[:, sources] & ordinary[:, targets]], -1).float())
    entry, source, target = _mates(frame).unbind(1)
    far = plain[entry, target] & ((source - target).abs() > 1)
    row, separator = torch.nonzero(kinds[..., 1]).unbind(1)
    return _Prepared(
        kinds.float(), (row, separator), tuple(beside), (entry, source, target, far.float()), stretches_of(frame)
    )


def _mates(frame: Frame) -> Tensor:
    """(pair, 3): batch row, source and target of every pair of different pieces of one word."""
    import torch

    found: list[tuple[int, int, int]] = []
    for row, entry in enumerate(frame.entries):
        for pieces in pieces_of_words(entry).values():
            found.extend((row, i, j) for i in pieces for j in pieces if i != j)
    return torch.tensor(found, dtype=torch.long, device=frame.device).view(-1, 3)


@reduction(
    "attention.targets",
    axes=("target",),
    labels=MEASURES,
    about="share of each head's attention by what it falls on, mean over source pieces",
    prepare=_prepare,
)
def TARGETS(layer: LayerActivations, frame: Frame, prepared: _Prepared) -> Tensor:
    """(batch, head, measure) shares; NaN where a sentence has no source piece of that kind."""
    import torch

    from bertology.recording.stretches import received

    maps = layer.attention
    kinds = prepared.kinds.to(maps.dtype)
    n = frame.lengths[:, None].to(maps.dtype)
    to_kind = received(maps, prepared.stretches) @ kinds
    between, separators = _from_separators(maps, kinds[..., 1], prepared.separators)
    # (batch, head, 3) for each offset: on any target, on one of no kind, between ordinary pieces.
    steps = [
        maps.diagonal(offset, -2, -1) @ chosen.to(maps.dtype)
        for offset, chosen in zip(OFFSETS, prepared.beside, strict=True)
    ]
    same, same_far = _within_words(maps, prepared.mates)
    other = (to_kind[..., 3] - sum(step[..., 1] for step in steps) - same_far).clamp(min=0)
    shares = [*to_kind[..., :3].unbind(-1), *(step[..., 0] for step in steps), same, other]
    inner = [step[..., 2] / chosen[..., 2].sum(1)[:, None] for step, chosen in zip(steps, prepared.beside, strict=True)]
    apart = (to_kind[..., 1] - between).clamp(min=0) / (n - separators)
    return torch.stack([*(share / n for share in shares), between / separators, apart, *inner[1:]], dim=-1)


def _from_separators(maps: Tensor, is_separator: Tensor, places: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """(batch, head) what separators give to separators, and (batch, 1) how many there are."""
    entry, piece = places
    given = (maps[entry, :, piece] @ is_separator[entry][..., None]).squeeze(-1)
    return maps.new_zeros(maps.shape[:2]).index_add_(0, entry, given), is_separator.sum(1, keepdim=True)


def _within_words(maps: Tensor, mates: tuple[Tensor, Tensor, Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """(batch, head) attention to other pieces of the same word, and the part of it that no other kind covers."""
    import torch

    entry, source, target, far = mates
    weights = maps[entry, :, source, target]
    both = torch.stack([weights, weights * far.to(maps.dtype)[:, None]], -1)
    sums = maps.new_zeros(*maps.shape[:2], 2).index_add_(0, entry, both)
    return sums[..., 0], sums[..., 1]


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
