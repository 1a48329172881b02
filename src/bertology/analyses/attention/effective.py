"""How much of each attention map can be seen in its head's output (brunner2020, section 3; sun2021)?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from bertology.analyses.declaration import analysis
from bertology.errors import Refusal
from bertology.maths.null_space import effective as effective_weights
from bertology.measures.attention.head_measures import means_by_label
from bertology.measures.attention.seen_pieces import seen_pieces
from bertology.measures.attention.special_tokens import LEAST_SHARE
from bertology.measures.attention.value_vectors import head_vectors
from bertology.recording.piece_kinds import KINDS, kinds_of, shares_by_kind
from bertology.recording.recording import Recording
from bertology.recording.sites import ReducedSite, reduction
from bertology.results.shapes import HeadGrid

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attend import LayerActivations
    from bertology.recording.frame import Frame

HIDDEN = "hidden part"
SHARES = tuple(f"effective to {kind}" for kind in KINDS)
ORDINARY = (f"{HIDDEN}, ordinary", f"effective to {KINDS[2]}, ordinary")
UNITS = (
    {HIDDEN: "share of the map's squares, 0 to 1"}
    | dict.fromkeys(SHARES, "share of absolute weights, 0 to 1")
    | {ORDINARY[0]: "share of the map's squares, 0 to 1", ORDINARY[1]: "share of absolute weights, 0 to 1"}
)
EVEN, ANY, WEIGHTS = "uniform attention", "any map", "weights alone"
ALL_HIDDEN, ALL_SHARES = (HIDDEN, ORDINARY[0]), (*SHARES, ORDINARY[1])


def _site(name: str, about: str, *, simplex: bool) -> ReducedSite:
    chances = [f"{chance}, {hidden}" for hidden in ALL_HIDDEN for chance in (EVEN, ANY)]
    labels = (*UNITS, *chances, *(f"{WEIGHTS}, {share}" for share in ALL_SHARES))

    @reduction(name, axes=("measure",), labels=labels, about=about, prepare=kinds_of, vectors=True, version=3)
    def site(layer: LayerActivations, frame: Frame, kinds: Tensor) -> Tensor:
        """(batch, head, measure); NaN for sentences no longer than a head's vectors, or not seen whole by a piece."""
        import torch

        vectors, seen = head_vectors(layer), seen_pieces(layer, frame)
        whole, inner = (
            [
                _of_pieces(
                    layer.attention[row], seen[row], kept.nonzero().squeeze(-1), vectors[row], kinds[row], simplex
                )
                for row, kept in enumerate(some)
            ]
            for some in (frame.real, frame.ordinary)
        )
        measured, within = (torch.stack(rows) for rows in (whole, inner))
        # Of ordinary pieces only punctuation and the rest are left, of which one says all.
        found = {
            **{label: measured[..., place] for place, label in enumerate(_LABELS)},
            ORDINARY[0]: within[..., _LABELS.index(HIDDEN)],
            ORDINARY[1]: within[..., _LABELS.index(SHARES[2])],
            f"{EVEN}, {ORDINARY[0]}": within[..., _LABELS.index(f"{EVEN}, {HIDDEN}")],
            f"{ANY}, {ORDINARY[0]}": within[..., _LABELS.index(f"{ANY}, {HIDDEN}")],
            f"{WEIGHTS}, {ORDINARY[1]}": within[..., _LABELS.index(f"{WEIGHTS}, {SHARES[2]}")],
        }
        return torch.stack([found[label] for label in labels], -1)

    return site


_LABELS = (HIDDEN, *SHARES, f"{EVEN}, {HIDDEN}", f"{ANY}, {HIDDEN}", *(f"{WEIGHTS}, {share}" for share in SHARES))


def _of_pieces(maps: Tensor, seen: Tensor, kept: Tensor, vectors: Tensor, kinds: Tensor, simplex: bool) -> Tensor:
    """(head, number) of `_LABELS` for the map between the pieces kept of one sentence, its rows brought back to 1."""
    import torch

    maps, seen = (some[:, kept][:, :, kept] for some in (maps, seen))
    if len(kept) <= vectors.shape[-1] + simplex or not bool(seen.all()):
        return vectors.new_full((len(vectors), len(_LABELS)), torch.nan)
    maps = maps.float()
    left = maps.sum(-1, keepdim=True)
    maps = maps / left.clamp(min=LEAST_SHARE) * (left > LEAST_SHARE)
    return _measured(maps, vectors[:, kept], kinds[kept], simplex=simplex)


