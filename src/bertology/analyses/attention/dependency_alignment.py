"""Dependency alignment: attention along the edges of the dependency tree (Vig & Belinkov 2019, section 4.2)."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np

from bertology.analyses.declaration import analysis
from bertology.analyses.head_grids import AverageOption, ratio_grid
from bertology.analyses.head_selection.functions import TO_DEPENDENT, TO_GOVERNOR
from bertology.corpus.tagsets import Subtypes, SubtypesOption, relation_labels
from bertology.encoder.token_batch import RecordedInput, TokenBatch, word_annotations, word_governors
from bertology.errors import Refusal
from bertology.lazy import torch
from bertology.recording.recording import Recording
from bertology.recording.sites import ReducedSite
from bertology.results.shapes import HeadGrid
from bertology.statistics.rows import row_statistics

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attention_hook import LayerActivations

MEASURES = (TO_GOVERNOR, TO_DEPENDENT, "both directions", "both directions (of all attention)")


class _EdgePairs(NamedTuple):
    """Token pairs on edges: per direction batch row, source, target, and the weight of the source token.

    `row_weights` is (batch, token, 3): the weight of a token's row if its word is a dependent, a governor, or either.
    """

    pairs: tuple[tuple[Tensor, Tensor, Tensor, Tensor], ...]
    row_weights: Tensor


@cache
def edge_attention_site(relation: str = "", subtypes: Subtypes = "included") -> ReducedSite:
    """The site with each head's attention along edges, and the total attention of the same rows."""
    is_plain = re.fullmatch(r"[a-z_]+(:[a-z_]+)*", relation)
    suffix = relation.replace(":", ".") if is_plain else relation.encode().hex()  # site names are also folder names
    if relation and subtypes != "included":
        suffix += f".subtypes_{subtypes}"
    return ReducedSite(
        "attention.dependency_alignment" + (f".{suffix}" if suffix else ""),
        ("sum_total", "measure"),
        f"attention along dependency edges ({relation or 'all relations'}), and the total attention of the same rows",
        _edge_attention,
        MEASURES,
        prepare=lambda batch: _prepare(batch, relation, subtypes),
        version=2,
    )


def _prepare(batch: TokenBatch, relation: str, subtypes: Subtypes) -> _EdgePairs:
    pairs: tuple[list[tuple[int, int, int, float]], ...] = ([], [])
    row_weights = np.zeros((len(batch.inputs), batch.padded_length, 3), np.float32)
    for row, recorded_input in enumerate(batch.inputs):
        tokens = recorded_input.tokens.positions_by_word()
        for dependent, governor in dependency_edges(recorded_input, relation, subtypes):
            dependent_tokens, governor_tokens = tokens.get(dependent, ()), tokens.get(governor, ())
            if not dependent_tokens or not governor_tokens:
                continue  # a word without tokens, or outside this window
            directions = ((dependent_tokens, governor_tokens), (governor_tokens, dependent_tokens))
            for direction, (sources, targets) in enumerate(directions):
                pairs[direction].extend((row, i, j, 1 / len(sources)) for i in sources for j in targets)
                row_weights[row, sources, direction] = row_weights[row, sources, 2] = 1 / len(sources)
    tensors = tuple(_pair_tensors(direction, batch.device) for direction in pairs)
    return _EdgePairs(tensors, torch.from_numpy(row_weights).to(batch.device))


def _pair_tensors(pairs: list[tuple[int, int, int, float]], device: str) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    indices = torch.tensor([pair[:3] for pair in pairs], dtype=torch.long, device=device).view(-1, 3)
    rows, sources, targets = indices.unbind(1)
    return rows, sources, targets, torch.tensor([pair[3] for pair in pairs], device=device)


