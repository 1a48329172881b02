"""Sites: named activations of an encoder with named axes, raw (stored whole) or reduced (a few numbers per head).

A reduced site is a function of one layer's attention, evaluated on the device during the forward pass, while the
attention of that layer exists. Only its result, (layer, head, ...) per input, is stored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from bertology.encoder.tokens import TokenisedInput
from bertology.errors import unknown_name
from bertology.lazy import torch
from bertology.statistics.pairs import StatisticNeeds
from bertology.statistics.words import RowPooling, WordSlots, strongest_words, word_slots

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attention_hook import LayerActivations
    from bertology.encoder.token_batch import TokenBatch

_NAME = re.compile(r"[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)*")  # also the name of a folder

TOKEN_AXES = frozenset({"token", "from", "to"})
WORD_AXES = frozenset({"word", "from_word", "to_word"})


@dataclass(frozen=True)
class RawSite:
    """Activations stored unchanged: `axes` name the dimensions of one input's array.

    `attribute` is the field of `LayerActivations` that the site reads, empty if it reads the model's output.
    """

    name: str
    axes: tuple[str, ...]
    description: str
    attribute: str = ""

    @property
    def storage_key(self) -> str:
        """The site's name in a recording."""
        return self.name


@dataclass(frozen=True)
class ReducedSite:
    """A function of one layer's attention: (batch, head, from, to) in, (batch, head, *axes) out.

    `prepare` runs once per batch, `reduce` once per layer, in order, so that the prepared object can carry state from
    layer to layer. `labels` name the positions of the last axis. `version` is part of the storage key: raise it when
    `reduce` computes something else. A site with `needs_gradient` or `needs_values` exists only in a forward pass and
    cannot be computed from recorded attention. With `across_layers`, `reduce` runs once per batch, on the heads of all
    layers concatenated along the head axis. A site that treats every head alone and reads only row statistics, pair
    sums and strongest words declares them by `needs`, a function of the prepared object; where they can be computed
    without storing attention, `reduce` runs on the heads of several layers at once.
    """

    name: str
    axes: tuple[str, ...]
    description: str
    reduce: ReduceFunction
    labels: tuple[str, ...] = ()
    prepare: Callable[[TokenBatch], Any] | None = None
    needs_gradient: bool = False
    version: int = 1
    needs_values: bool = False
    across_layers: bool = False
    needs: Callable[[Any], StatisticNeeds] | None = None

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"the name of a site is letters, digits, dots and underscores, not {self.name!r}")

    @property
    def storage_key(self) -> str:
        """The site's name in a recording."""
        return f"{self.name}.v{self.version}"


Site = RawSite | ReducedSite
ReduceFunction = Callable[["LayerActivations", "TokenBatch", Any], "Tensor"]

_HEAD_VECTOR_AXES = ("layer", "head", "token", "size")
_ATTENTION_AXES = ("layer", "head", "from", "to")

RAW_SITES: dict[str, RawSite] = {
    site.name: site
    for site in (
        RawSite("attention", _ATTENTION_AXES, "attention weights after the softmax", "attention"),
        RawSite(
            "attention_gradient",
            _ATTENTION_AXES,
            "gradient of the objective with respect to each attention weight",
            "gradient",
        ),
        RawSite("hidden", ("layer+1", "token", "width"), "hidden states; layer 0 is the embeddings"),
        RawSite("hidden.words", ("layer+1", "word", "width"), "hidden states of words (mean over tokens)"),
        RawSite("query", _HEAD_VECTOR_AXES, "query vectors as used in the attention dot product", "query"),
        RawSite("key", _HEAD_VECTOR_AXES, "key vectors as used in the attention dot product", "key"),
        RawSite("value", _HEAD_VECTOR_AXES, "value vectors", "value"),
        RawSite("head_output", _HEAD_VECTOR_AXES, "head output before the output projection", "head_outputs"),
    )
}
LOGIT_SITES: dict[str, RawSite] = {
    f"logits.{name}": RawSite(f"logits.{name}", axes, description)
    for name, axes, description in (
        ("mlm", ("token", "vocabulary"), "masked-language-model logits"),
        ("lm", ("token", "vocabulary"), "next-token logits"),
        ("replaced", ("token",), "replaced-token-detection logits (ELECTRA)"),
        ("nsp", ("class",), "next-sentence logits"),
        ("sop", ("class",), "sentence-order logits"),
        ("label", ("class",), "sequence-classification logits"),
        ("token", ("token", "class"), "token-classification logits"),
        ("answer_start", ("token",), "answer-start logits"),
        ("answer_end", ("token",), "answer-end logits"),
        ("choice", ("class",), "logit of this option"),
    )
}

HIDDEN_SITES = frozenset({"hidden", "hidden.words"})
"""Sites of hidden states: the only ones that static vectors have."""

