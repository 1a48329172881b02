"""Targets of attention: special tokens, punctuation, the token itself, neighbours, linguistic classes.

After Clark et al. (2019), Kovaleva et al. (2019) and Vig & Belinkov (2019).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from bertology.analyses.attention.targets.linguistic import (
    feature_target_site,
    occurring_labels,
    role_target_site,
    tag_target_site,
)
from bertology.analyses.declaration import analysis
from bertology.analyses.head_grids import Average, mean_grid, ratio_grid
from bertology.encoder.token_batch import move_to_device
from bertology.encoder.tokens import NO_WORD
from bertology.lazy import torch
from bertology.recording.recording import Recording
from bertology.recording.sites import ReducedSite, reduction
from bertology.results.shapes import HeadGrid
from bertology.statistics.batch_features import (
    KIND_FLAGS_BY_PUNCTUATION,
    KINDS_BY_PUNCTUATION,
    SOURCE_GROUPS,
    Punctuation,
    PunctuationOption,
)
from bertology.statistics.pairs import StatisticNeeds, TokenPairs, locate_pairs, matching_pairs, pair_sums
from bertology.statistics.rows import attention_received, row_statistics

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.arrays import IntArray
    from bertology.encoder.attention_hook import LayerActivations
    from bertology.encoder.token_batch import TokenBatch

MEASURES = (
    "attention to [CLS]",
    "attention to [SEP]",
    "attention to punctuation",
    "attention to itself",
    "attention to previous token",
    "attention to next token",
    "attention to same word",
    "attention to other tokens",
    "attention from [SEP] to [SEP]",
    "attention from other tokens to [SEP]",
    "attention to previous token (no special tokens)",
    "attention to next token (no special tokens)",
)


OFFSETS = (0, -1, 1)
"""The token itself, the previous token, the next: the order of `RowStatistics.neighbour_weights`."""


class _TargetIndex(NamedTuple):
    """Targets of a batch, the same in every layer.

    `pairs` are tokens of the same word, and those of them that no other kind of target covers; `neighbour_masks` is
    (offset, batch, token, 3): sources with any target at the offset, with one of no other kind, and with source and
    target non-special; `n_sources` (batch, measure).
    """

    pairs: TokenPairs
    neighbour_masks: Tensor
    n_sources: Tensor


def _prepare(batch: TokenBatch, punctuation: Punctuation) -> _TargetIndex:
    tokens, non_special, kinds = batch.token_mask, batch.non_special_mask, KINDS_BY_PUNCTUATION[punctuation](batch)
    other_kind, n_separators = kinds[..., 3], kinds[..., 1].sum(1)
    indices = move_to_device(_same_word_pairs(batch, punctuation), batch.device)
    pairs = TokenPairs(indices, torch.ones((len(tokens), 2), device=tokens.device), batch.padded_length)
    source_and_target = ((tokens, tokens), (tokens, other_kind), (non_special, non_special))
    neighbour_masks = torch.stack(
        [
            torch.stack([sources & _shift(targets, offset) for sources, targets in source_and_target], -1)
            for offset in OFFSETS
        ]
    ).float()
    n_non_special = neighbour_masks[1:, ..., 2].sum(-1)
    n_sources = [*[batch.lengths] * 8, n_separators, batch.lengths - n_separators, *n_non_special]
    return _TargetIndex(pairs, neighbour_masks, torch.stack(n_sources, -1))


def _shift(flags: Tensor, offset: int) -> Tensor:
    """(batch, token): the flag of the token at the offset, False beyond the ends."""
    return torch.nn.functional.pad(flags, (1, 1))[:, 1 + offset : 1 + offset + flags.shape[1]]


def _same_word_pairs(batch: TokenBatch, punctuation: Punctuation) -> IntArray:
    """(4, pair): row, source, target and sum of the `pairs` of a `_TargetIndex`."""
    word_ids = batch.padded_array("word_ids", NO_WORD)
    source, target = pairs = matching_pairs(word_ids, word_ids)
    is_other_kind = KIND_FLAGS_BY_PUNCTUATION[punctuation](batch)[..., 3].ravel()
    is_distant = is_other_kind[target] & (abs(source - target) > 1)
    return locate_pairs((pairs[:, source != target], pairs[:, is_distant]), batch.padded_length)


def _needs(prepared: _TargetIndex) -> StatisticNeeds:
    return StatisticNeeds(pairs=prepared.pairs)


def _target_shares(
    layer: LayerActivations, batch: TokenBatch, target_index: _TargetIndex, punctuation: Punctuation
) -> Tensor:
    """(batch, head, measure) shares; NaN if a sentence has no such source token."""
    rows = row_statistics(layer, batch)
    if punctuation == "all":
        to_kind = rows.mass_by_kind[:, :, SOURCE_GROUPS.index("all")]
    else:
        received = attention_received(layer.attention, batch)
        to_kind = received @ KINDS_BY_PUNCTUATION[punctuation](batch).to(received.dtype)
    sep_to_sep = rows.mass_by_kind[:, :, SOURCE_GROUPS.index("separators"), 1]
    same_word, distant_same_word = pair_sums(layer, target_index.pairs).unbind(-1)
    neighbours = torch.stack(
        [
            weights @ masks.to(weights.dtype)
            for weights, masks in zip(rows.neighbour_weights, target_index.neighbour_masks, strict=True)
        ],
        2,
    )
    other = (to_kind[..., 3] - neighbours[..., 1].sum(-1) - distant_same_word).clamp(min=0)
    other_to_sep = (to_kind[..., 1] - sep_to_sep).clamp(min=0)
    columns = [*to_kind[..., :3].unbind(-1), *neighbours[..., 0].unbind(-1), same_word, other, sep_to_sep, other_to_sep]
    sums = torch.cat([torch.stack(columns, -1), neighbours[..., 1:, 2]], -1)
    return sums / target_index.n_sources.to(sums.dtype)[:, None]


def _build_site(punctuation: Punctuation) -> ReducedSite:
    clark = punctuation == ".,"
    return reduction(
        "attention.targets" + ".full_stop_and_comma" * clark,
        axes=("target",),
        labels=MEASURES,
        description="share of each head's attention by target, averaged over source tokens"
        + " (punctuation: full stops and commas)" * clark,
        prepare=partial(_prepare, punctuation=punctuation),
        # Row statistics sum over all punctuation: full stops and commas are read off the attention itself.
        needs=None if clark else _needs,
        version=2,
    )(partial(_target_shares, punctuation=punctuation))


targets_site, clark_targets_site = _build_site("all"), _build_site(".,")
TOKEN_SITES: dict[Punctuation, ReducedSite] = {"all": targets_site, ".,": clark_targets_site}

TargetType = Literal["token", "pos", "role", "feature"]
REQUIRED_ANNOTATIONS: dict[TargetType, tuple[str, ...]] = {
    "token": (),
    "pos": ("pos",),
    "role": ("relations",),
    "feature": ("pos", "relations"),
}


def _site(target_type: TargetType, punctuation: Punctuation, legacy: bool) -> ReducedSite:
    match target_type:
        case "token":
            return TOKEN_SITES[punctuation]
        case "pos":
            return tag_target_site
        case "role":
            return role_target_site
        case "feature":
            return feature_target_site(0.0) if legacy else feature_target_site()


@analysis(
    question="What does each head attend to: special tokens, punctuation, the token itself, its neighbours?",
    special_tokens="Special tokens: included, except in measures marked (no special tokens) and with --target-type pos "
    "or role.",
    citations=("clark2019", "kovaleva2019", "vig2019structure"),
    sites=lambda options: (_site(options["target_type"], options["punctuation"], options["legacy"]),),
    version=3,
)
def targets(
    recording: Recording,
    randomised: Recording | None,
    *,
    target_type: Annotated[
        TargetType,
        "How targets are grouped: `token` (special tokens, punctuation, neighbours ...), `pos`, `role` (syntactic "
        "role) or `feature` (linguistic features of Kovaleva et al.); all but `token` need annotations.",
    ] = "token",
    punctuation: PunctuationOption = "all",
    average: Annotated[
        Average,
        "For --target-type pos and role. `micro`: pool all attention, as in the paper; `macro`: average per sentence "
        "first.",
    ] = "micro",
    legacy: Annotated[
        bool, "Reproduce the released code with --target-type feature: sentences without the feature count as 0."
    ] = False,
    seed: Annotated[int, "Random seed (bootstrap)."] = 0,
) -> HeadGrid:
    """Share of attention by target: 0 none, 1 all; averaged over source tokens, then over sentences.

    `attention to punctuation` is attention to tokens that consist of punctuation marks, among them hyphens and
    apostrophes inside words; Clark et al. count only full stops and commas (--punctuation .,). `attention to other
    tokens` is attention to tokens of none of the seven kinds before it. Kinds overlap ([SEP] can be the next token), so
    that shares need not sum to 1. `attention from [SEP] to [SEP]` has only [SEP] as sources, `attention from other
    tokens to [SEP]` all other tokens. Measures marked (no special tokens) count only attention between two non-special
    neighbours, from tokens that have such a neighbour: a head that always attends to the previous token scores 1.
    Clark's released figure swaps the legends of next and previous; here previous is the token before.

    With `pos` and `role` (Vig & Belinkov): the share of all attention among non-special tokens that falls on tokens of
    such words; the shares sum to 1. With `feature` (Kovaleva et al.): for each sentence the most attended token with
    the feature, averaged over all source tokens, including special ones; sentences without the feature are skipped.
    Their code counts those as 0, finds negation by substring ("another") and marks every token spelt like a feature
    word; here words are found by their characters. Nouns are NOUN and PROPN, verbs VERB and AUX.
    """
    if REQUIRED_ANNOTATIONS[target_type]:
        recording.corpus.require_annotations(
            *REQUIRED_ANNOTATIONS[target_type], analysis_name=f"attention/targets --target-type {target_type}"
        )
    site = _site(target_type, punctuation, legacy)
    if target_type in ("token", "feature"):
        units = "share of attention, 0 to 1" if target_type == "token" else "attention weight, 0 to 1"
        return mean_grid(recording, randomised, site, units=units, seed=seed)
    labels = occurring_labels(target_type, recording.inputs)
    units = dict.fromkeys(labels, "share of attention among non-special tokens, 0 to 1")
    return ratio_grid(recording, randomised, site, units=units, average=average, seed=seed, labels=labels)
