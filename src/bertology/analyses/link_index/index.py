"""The words of a recorded corpus with their annotations, and the strongest links of each head between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from bertology.analyses.link_index.site import N_LINKS, strongest_links_site
from bertology.arrays import BoolArray, FloatArray, IntArray
from bertology.encoder.encoder import Head
from bertology.encoder.token_batch import RecordedInput, word_annotations, word_governors
from bertology.recording.recording import Recording

NO_GOVERNOR = -1
CACHED_HEADS = 16


@dataclass(frozen=True, eq=False)
class AnnotatedWords:
    """The words of one input: forms, tags, relations and governors, and whether the model was shown the word."""

    words: tuple[str, ...]
    pos: tuple[str | None, ...]
    relations: tuple[str | None, ...]
    governors: IntArray
    has_tokens: BoolArray

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def forms(self) -> tuple[str, ...]:
        """The words in lower case."""
        return tuple(word.lower() for word in self.words)

    def other_words(self) -> BoolArray:
        """(word, word) pairs of different words that both have tokens."""
        pairs = self.has_tokens[:, None] & self.has_tokens[None, :]
        np.fill_diagonal(pairs, False)
        return pairs


@dataclass(frozen=True, eq=False)
class HeadLinks:
    """The links of one head in one input: (link, word) targets, -1 where there is none, and weights."""

    targets: IntArray
    weights: FloatArray


class LinkIndex:
    """The strongest links of all heads in a recording; those of a head are read when they are first needed."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording.with_sites((strongest_links_site(),))
        self._links = lru_cache(CACHED_HEADS)(self._read_head)

    @cached_property
    def inputs(self) -> tuple[AnnotatedWords, ...]:
        """The words of every input."""
        return tuple(map(_annotated_words, self.recording.inputs))

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of layers and heads."""
        return self.recording.encoder.layers, self.recording.encoder.heads

    @cached_property
    def pos_tags(self) -> tuple[str, ...]:
        """All parts of speech in the corpus."""
        return tuple(sorted({tag for words in self.inputs for tag in words.pos if tag}))

    @cached_property
    def relation_names(self) -> tuple[str, ...]:
        """All dependency relations in the corpus."""
        return tuple(sorted({name for words in self.inputs for name in words.relations if name}))

    def links(self, head: Head) -> Sequence[HeadLinks]:
        """The links of a head in each input."""
        return self._links(head[0], head[1])

    def _read_head(self, layer: int, head: int) -> Sequence[HeadLinks]:
        arrays = self.recording[strongest_links_site()]
        return [_split(np.asarray(arrays[index])[layer, head]) for index in range(len(self.recording.inputs))]

    @cached_property
    def strongest_targets(self) -> NDArray[np.int16]:
        """(word, layer, head) the strongest target of each word of all inputs, -1 if there is none."""
        arrays = self.recording[strongest_links_site()]
        inputs = range(len(self.recording.inputs))
        return np.concatenate([np.moveaxis(np.asarray(arrays[i])[:, :, 0], -1, 0).astype(np.int16) for i in inputs])


def _split(links: NDArray[np.floating]) -> HeadLinks:
    return HeadLinks(links[:N_LINKS].astype(np.int64), links[N_LINKS:].astype(np.float64))


def _annotated_words(recorded: RecordedInput) -> AnnotatedWords:
    governors = [NO_GOVERNOR if governor is None else governor for governor in word_governors(recorded)]
    has_tokens = np.zeros(len(recorded.text.words), np.bool_)
    has_tokens[recorded.tokens.word_ids[recorded.tokens.word_ids >= 0]] = True
    return AnnotatedWords(
        recorded.text.words,
        word_annotations(recorded, "pos", "xpos"),
        word_annotations(recorded, "relations"),
        np.array(governors, np.int64),
        has_tokens,
    )