def _edge_attention(layer: LayerActivations, batch: TokenBatch, edge_pairs: _EdgePairs) -> Tensor:
    """(batch, head, 2, measure)."""
    attention = layer.attention
    to_governor, to_dependent = (
        attention.new_zeros(attention.shape[:2]).index_add_(
            0, rows, attention[rows, :, sources, targets] * weights.to(attention)[:, None]
        )
        for rows, sources, targets, weights in edge_pairs.pairs
    )
    row_weights = edge_pairs.row_weights.to(attention.dtype)
    rows = row_statistics(layer, batch)
    totals, all_attention = rows.non_special_mass @ row_weights, rows.mass @ row_weights[..., 2:]
    both = to_governor + to_dependent
    sums = torch.stack([to_governor, to_dependent, both, both], -1)
    return torch.stack([sums, torch.cat([totals, all_attention], -1)], 2)


def dependency_edges(
    recorded_input: RecordedInput, relation: str = "", subtypes: Subtypes = "included"
) -> list[tuple[int, int]]:
    """(dependent, governor) word indices, of one relation or of all; roots have no governor."""
    relations = word_annotations(recorded_input, "relations") if relation else ()
    return [
        (word, governor)
        for word, governor in enumerate(word_governors(recorded_input))
        if governor is not None
        and governor >= 0
        and (not relation or relation in relation_labels(relations[word] or "", subtypes))
    ]


def neighbour_attention(offset: int) -> Callable[[TokenBatch], Tensor]:
    """(batch, from, to) attention to the word at an offset, and to the token itself if there is no such word."""

    def attention(batch: TokenBatch) -> Tensor:
        targets = torch.arange(batch.padded_length).repeat(len(batch.inputs), 1)
        for row, recorded_input in enumerate(batch.inputs):
            tokens = recorded_input.tokens.positions_by_word()
            for word, positions in tokens.items():
                if word + offset in tokens:
                    targets[row, positions] = tokens[word + offset][0]
        return torch.nn.functional.one_hot(targets, batch.padded_length).float()

    return attention


@analysis(
    question="How much of each head's attention follows the edges of the dependency tree?",
    special_tokens="Special tokens: excluded as sources and targets. `both directions (of all attention)` includes "
    "attention to them in the total.",
    citations=("vig2019structure", "clark2019"),
    sites=lambda options: (edge_attention_site(options["relation"], options["subtypes"]),),
    annotations=("governors",),
    version=3,
)
def dependency_alignment(
    recording: Recording,
    randomised: Recording | None,
    *,
    relation: Annotated[str, "Only this dependency relation and its subtypes, such as nsubj; empty: all."] = "",
    subtypes: SubtypesOption = "included",
    average: AverageOption = "micro",
    seed: Annotated[int, "Random seed (bootstrap)."] = 0,
) -> HeadGrid:
    """Share of attention between words that follows edges of the dependency tree: 0 none, 1 all.

    `dependent to governor` is the share of attention that words with a governor give to it, `governor to dependent` the
    share that words with dependents give to those, `both directions` the attention along an edge in either direction:
    the paper's measure, with all relations. Attention to a word is the sum over its tokens, attention from a word the
    mean. Attention of a word to itself is part of the total. Heads that always attend to the previous or next word are
    baselines, since neighbours are often related.
    """
    if relation:
        recording.corpus.require_annotations(
            "relations", analysis_name=f"attention/dependency_alignment --relation {relation}"
        )
        if not any(dependency_edges(recorded_input, relation, subtypes) for recorded_input in recording.inputs):
            relations = {name or "" for i in recording.inputs for name in word_annotations(i, "relations")}
            raise Refusal(
                f"{recording.corpus.name} has no edge of the relation {relation!r}",
                "one of " + ", ".join(sorted(relations - {""})),
                "Choose one of these with --relation",
            )
    return ratio_grid(
        recording,
        randomised,
        edge_attention_site(relation, subtypes),
        units=dict.fromkeys(MEASURES, "share of attention, 0 to 1"),
        average=average,
        seed=seed,
        references={"always previous word": neighbour_attention(-1), "always next word": neighbour_attention(1)},
    )
