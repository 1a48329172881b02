"""Examples of a list of texts, whose words are found when they are first read: a recording begins before all are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np

from bertology.arrays import FloatArray, LazySequence
from bertology.corpus.example import Example
from bertology.corpus.sentence import Sentence, sentence_from_text, sentences_from_texts

CHUNK_SIZE = 256


class TextExamples(LazySequence[Example]):
    """One sentence for each text, with the number of the text as its id; slices are split into words together."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self._examples: list[Example | None] = [None] * len(texts)

    def __len__(self) -> int:
        return len(self._texts)

    def load(self, index: int) -> Example:
        """The example of one text."""
        return self._examples[index] or self._add(index, sentence_from_text(self._texts[index]))

    @overload
    def __getitem__(self, index: int) -> Example: ...
    @overload
    def __getitem__(self, index: slice) -> list[Example]: ...
    def __getitem__(self, index: int | slice) -> Example | list[Example]:
        if isinstance(index, slice):
            missing = [i for i in range(*index.indices(len(self))) if self._examples[i] is None]
            for i, sentence in zip(missing, sentences_from_texts([self._texts[i] for i in missing]), strict=True):
                self._add(i, sentence)
        return super().__getitem__(index)

    def __iter__(self) -> Iterator[Example]:
        for start in range(0, len(self), CHUNK_SIZE):
            yield from self[start : start + CHUNK_SIZE]

    def estimate_words(self, step: int) -> FloatArray:
        """About the number of words of every `step`-th text, from its length: few texts are split into words for it."""
        split = self[:: max(1, len(self) // CHUNK_SIZE)]
        texts = [text_input.segments[0] for example in split for text_input in example.text_inputs]
        words_per_character = sum(map(len, texts)) / sum(len(sentence.text) for sentence in texts)
        return words_per_character * np.array([len(text) for text in self._texts[::step]], np.float64)

    def _add(self, index: int, sentence: Sentence) -> Example:
        self._examples[index] = example = Example((sentence,), id=str(index + 1))
        return example
