"""The strongest links of every word in every head, computed in the forward pass."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from bertology.lazy import torch
from bertology.recording.sites import ReducedSite
from bertology.statistics.words import NO_WORD, WordSlots, word_attention, word_slots

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attention_hook import LayerActivations
    from bertology.encoder.token_batch import TokenBatch

N_LINKS = 3
"""Links kept of each word. Rows sum to 1 at most, so that no link above 1/4 is missing."""
COMPLETE_ABOVE = 1 / (N_LINKS + 1)


class _OtherWords(NamedTuple):
    """`excluded_pairs` is (batch, 1, word, word): a word with itself, and words without tokens."""

    words: WordSlots
    excluded_pairs: Tensor


@cache
def strongest_links_site() -> ReducedSite:
    """The site with the three other words that each word attends to most, and the weights of these links.

    (link, word): first the words, `NO_WORD` where there are fewer, then their weights. Attention to a word is the sum
    over its tokens, attention from a word the mean.
    """
    return ReducedSite(
        "attention.strongest_links",
        ("link", "word"),
        "the three other words each word attends to most, and the weights",
        _strongest_links,
        prepare=_prepare_words,
    )


def _prepare_words(batch: TokenBatch) -> _OtherWords:
    words = word_slots(batch)
    has_no_tokens = ~words.has_tokens
    itself = torch.eye(words.max_words, dtype=torch.bool, device=has_no_tokens.device)
    return _OtherWords(words, (itself | has_no_tokens[:, :, None] | has_no_tokens[:, None, :])[:, None])


def _strongest_links(layer: LayerActivations, _batch: TokenBatch, prepared: _OtherWords) -> Tensor:
    """(batch, head, 2 x N_LINKS, word)."""
    attention = word_attention(layer.attention.float(), prepared.words).masked_fill(prepared.excluded_pairs, -1.0)
    n_words = attention.shape[-1]
    n_kept = min(N_LINKS, n_words)
    shape = (*attention.shape[:2], 2 * N_LINKS, n_words)
    links = attention.new_zeros(shape)
    links[:, :, :N_LINKS] = NO_WORD
    if n_kept:
        weights, targets = attention.topk(n_kept, dim=-1)
        is_link = weights >= 0
        links[:, :, :n_kept] = targets.masked_fill(~is_link, NO_WORD).transpose(-1, -2).to(links)
        links[:, :, N_LINKS : N_LINKS + n_kept] = weights.masked_fill(~is_link, 0.0).transpose(-1, -2)
    return links
