"""Sites: named places in an encoder with named axes, raw (kept whole) or reduced (a few numbers a sentence and head).

A reduced site is a small function of one layer's attention, evaluated inside the forward pass while that layer's map
exists, on the device; what leaves is (layer, head, ...) numbers a sentence, never an n x n map.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bertology.encoder.pieces import Pieces
from bertology.errors import unknown_name

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attend import LayerActivations
    from bertology.recording.frame import Frame
    from bertology.recording.wanted import Wanted

_NAME = re.compile(r"[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)*")  # also the name of a folder

PIECE_AXES = frozenset({"piece", "from", "to"})
WORD_AXES = frozenset({"word", "from_word", "to_word"})


@dataclass(frozen=True)
class RawSite:
    """Activations as they are: `axes` name the dimensions of one sentence's array."""

    name: str
    axes: tuple[str, ...]
    about: str

    @property
    def identity(self) -> str:
        """What the store files this site under."""
        return self.name


@dataclass(frozen=True)
class ReducedSite:
    """A function of one layer's attention: (batch, head, from, to) in, (batch, head, *axes) out.

    `prepare` runs once a batch, `reduce` once a layer, in the order of layers: what `prepare` returns may carry
    something along from layer to layer, such as the product of all layers so far. `labels` name the entries of the
    last axis. A change of what `reduce` computes needs a new `version`: it is part of the address under which the
    numbers are stored. `gradient` and `vectors` say that it reads gradients, or value vectors and what surrounds
    attention: only a forward pass has them, not a recording of attention maps. A `whole` site compares heads across
    layers: its `reduce` runs once a batch, on the maps of all layers with their heads one after the other along the
    head axis. A site that takes every head by itself, and from rows, pairs and strongest words alone, says what it
    `wants` of these, given what it prepared: where they can be had without a map, its `reduce` runs once a batch, on
    the heads of all layers.
    """

    name: str
    axes: tuple[str, ...]
    about: str
    reduce: Callable[[LayerActivations, Frame, Any], Tensor]
    labels: tuple[str, ...] = ()
    prepare: Callable[[Frame], Any] | None = None
    gradient: bool = False
    version: int = 1
    vectors: bool = False
    whole: bool = False
    wants: Callable[[Any], Wanted] | None = None

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"the name of a site is letters, digits, dots and underscores, not {self.name!r}")

    @property
    def identity(self) -> str:
        """What the store files this site under."""
        return f"{self.name}.v{self.version}"


Site = RawSite | ReducedSite

_HEAD_VECTORS = ("layer", "head", "piece", "size")
_MAPS = ("layer", "head", "from", "to")

RAW: dict[str, RawSite] = {
    site.name: site
    for site in (
        RawSite("attention", _MAPS, "attention weights after the softmax"),
        RawSite("attention_gradient", _MAPS, "gradient of the objective with respect to each attention weight"),
        RawSite("hidden", ("layer+1", "piece", "width"), "hidden states, layer 0 the embeddings"),
        RawSite("hidden.words", ("layer+1", "word", "width"), "hidden states of words: the mean over a word's pieces"),
        RawSite("query", _HEAD_VECTORS, "query vectors as the dot product sees them"),
        RawSite("key", _HEAD_VECTORS, "key vectors as the dot product sees them"),
        RawSite("value", _HEAD_VECTORS, "value vectors"),
        RawSite("context", _HEAD_VECTORS, "output of each head before the output projection"),
    )
}
LOGITS: dict[str, RawSite] = {
    f"logits.{name}": RawSite(f"logits.{name}", axes, about)
    for name, axes, about in (
        ("mlm", ("piece", "vocabulary"), "masked-language-model scores"),
        ("lm", ("piece", "vocabulary"), "next-token scores"),
        ("replaced", ("piece",), "replaced-token scores (ELECTRA)"),
        ("nsp", ("class",), "next-sentence scores"),
        ("sop", ("class",), "sentence-order scores"),
        ("label", ("class",), "sentence-class scores"),
        ("token", ("piece", "class"), "token-class scores"),
        ("answer_start", ("piece",), "answer-start scores"),
        ("answer_end", ("piece",), "answer-end scores"),
        ("choice", ("class",), "score of this option"),
    )
}


HIDDEN = frozenset({"hidden", "hidden.words"})
"""The sites made of what every layer returns: all that a table of static vectors has."""

_reductions: dict[str, ReducedSite] = {}

Reduce = Callable[["LayerActivations", "Frame", Any], "Tensor"]


def reduction(
    name: str,
    *,
    axes: tuple[str, ...],
    about: str,
    labels: tuple[str, ...] = (),
    prepare: Callable[[Frame], Any] | None = None,
    gradient: bool = False,
    vectors: bool = False,
    whole: bool = False,
    wants: Callable[[Any], Wanted] | None = None,
    version: int = 1,
) -> Callable[[Reduce], ReducedSite]:
    """Declare a function of one layer's attention as a reduced site that can be asked for by name."""

    def declare(function: Reduce) -> ReducedSite:
        site = ReducedSite(name, axes, about, function, labels, prepare, gradient, version, vectors, whole, wants)
        _reductions[name] = site
        return site

    return declare


def reductions() -> dict[str, ReducedSite]:
    """The reduced sites declared by the modules imported so far."""
    return dict(sorted(_reductions.items()))


def resolve(names: Iterable[str | Site], outputs: frozenset[str] = frozenset()) -> tuple[Site, ...]:
    """The sites named; `logits` stands for every head the encoder has."""
    found: dict[str, Site] = {}
    by_name: dict[str, Site] = {**RAW, **LOGITS, **_reductions}
    for name in names:
        if not isinstance(name, str):
            chosen: tuple[Site, ...] = (name,)
        elif name == "logits":
            chosen = tuple(LOGITS[f"logits.{output}"] for output in sorted(outputs))
        elif name in by_name:
            chosen = (by_name[name],)
        else:
            raise unknown_name("site", name, [*by_name, "logits"], remedy="See `bertology list sites`")
        found |= {site.identity: site for site in chosen}
    return tuple(found.values())


def sees_attention(site: Site) -> bool:
    """Whether the site is taken where attention is computed, and not from what the model returns."""
    return isinstance(site, ReducedSite) or site.axes[0] == "layer"


def needs_gradient(site: Site) -> bool:
    """Whether the site exists only after a backward pass."""
    return site.name == "attention_gradient" or (isinstance(site, ReducedSite) and site.gradient)


def shape_of(axes: tuple[str, ...], shape: tuple[int, ...], pieces: Pieces) -> tuple[int, ...]:
    """The shape of one entry's array, cut out of a padded one along its piece and word axes."""
    lengths = dict.fromkeys(PIECE_AXES, len(pieces)) | dict.fromkeys(WORD_AXES, pieces.words)
    return tuple(lengths.get(axis, size) for axis, size in zip(axes, shape, strict=True))
