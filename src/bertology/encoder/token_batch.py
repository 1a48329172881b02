"""A padded batch of recorded inputs with its alignment: lengths, special tokens, words, segments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Literal

import numpy as np

from bertology.arrays import Array, BoolArray, IntArray
from bertology.corpus.example import TextInput
from bertology.corpus.sentence import ROOT
from bertology.encoder.encoder import ModelInputs
from bertology.encoder.tokens import SpecialToken, TokenisedInput
from bertology.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class RecordedInput:
    """One row of a recording: a text input, its tokens, and its position in the corpus.

    An example has several inputs if it has several options; an input longer than the model has several windows.
    """

    example_index: int
    input_index: int
    window_index: int
    text: TextInput
    tokens: TokenisedInput

    @property
    def key(self) -> tuple[int, int, int]:
        """Its position in the corpus, the same for every encoder."""
        return self.example_index, self.input_index, self.window_index


@dataclass(frozen=True, eq=False)
class TokenBatch:
    """A padded batch; every tensor is (batch, token) unless its docstring says otherwise.

    `fed_inputs` are the ids the encoder received if some tokens were masked for an objective.
    """

    inputs: Sequence[RecordedInput]
    device: str = "cpu"
    fed_inputs: ModelInputs | None = None

    @cached_property
    def padded_length(self) -> int:
        """Number of tokens of the longest input."""
        return max(len(recorded.tokens) for recorded in self.inputs)

    @cached_property
    def lengths(self) -> Tensor:
        """(batch,) number of tokens of each input."""
        return move_to_device(self.input_lengths, self.device)

    @cached_property
    def token_mask(self) -> Tensor:
        """True for tokens, False for padding."""
        return torch.arange(self.padded_length, device=self.device) < self.lengths[:, None]

    @cached_property
    def special_kinds(self) -> Tensor:
        """The `SpecialToken` kind of each token."""
        return self._pad("special_kinds", SpecialToken.NONE)

    @cached_property
    def non_special_mask(self) -> Tensor:
        """True for tokens that are neither special nor padding."""
        return self.token_mask & (self.special_kinds == SpecialToken.NONE)

    @cached_property
    def special_positions(self) -> tuple[Tensor, Tensor]:
        """(special token,) batch rows and token positions of the special tokens."""
        row, position = torch.nonzero(self.token_mask & ~self.non_special_mask).T
        return row, position

    @cached_property
    def mlm_mask(self) -> Tensor:
        """True where the encoder received the mask token in place of the token."""
        if self.fed_inputs is None:
            return torch.zeros_like(self.token_mask)
        return self.token_mask & (self.fed_inputs.input_ids != self.model_inputs.input_ids)

    @cached_property
    def word_ids(self) -> Tensor:
        """Word index of each token, -1 for tokens outside words."""
        return self._pad("word_ids", -1)

    @cached_property
    def word_positions(self) -> Tensor:
        """Position of each token on an axis of words, on which every token outside words counts as a word."""
        is_first = torch.ones_like(self.token_mask)
        is_first[:, 1:] = (self.word_ids[:, 1:] != self.word_ids[:, :-1]) | (self.word_ids[:, 1:] < 0)
        return is_first.cumsum(1) - 1

    @cached_property
    def word_fractions(self) -> Tensor:
        """1 / number of tokens at the token's `word_positions`; 0 for padding."""
        sizes = torch.zeros_like(self.word_positions).scatter_add_(
            1, self.word_positions, torch.ones_like(self.word_positions)
        )
        return self.token_mask / sizes.gather(1, self.word_positions)

    @cached_property
    def distances(self) -> Tensor:
        """(batch, 4, from, to): distances in tokens and in words, each of all pairs and of non-special pairs.

        Attention from a word is the mean over its tokens: distances in words are weighted by the source's fraction.
        """
        positions = torch.arange(self.padded_length, device=self.device).float().expand_as(self.word_ids)
        in_tokens, in_words = ((p[:, :, None] - p[:, None, :]).abs() for p in (positions, self.word_positions.float()))
        in_words *= self.word_fractions[:, :, None]
        return torch.stack(
            [
                distance * mask[:, :, None] * mask[:, None, :]
                for distance in (in_tokens, in_words)
                for mask in (self.token_mask, self.non_special_mask)
            ],
            1,
        )

    @cached_property
    def segment_ids(self) -> Tensor:
        """Segment of each token, -1 for special tokens."""
        return self._pad("segment_ids", -1)

    @cached_property
    def model_inputs(self) -> ModelInputs:
        """Unmasked inputs of the encoder."""
        has_padding = any(len(recorded.tokens) < self.padded_length for recorded in self.inputs)
        return ModelInputs(
            self._pad("ids", 0), self._pad("type_ids", 0), self.token_mask.long(), known_padding=has_padding
        )

    def pad_flags(self, flags: Sequence[BoolArray]) -> Tensor:
        """(batch, token) booleans from one array per input, padded with False."""
        padded = np.zeros((len(self.inputs), self.padded_length), np.bool_)
        for row, flag in enumerate(flags):
            padded[row, : len(flag)] = flag
        return move_to_device(padded, self.device)

    def padded_array(self, field: str, filler: int) -> IntArray:
        """(batch, token) a field of `TokenisedInput`, on the host."""
        if (field, filler) not in self._padded_arrays:
            padded = np.full((len(self.inputs), self.padded_length), filler, np.int64)
            padded[self.is_token] = np.concatenate(list(map(attrgetter(f"tokens.{field}"), self.inputs)))
            self._padded_arrays[field, filler] = padded
        return self._padded_arrays[field, filler]

    @cached_property
    def _padded_arrays(self) -> dict[tuple[str, int], IntArray]:
        return {}

    @cached_property
    def is_token(self) -> BoolArray:
        """`token_mask` on the host."""
        return np.arange(self.padded_length) < self.input_lengths[:, None]

    @cached_property
    def input_lengths(self) -> IntArray:
        """`lengths` on the host."""
        return np.array([len(recorded.tokens) for recorded in self.inputs])

    def _pad(self, field: str, filler: int) -> Tensor:
        return move_to_device(self.padded_array(field, filler), self.device)


def move_to_device(array: Array, device: str) -> Tensor:
    """The array as a tensor; a copy to a GPU goes through pinned memory, and the host does not wait for it."""
    tensor = torch.from_numpy(array)
    if device.startswith("cuda") and array.size:
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


WordAnnotation = Literal["pos", "xpos", "relations", "lemmas", "morphology"]


def word_annotations(recorded_input: RecordedInput, *annotations: WordAnnotation) -> tuple[str | None, ...]:
    """The value of each word in the first of `annotations` that its segment has; None if it has none."""
    values: list[str | None] = []
    for segment in recorded_input.text.segments:
        available = [getattr(segment, name) for name in annotations if getattr(segment, name) is not None]
        values.extend(available[0] if available else [None] * len(segment))
    return tuple(values)


def word_governors(recorded_input: RecordedInput) -> tuple[int | None, ...]:
    """The word index of each word's governor, `ROOT` for roots; None if the segment has no tree."""
    governors: list[int | None] = []
    for segment in recorded_input.text.segments:
        start = len(governors)
        if segment.governors is None:
            governors.extend([None] * len(segment))
        else:
            governors.extend(g if g == ROOT else g + start for g in segment.governors)
    return tuple(governors)
