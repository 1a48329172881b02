"""Statistics of layers that have no map, where Triton is there to work on them: all layers of a batch together."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from bertology.encoder.attend import LayerActivations
from bertology.recording.frame import Frame
from bertology.recording.wanted import Wanted

if TYPE_CHECKING:
    from bertology.recording.kernel_calls import Asked
    from bertology.recording.pairs import Pairs
    from bertology.recording.word_level import Words

_PLACE, _WORD, _ONE, _ORDINARY = 6, 7, 5, 4
"""Which feature of targets is what; see `Known`."""


class FusedRows:
    """Rows, pairs and strongest words of maps that were never made; see `Rows`, `pair_sums` and `strongest_words`.

    All heads of all layers stand along the head axis. `rows` is (8, batch, head, from) and `sums` (batch, head, source,
    2, feature), as kernels write them; of pairs there are (batch, head, sum), of words (batch, head, 2, word).
    """

    def __init__(
        self, rows: Tensor, sums: Tensor, pairs: list[tuple[Pairs, Tensor]], words: list[tuple[Words, Tensor]]
    ) -> None:
        self.peak, self.ordinary_peak, self.information, self.ordinary_information, self.ordinary = rows[:5].unbind(0)
        self.near = rows[5], rows[6], rows[7]
        self._sums, self._pairs, self._words = sums, pairs, words

    @cached_property
    def to_kinds(self) -> Tensor:
        """(batch, head, source, kind): what real, ordinary and separating pieces together give to each of `KINDS`."""
        return self._sums[:, :, :3, :, :4].sum(3)

    @cached_property
    def distances(self) -> Tensor:
        """(batch, head, 4): attention times distance; see `Rows`."""
        # The sum of a |j - i| is the sum of a j less that of a i, the other way round for what stands before.
        real, ordinary, _, real_place, ordinary_place, share, inner, share_word, inner_word = (
            self._sums[..., 1, :] - self._sums[..., 0, :]
        )[:, :, :9].unbind(2)
        found = [
            real[..., _PLACE] - real_place[..., _ONE],
            ordinary[..., _PLACE + 2] - ordinary_place[..., _ORDINARY],
            share[..., _WORD] - share_word[..., _ONE],
            inner[..., _WORD + 2] - inner_word[..., _ORDINARY],
        ]
        return torch.stack(found, -1)

    def pair_sums(self, pairs: Pairs) -> Tensor:
        """(batch, head, sum): attention over the pairs of each sum, which were asked for before the pass."""
        return next(sums for own, sums in self._pairs if own is pairs)

    def strongest_words(self, words: Words) -> Tensor:
        """(batch, head, 2, word): what each word attends to most, and what attends most to it."""
        return next(found for own, found in self._words if own is words)


class FusedLayers:
    """Takes what is wanted out of one layer after the other, while its queries and keys are there."""

    def __init__(self, frame: Frame, wanted: Sequence[Wanted]) -> None:
        self._frame = frame
        self._pairs = [want.pairs for want in wanted if want.pairs is not None]
        self._together = self._pairs[0].together(self._pairs[1:]) if self._pairs else None
        self._words = [want.words for want in wanted if want.words is not None]
        self._mask: Tensor | None = None
        self._hides_padding = False
        self._found: _Found | None = None
        self._first = 0
        self.count = 0  # of layers that wait to be finished

    def see(self, layer: LayerActivations, room: int = 1) -> None:
        """Take what is wanted out of one layer. If none waits, `room` is for how many that will there must be room."""
        from bertology.recording import kernel_calls

        asked, known = self._asked(layer), self._frame.known
        if self._found is None:
            self._found = _room(self._together, self._words, asked.query, room)
            self._first = layer.layer
        found, first = self._found, asked.query.shape[1] * self.count
        kernel_calls.row_sums(asked, known, found.normaliser, found.rows, found.sums, first)
        for marked, sums in zip(self._together.marked if self._together else (), found.pairs, strict=True):
            kernel_calls.pair_sums(asked, found.normaliser, marked, sums, first)
        for words, (places, best) in zip(self._words, found.words, strict=True):
            assert words.blocks is not None
            kernel_calls.strongest_words(asked, found.normaliser, words.blocks, best, places, first)
        self.count += 1

    def _asked(self, layer: LayerActivations) -> Asked:
        from bertology.recording.kernel_calls import Asked

        query, key, mask, known = layer.query, layer.key, layer.mask, self._frame.known
        assert query is not None and key is not None
        if mask is None:
            return Asked(query, key, None, layer.scaling, known.width, True)
        if mask is not self._mask:  # all layers have the same, mostly
            self._mask, self._hides_padding = mask, _hides_padding(mask, self._frame)
        if self._hides_padding:
            return Asked(query, key, None, layer.scaling, known.lengths, False)
        return Asked(query, key, mask, layer.scaling, known.width, True)

    def finished(self) -> LayerActivations:
        """All layers that wait as one, under the number of the first."""
        found = self._found
        assert found is not None
        heads = found.normaliser.shape[1] * self.count
        sums = _apart(_joined(self._together, found.pairs)[:, :heads], self._pairs) if self._together else []
        together = LayerActivations(self._first, None)
        together.rows = FusedRows(
            found.rows[:, :, :heads],
            found.sums[:, :heads],
            list(zip(self._pairs, sums, strict=True)),
            [(words, places[:, :heads]) for words, (places, _) in zip(self._words, found.words, strict=True)],
        )
        self._found, self.count = None, 0
        return together


class _Found(NamedTuple):
    """What kernels write, the heads of all layers one after the other; `normaliser` is of one layer. See `FusedRows`.

    `pairs` are (batch, head, sum) for each part that the pairs of all sites were cut into; `words` have room beside for
    what one layer needs.
    """

    normaliser: Tensor
    rows: Tensor
    sums: Tensor
    pairs: list[Tensor]
    words: list[tuple[Tensor, Tensor]]


def _room(pairs: Pairs | None, words: Sequence[Words], query: Tensor, layers: int) -> _Found:
    from bertology.recording.kernel_calls import FEATURES, SOURCE_SUMS

    batch, heads, size, _ = query.shape

    def empty(*shape: int) -> Tensor:
        return torch.empty(shape, device=query.device)

    return _Found(
        empty(batch, heads, size),
        empty(8, batch, layers * heads, size),
        empty(batch, layers * heads, SOURCE_SUMS, 2, FEATURES),
        [empty(batch, layers * heads, part.listed + part.weighed) for part in (pairs.marked if pairs else ())],
        [_room_for_words(own, query, layers) for own in words],
    )


def _room_for_words(words: Words, query: Tensor, layers: int) -> tuple[Tensor, Tensor]:
    from bertology.recording.kernel_calls import room_for_words

    assert words.blocks is not None
    places = torch.empty((len(query), layers * query.shape[1], 2, words.count), dtype=words.kind, device=query.device)
    return places, room_for_words(words.blocks, query.shape[1])


def _joined(pairs: Pairs, parts: Sequence[Tensor]) -> Tensor:
    """(batch, head, sum): the listed sums of all parts, then the weighed ones."""
    cut = [own.split([mark.listed, mark.weighed], -1) for own, mark in zip(parts, pairs.marked, strict=True)]
    listed, weighed = (torch.cat(own, -1) for own in zip(*cut, strict=True))
    return torch.cat([listed[..., : pairs.listed], weighed], -1)


def _apart(sums: Tensor, several: Sequence[Pairs]) -> list[Tensor]:
    """The sums of several pairs, taken `together`: (batch, head, sum) of each."""
    counts = [own.listed for own in several], [own.scale.shape[1] - own.listed for own in several]
    parts = sums.split([*counts[0], *counts[1]], -1)
    return [torch.cat([parts[place], parts[place + len(several)]], -1) for place in range(len(several))]


def _hides_padding(mask: Tensor, frame: Frame) -> bool:
    """Whether the mask hides padding from every piece, and nothing else."""
    return bool(torch.where(frame.real[:, None, None], mask == 0, mask < -1e4).all())


def mapless(layer: LayerActivations) -> bool:
    """Whether the layer has no maps and needs none for its rows, pairs and strongest words."""
    if layer.maps is not None or layer.query is None or layer.key is None or not _kernels():
        return False
    from bertology.recording.kernel_calls import can_take

    return can_take(layer.query, layer.key, layer.mask)


def possible(wanted: Wanted) -> bool:
    """Whether what is wanted can be had without maps, where `mapless`: words must not have too many pieces."""
    return wanted.words is None or wanted.words.blocks is not None


@cache
def _kernels() -> bool:
    return find_spec("triton") is not None