def _measured(maps: Tensor, vectors: Tensor, kinds: Tensor, *, simplex: bool) -> Tensor:
    """(head, number) for one sentence without padding."""
    import torch

    shown = torch.cat([vectors, torch.ones_like(vectors[..., :1])], -1) if simplex else vectors
    even = torch.full_like(maps, 1 / len(kinds))
    kept, rank = effective_weights(torch.cat([maps, even], -2), shown)
    kept_map, kept_even = kept.split(maps.shape[-2], -2)
    everyone = torch.ones(1, len(kinds), dtype=torch.bool, device=maps.device)
    shares = [shares_by_kind(some.unsqueeze(0), kinds.unsqueeze(0), everyone)[0] for some in (kept_map.abs(), maps)]
    hidden = [_hidden(maps, kept_map), _hidden(even, kept_even), 1 - rank / len(kinds)]
    columns = [hidden[0][:, None], shares[0], hidden[1][:, None], hidden[2][:, None], shares[1]]
    return torch.cat([column.float() for column in columns], -1)


def _hidden(maps: Tensor, kept: Tensor) -> Tensor:
    """(head,) share of the squares of a map that lies in the null space."""
    return 1 - kept.square().sum((-1, -2)) / maps.double().square().sum((-1, -2))


EFFECTIVE = _site("attention.effective", "the part of each map that its head's output depends on", simplex=False)
EFFECTIVE_SIMPLEX = _site(
    "attention.effective.simplex",
    "the part of each map that its head's output depends on, rows keeping their sums",
    simplex=True,
)


@analysis(
    question="How much of each attention map can be seen in its head's output?",
    special="sources and targets, but not in measures that say `ordinary`, where the rest is renormalised",
    cites=("brunner2020", "sun2021"),
    sites=lambda options: (EFFECTIVE_SIMPLEX if options["simplex"] else EFFECTIVE,),
    version=3,
)
def effective(
    recording: Recording,
    randomised: Recording | None,
    *,
    simplex: Annotated[bool, "only changes that keep the sum of each row count as invisible (sun2021)"] = False,
    seed: Annotated[int, "seed of the bootstrap over sentences"] = 0,
) -> HeadGrid:
    """Share of a map's squares that its head's output hides: 0 every weight matters, 1 none does.

    A head's output is the map times f(x) of the pieces, at most as many dimensions as the head has: in longer inputs
    part of the map changes nothing. Effective attention is the map without that part, projected out exactly, its
    weights no longer between 0 and 1; `effective to` is the share of their absolute values by target, beside that of
    the map itself (`weights alone`). Only inputs longer than a head's vectors count; shorter ones hide nothing.
    Nor do layers count in which a piece sees only some of the input: what is hidden would differ from row to row.
    `any map` is the hidden part of a map without any relation to the vectors, 1 - rank / n. f(x) includes b_V. The same
    with `ordinary` is that of the map between ordinary pieces, where these alone are more than a head's dimensions.
    """
    site = EFFECTIVE_SIMPLEX if simplex else EFFECTIVE
    measures = means_by_label(recording.stacked(site), site, seed)
    if not measures[HIDDEN].n.any():
        if recording.encoder.causal:
            raise Refusal(
                f"In {recording.encoder.name} a piece sees only what is before it",
                "a model whose pieces see the whole input: what the others hide would differ from row to row",
                "Use another model, or leave this analysis out",
            )
        longest = max(len(entry.pieces) for entry in recording.entries)
        raise Refusal(
            f"No input of {recording.corpus.name} is longer than a head's vectors (the longest has {longest} pieces)",
            "inputs with more pieces than a head has dimensions: in shorter ones every weight matters",
            "Use longer texts, or leave this analysis out",
        )
    shown = {name: measures[name] for name in UNITS if measures[name].n.any()}
    baselines = {
        **{
            chance: {name: measures[f"{chance}, {name}"] for name in ALL_HIDDEN if name in shown}
            for chance in (EVEN, ANY)
        },
        WEIGHTS: {share: measures[f"{WEIGHTS}, {share}"] for share in ALL_SHARES if share in shown},
    }
    if randomised is not None:
        fresh = means_by_label(randomised.stacked(site), site, seed)
        baselines["random weights"] = {name: fresh[name] for name in shown}
    return HeadGrid(measures=shown, baselines=baselines, units={name: UNITS[name] for name in shown})