DECLARATIONS = "bertology.analyses.registry"
"""The module that imports all analyses, and with them the declarations of reduced sites."""
_reductions: dict[str, ReducedSite] = {}


def reduction(
    name: str,
    *,
    axes: tuple[str, ...],
    description: str,
    labels: tuple[str, ...] = (),
    prepare: Callable[[TokenBatch], Any] | None = None,
    needs: Callable[[Any], StatisticNeeds] | None = None,
    needs_gradient: bool = False,
    needs_values: bool = False,
    across_layers: bool = False,
    version: int = 1,
) -> Callable[[ReduceFunction], ReducedSite]:
    """Declare a function of one layer's attention as a reduced site, available by its name; see `ReducedSite`."""

    def declare(function: ReduceFunction) -> ReducedSite:
        _reductions[name] = ReducedSite(
            name,
            axes,
            description,
            function,
            labels,
            prepare=prepare,
            needs=needs,
            needs_gradient=needs_gradient,
            needs_values=needs_values,
            across_layers=across_layers,
            version=version,
        )
        return _reductions[name]

    return declare


def reductions() -> dict[str, ReducedSite]:
    """The reduced sites declared by the modules imported so far."""
    return dict(sorted(_reductions.items()))


def _sites_by_name() -> dict[str, Site]:
    return {**RAW_SITES, **LOGIT_SITES, **_reductions}


def resolve_sites(names: Iterable[str | Site], task_heads: frozenset[str] = frozenset()) -> tuple[Site, ...]:
    """The sites of these names; `logits` stands for all task heads of the encoder."""
    names, sites = list(names), dict[str, Site]()
    by_name = _sites_by_name()
    if any(isinstance(name, str) and name != "logits" and name not in by_name for name in names):
        # Analyses declare reduced sites where they use them, and import this module.
        import_module(DECLARATIONS).load_all()
        by_name = _sites_by_name()
    for name in names:
        if not isinstance(name, str):
            named: tuple[Site, ...] = (name,)
        elif name == "logits":
            named = tuple(LOGIT_SITES[f"logits.{task_head}"] for task_head in sorted(task_heads))
        elif name in by_name:
            named = (by_name[name],)
        else:
            raise unknown_name("site", name, [*by_name, "logits"], remedy="See `bertology list sites`")
        sites |= {site.storage_key: site for site in named}
    return tuple(sites.values())


def reads_attention(site: Site) -> bool:
    """Whether the site is read in the attention hook and not from the model's output."""
    return isinstance(site, ReducedSite) or bool(site.attribute)


def needs_gradient(site: Site) -> bool:
    """Whether the site needs a backward pass."""
    return site.name == "attention_gradient" or (isinstance(site, ReducedSite) and site.needs_gradient)


def unpadded_shape(axes: tuple[str, ...], shape: tuple[int, ...], tokens: TokenisedInput) -> tuple[int, ...]:
    """The shape of one input's array within a padded array."""
    return tuple(
        [
            len(tokens) if axis in TOKEN_AXES else tokens.n_words if axis in WORD_AXES else size
            for axis, size in zip(axes, shape, strict=True)
        ]
    )


class _WordIndex(NamedTuple):
    """`excluded_pairs` is (batch, 1, word, word): a word with itself, and words without tokens."""

    words: WordSlots
    excluded_pairs: Tensor


@cache
def strongest_word_site(pooling: RowPooling = "mean") -> ReducedSite:
    """The site with the other word each word attends to most, and the other word that attends to it most.

    (direction, word), with `DIRECTIONS` along the first axis, then, except from half precision on a GPU, the numbers of
    equally strong words in both directions, of which a random one is taken; `NO_WORD` if there is none. Attention to a
    word is the sum over its tokens; `pooling` combines the rows of its tokens.
    """

    def reduce(layer: LayerActivations, batch: TokenBatch, prepared: _WordIndex) -> Tensor:
        return strongest_words(layer, prepared.words, prepared.excluded_pairs, pooling)

    return ReducedSite(
        "attention.strongest_word" + ("" if pooling == "mean" else f".{pooling}"),
        ("direction", "word"),
        f"the word each word attends to most, and the word that attends to it most (rows of tokens: {pooling})",
        reduce,
        prepare=_prepare_words,
        version=2,
        needs=(lambda prepared: StatisticNeeds(words=prepared.words)) if pooling == "mean" else None,
    )


def _prepare_words(batch: TokenBatch) -> _WordIndex:
    words = word_slots(batch)
    has_no_tokens = ~words.has_tokens
    itself = torch.eye(words.max_words, dtype=torch.bool, device=has_no_tokens.device)
    return _WordIndex(words, (itself | has_no_tokens[:, :, None] | has_no_tokens[:, None, :])[:, None])
