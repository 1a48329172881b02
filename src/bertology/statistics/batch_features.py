"""Features of a token batch, computed once per batch: positions of special and non-special tokens as slices."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, wraps
from itertools import chain, groupby
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from bertology.encoder.token_batch import move_to_device
from bertology.encoder.tokens import SpecialToken
from bertology.lazy import torch

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from bertology.arrays import BoolArray
    from bertology.encoder.token_batch import TokenBatch

Feature = TypeVar("Feature")


def cached_per_batch(function: Callable[[TokenBatch], Feature]) -> Callable[[TokenBatch], Feature]:
    """Cache a function of a batch as long as the batch exists."""
    values: WeakKeyDictionary[TokenBatch, Feature] = WeakKeyDictionary()

    @wraps(function)
    def cached(batch: TokenBatch) -> Feature:
        if batch not in values:
            values[batch] = function(batch)
        return values[batch]

    return cached


@dataclass(frozen=True)
class TokenRuns:
    """Consecutive batch rows of equal length with special tokens at the same positions.

    `non_special` and `special` are the slices of adjacent tokens of either kind.
    """

    batch_rows: slice
    length: int
    non_special: tuple[slice, ...]
    special: tuple[slice, ...]


@cached_per_batch
def token_runs(batch: TokenBatch) -> tuple[TokenRuns, ...]:
    """Split a batch into groups of rows that can be sliced together, without masks and without copies.

    Batches are sorted by length and most inputs are [CLS] tokens [SEP], so that there are few groups.
    """
    runs: list[TokenRuns] = []
    start = 0
    for key, rows in groupby(recorded.tokens.special_kinds.tobytes() for recorded in batch.inputs):
        end = start + len(list(rows))
        special_kinds = np.frombuffer(key, np.int32)
        non_special, special = (tuple(_slices(special_kinds, is_special=flag)) for flag in (False, True))
        runs.append(TokenRuns(slice(start, end), len(special_kinds), non_special, special))
        start = end
    return tuple(runs)


def _slices(special_kinds: NDArray[np.int32], *, is_special: bool) -> Iterator[slice]:
    start = 0
    for special, run in groupby(kind != SpecialToken.NONE for kind in special_kinds.tolist()):
        end = start + len(list(run))
        if special is is_special:
            yield slice(start, end)
        start = end


TOKEN_KINDS = ("[CLS]", "[SEP]", "punctuation", "other")
SOURCE_GROUPS = ("all", "non-special", "separators")
"""Groups of source tokens that `RowStatistics.mass_by_kind` sums over."""

SpecialTokens = Literal["include", "exclude"]
"""Whether an analysis includes special tokens, or excludes them and renormalises each row."""

MIN_MASS = 1e-6
"""Rows with less attention than this on non-special tokens are skipped if special tokens are excluded."""


Punctuation = Literal["all", ".,"]
"""Tokens that count as punctuation: `all` that consist of punctuation marks, or only full stops and commas."""

PunctuationOption = Annotated[
    Punctuation,
    "What counts as punctuation: `all` tokens that consist of punctuation marks, or only full stops and commas (`.,`), "
    "as in Clark et al.",
]


@cached_per_batch
def token_kinds(batch: TokenBatch) -> Tensor:
    """(batch, token, kind) booleans, all False for padding."""
    return move_to_device(token_kind_flags(batch), batch.device)


@cached_per_batch
def token_kinds_of_clark(batch: TokenBatch) -> Tensor:
    """`token_kinds` with only full stops and commas as punctuation."""
    return move_to_device(token_kind_flags_of_clark(batch), batch.device)


@cached_per_batch
def token_kind_flags(batch: TokenBatch) -> BoolArray:
    """`token_kinds` on the host."""
    return _token_kinds(batch, is_punctuation)


@cached_per_batch
def token_kind_flags_of_clark(batch: TokenBatch) -> BoolArray:
    """`token_kinds_of_clark` on the host."""
    return _token_kinds(batch, _is_full_stop_or_comma)


KINDS_BY_PUNCTUATION: dict[Punctuation, Callable[[TokenBatch], Tensor]] = {
    "all": token_kinds,
    ".,": token_kinds_of_clark,
}
KIND_FLAGS_BY_PUNCTUATION: dict[Punctuation, Callable[[TokenBatch], BoolArray]] = {
    "all": token_kind_flags,
    ".,": token_kind_flags_of_clark,
}


def _token_kinds(batch: TokenBatch, is_mark: Callable[[str], bool]) -> BoolArray:
    special_kinds = batch.padded_array("special_kinds", SpecialToken.NONE)
    cls, sep = (batch.is_token & (special_kinds == kind) for kind in (SpecialToken.CLS, SpecialToken.SEP))
    is_marked = np.zeros(batch.is_token.shape, np.bool_)
    is_marked[batch.is_token] = _flag_tokens(batch, is_mark)
    punctuation = is_marked & (special_kinds == SpecialToken.NONE)
    return np.stack([cls, sep, punctuation, batch.is_token & ~cls & ~sep & ~punctuation], -1)


def _flag_tokens(batch: TokenBatch, is_mark: Callable[[str], bool]) -> BoolArray:
    """Whether each token of all inputs is marked: one call for each distinct token, of which there are few."""
    tokens = list(chain.from_iterable(recorded.tokens.tokens for recorded in batch.inputs))
    ids = np.concatenate([recorded.tokens.ids for recorded in batch.inputs])
    last_position = np.full(int(ids.max()) + 1, -1)
    last_position[ids] = np.arange(len(ids))
    occurring = np.flatnonzero(last_position >= 0)
    marks = np.zeros(len(last_position), np.bool_)
    marks[occurring] = [is_mark(tokens[position]) for position in last_position[occurring].tolist()]
    return marks[ids]


@lru_cache(maxsize=2**16)
def is_punctuation(token: str) -> bool:
    """Whether a token consists of punctuation marks: those of Unicode, and the backtick.

    Unicode counts the backtick as a modifier symbol; English text uses it as an opening quotation mark.
    """
    text = token.strip("▁Ġ#") or token
    return bool(text) and all(character == "`" or unicodedata.category(character).startswith("P") for character in text)


def _is_full_stop_or_comma(token: str) -> bool:
    return token.strip("▁Ġ#") in {".", ","}


def mass_by_kind(weights: Tensor, kinds: Tensor, token_mask: Tensor) -> Tensor:
    """(batch, head, kind): the share of each row of weights that falls on a kind, averaged over rows with any weight.

    `weights` is (batch, head, from, to) and not negative. NaN where a sentence has no token of that kind.
    """
    flags = kinds.to(weights.dtype).unsqueeze(1)
    totals = (weights @ token_mask.to(weights.dtype)[:, None, :, None]).squeeze(-1)
    row_mask = token_mask.unsqueeze(1) & (totals > 0)
    shares = (weights @ flags) / totals.where(row_mask, 1).unsqueeze(-1)
    mean = (shares * row_mask.unsqueeze(-1)).sum(2) / row_mask.sum(2).unsqueeze(-1)
    return mean.where(kinds.any(1).unsqueeze(1), float("nan"))


def mass_by_kind_with_non_special(weights: Tensor, kinds: Tensor, batch: TokenBatch) -> Tensor:
    """(batch, head, kind + 1): `mass_by_kind`, then the share of punctuation among non-special tokens only."""
    index = TOKEN_KINDS.index("punctuation")
    punctuation = mass_by_kind(weights, kinds[..., index : index + 1], batch.non_special_mask)
    return torch.cat([mass_by_kind(weights, kinds, batch.token_mask), punctuation], -1)
