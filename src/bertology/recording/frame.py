"""What a reduction may know about the batch whose attention it sees: lengths, special pieces, words, inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from bertology.encoder.encoder import Batch
from bertology.encoder.pieces import Special
from bertology.recording.entry import Entry
from bertology.recording.piece_kinds import kinds_of
from bertology.recording.stretches import Stretches, stretches_of

if TYPE_CHECKING:
    from bertology.recording.kernel_calls import Known


@dataclass(frozen=True)
class Frame:
    """One padded batch: every tensor is (batch, piece) unless it says otherwise.

    `fed` is what the encoder was given instead of the entries' own pieces, where an objective masks some of them.
    """

    entries: Sequence[Entry]
    device: str = "cpu"
    fed: Batch | None = None

    @cached_property
    def width(self) -> int:
        """Pieces in the longest entry: the padded length."""
        return max(len(entry.pieces) for entry in self.entries)

    @cached_property
    def lengths(self) -> Tensor:
        """(batch,) pieces of each entry."""
        return torch.tensor([len(entry.pieces) for entry in self.entries], device=self.device)

    @cached_property
    def real(self) -> Tensor:
        """Which pieces are there and not padding."""
        return torch.arange(self.width, device=self.device) < self.lengths[:, None]

    @cached_property
    def special(self) -> Tensor:
        """The `Special` kind of each piece."""
        return self._padded("special", Special.NONE)

    @cached_property
    def ordinary(self) -> Tensor:
        """Which pieces are real and not special."""
        return self.real & (self.special == Special.NONE)

    @cached_property
    def special_places(self) -> tuple[Tensor, Tensor]:
        """(special piece,) the batch rows and the places of real pieces that are special."""
        row, place = torch.nonzero(self.real & ~self.ordinary).T
        return row, place

    @cached_property
    def masked(self) -> Tensor:
        """Which pieces the encoder was given a mask instead of."""
        return torch.zeros_like(self.real) if self.fed is None else self.real & (self.fed.ids != self.batch.ids)

    @cached_property
    def word(self) -> Tensor:
        """The word index of each piece, -1 where it has none."""
        return self._padded("word", -1)

    @cached_property
    def word_place(self) -> Tensor:
        """Which word of the input, counted with what is no word, each piece stands in: a special token is one too."""
        begins = torch.ones_like(self.real)
        begins[:, 1:] = (self.word[:, 1:] != self.word[:, :-1]) | (self.word[:, 1:] < 0)
        return begins.cumsum(1) - 1

    @cached_property
    def word_share(self) -> Tensor:
        """What share of its word, by `word_place`, each piece is; 0 for padding."""
        sizes = torch.zeros_like(self.word_place).scatter_add_(1, self.word_place, torch.ones_like(self.word_place))
        return self.real / sizes.gather(1, self.word_place)

    @cached_property
    def steps(self) -> Tensor:
        """(batch, 4, from, to): how far apart, in pieces and in words, all pairs are, and ordinary ones.

        Attention from a word is the mean over its pieces: in words a pair counts as its source's share of a word.
        """
        places = torch.arange(self.width, device=self.device).float().expand_as(self.word)
        in_pieces, in_words = ((p[:, :, None] - p[:, None, :]).abs() for p in (places, self.word_place.float()))
        in_words *= self.word_share[:, :, None]
        return torch.stack(
            [
                steps * rows[:, :, None] * rows[:, None, :]
                for steps in (in_pieces, in_words)
                for rows in (self.real, self.ordinary)
            ],
            1,
        )

    @cached_property
    def stretches(self) -> tuple[Stretches, ...]:
        """The batch as runs of entries whose ordinary pieces stand at the same places."""
        return stretches_of(self.entries)

    @cached_property
    def kinds(self) -> Tensor:
        """(batch, piece, kind) which of `KINDS` each piece is; all False for padding."""
        return kinds_of(self)

    @cached_property
    def known(self) -> Known:
        """What kernels on an accelerator know of the pieces."""
        from bertology.recording.kernel_calls import known_of

        return known_of(self)

    @cached_property
    def part(self) -> Tensor:
        """The part of each piece, -1 for special pieces."""
        return self._padded("part", -1)

    @cached_property
    def batch(self) -> Batch:
        """The ids to feed the encoder."""
        return Batch(self._padded("ids", 0), self._padded("types", 0), self.real.long())

    def per_piece(self, flags: Sequence[np.ndarray[tuple[int], np.dtype[np.bool_]]]) -> Tensor:
        """(batch, piece) booleans from one array of flags an entry, padded with False."""
        padded = np.zeros((len(self.entries), self.width), np.bool_)
        for row, flag in enumerate(flags):
            padded[row, : len(flag)] = flag
        return torch.from_numpy(padded).to(self.device)

    def _padded(self, name: str, filler: int) -> Tensor:
        padded = np.full((len(self.entries), self.width), filler, np.int64)
        for row, entry in enumerate(self.entries):
            padded[row, : len(entry.pieces)] = getattr(entry.pieces, name)
        return torch.from_numpy(padded).to(self.device)
