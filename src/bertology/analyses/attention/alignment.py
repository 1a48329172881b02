"""How much of each head's attention falls on the edges of the dependency tree (vig2019structure, section 4.2)?"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np

from bertology.analyses.declaration import Sites, analysis
from bertology.errors import Refusal
from bertology.measures.attention.head_measures import Average, ratio_grid
from bertology.recording.annotation import pieces_of_words, word_heads, word_layer
from bertology.recording.entry import Entry
from bertology.recording.recording import Recording
from bertology.recording.sites import ReducedSite
from bertology.results.shapes import HeadGrid

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attend import LayerActivations
    from bertology.recording.frame import Frame

MEASURES = ("dependent to head", "head to dependent", "either", "either, of all")


class _Prepared(NamedTuple):
    """Pairs of pieces on an edge, a direction each: which `entry`, `source`, `target`, and the `weight` of the source.

    `rows` is (batch, piece, 3): the weight of a piece's row where its word is a dependent, a head, or either.
    """

    pairs: tuple[tuple[Tensor, Tensor, Tensor, Tensor], ...]
    rows: Tensor


@cache
def edges(relation: str = "") -> ReducedSite:
    """The site that holds each head's attention along edges, and all of the attention that could be there."""
    plain = re.fullmatch(r"[a-z_]+(:[a-z_]+)*", relation)
    name = relation.replace(":", ".") if plain else relation.encode().hex()  # the name of a site is that of a folder
    return ReducedSite(
        "attention.alignment" + (f".{name}" if name else ""),
        ("sum_total", "measure"),
        f"attention along the edges of the tree ({relation or 'all relations'}), and what it is part of",
        _along_edges,
        MEASURES,
        prepare=lambda frame: _prepare(frame, relation),
    )


def _prepare(frame: Frame, relation: str) -> _Prepared:
    import torch

    found: tuple[list[tuple[int, int, int, float]], ...] = ([], [])
    rows = np.zeros((len(frame.entries), frame.width, 3), np.float32)
    for row, entry in enumerate(frame.entries):
        pieces = pieces_of_words(entry)
        for dependent, head in tree_edges(entry, relation):
            here, there = pieces.get(dependent, ()), pieces.get(head, ())
            if not here or not there:
                continue  # a word without pieces, or beyond this window
            for direction, (sources, targets) in enumerate(((here, there), (there, here))):
                found[direction].extend((row, i, j, 1 / len(sources)) for i in sources for j in targets)
                rows[row, sources, direction] = rows[row, sources, 2] = 1 / len(sources)
    pairs = tuple(_columns(some, frame.device) for some in found)
    return _Prepared(pairs, torch.from_numpy(rows).to(frame.device))


def _columns(pairs: list[tuple[int, int, int, float]], device: str) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    import torch

    places = torch.tensor([pair[:3] for pair in pairs], dtype=torch.long, device=device).view(-1, 3)
    entry, source, target = places.unbind(1)
    return entry, source, target, torch.tensor([pair[3] for pair in pairs], device=device)


def _along_edges(layer: LayerActivations, frame: Frame, prepared: _Prepared) -> Tensor:
    """(batch, head, 2, measure)."""
    import torch

    from bertology.recording.rows import rows_of

    maps = layer.attention
    down, up = (
        maps.new_zeros(maps.shape[:2]).index_add_(0, entry, maps[entry, :, source, target] * weight.to(maps)[:, None])
        for entry, source, target, weight in prepared.pairs
    )
    rows = prepared.rows.to(maps.dtype)
    totals = rows_of(layer, frame).ordinary @ rows
    everything = rows[..., 2].sum(1)[:, None].expand_as(down)
    sums = torch.stack([down, up, down + up, down + up], -1)
    return torch.stack([sums, torch.cat([totals, everything[..., None]], -1)], 2)


def tree_edges(entry: Entry, relation: str = "") -> list[tuple[int, int]]:
    """(dependent, head) on the word axis, of one relation or of all; roots have no head."""
    named = word_layer(entry, "relations") if relation else ()
    return [
        (word, head)
        for word, head in enumerate(word_heads(entry))
        if head is not None and head >= 0 and (not relation or _is(named[word], relation))
    ]


def _is(found: str | None, wanted: str) -> bool:
    """Whether a relation is the one wanted or a subtype of it."""
    return found is not None and (found == wanted or found.startswith(f"{wanted}:"))


def neighbour_maps(step: int) -> Callable[[Frame], Tensor]:
    """(batch, from, to) maps of a head that looks `step` words away, and at itself where there is no such word."""

    def maps(frame: Frame) -> Tensor:
        import torch

        targets = torch.arange(frame.width).repeat(len(frame.entries), 1)
        for row, entry in enumerate(frame.entries):
            pieces = pieces_of_words(entry)
            for word, own in pieces.items():
                targets[row, own] = torch.tensor([pieces[word + step][0]] * len(own) if word + step in pieces else own)
        return torch.nn.functional.one_hot(targets, frame.width).float()

    return maps


def _sites(options: Mapping[str, Any]) -> Sites:
    return (edges(options["relation"]),)


@analysis(
    question="How much of each head's attention falls on the edges of the dependency tree?",
    special="special tokens are no words: left out as sources and targets; `of all` counts what falls on them",
    cites=("vig2019structure", "clark2019"),
    sites=_sites,
    layers=("heads",),
    version=2,
)
def alignment(
    recording: Recording,
    randomised: Recording | None,
    *,
    relation: Annotated[str, "only edges of this relation and its subtypes, such as nsubj; all where empty"] = "",
    average: Annotated[
        Average, "`pooled` weighs every bit of attention alike, as the paper does; `sentences` every sentence"
    ] = "pooled",
    seed: Annotated[int, "seed of the bootstrap over sentences"] = 0,
) -> HeadGrid:
    """Share of attention between words that runs along edges of the tree: 0 none, 1 all of it.

    `dependent to head` is the share that words with a head give to it, `head to dependent` what words with dependents
    give to those, `either` the attention along an edge in either direction: the paper's measure where all relations
    count. Attention to a word is the sum over its pieces, from a word the mean. What a word gives to itself is part of
    the whole. A head that always looks at the next or previous word is a baseline, since neighbours are often linked.
    """
    if relation:
        recording.corpus.require("relations", purpose=f"attention/alignment --relation {relation}")
        if not any(tree_edges(entry, relation) for entry in recording.entries):
            known = {name or "" for entry in recording.entries for name in word_layer(entry, "relations")}
            raise Refusal(
                f"{recording.corpus.name} has no edge of the relation {relation!r}",
                "one of " + ", ".join(sorted(known - {""})),
                "Give one of these with --relation",
            )
    return ratio_grid(
        recording,
        randomised,
        edges(relation),
        units=dict.fromkeys(MEASURES, "share, 0 to 1"),
        average=average,
        seed=seed,
        references={"previous word": neighbour_maps(-1), "next word": neighbour_maps(1)},
    )
