"""A plan that is made while its first batches run: a GPU need not wait until the whole corpus is tokenised."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain, repeat

from bertology.corpus.corpus import Corpus
from bertology.encoder.encoder import Encoder
from bertology.encoder.token_batch import RecordedInput
from bertology.recording.plan import (
    RecordingConfig,
    count_alignment,
    length_batches,
    no_input_refusal,
    recording_tokens_per_batch,
    tokenise_corpus,
)

PART_BATCHES = (1, 2, 4, 8)
"""Inputs are sorted by length within parts of so many full batches; the last number is that of all further parts."""


class IncrementalPlan:
    """The inputs tokenised so far, in corpus order, and batches of them, each of inputs of similar length.

    Batches are those of a `RecordingPlan`, except that inputs are sorted by length part by part. The last batch of a
    part waits for the next part unless it is full.
    """

    def __init__(self, encoder: Encoder, corpus: Corpus, config: RecordingConfig) -> None:
        self._encoder = encoder
        self._corpus = corpus
        self._config = config
        self._max_tokens = config.tokens_per_batch or recording_tokens_per_batch(encoder.device)
        self._counts: Counter[str] = Counter()
        self._n_tokens = 0
        self._n_read = 0
        self.inputs: list[RecordedInput] = []

    @property
    def counts(self) -> dict[str, int]:
        """The counts of a `RecordingPlan`, of the inputs so far."""
        return {name: count for name, count in self._counts.items() if count}

    @property
    def n_tokens(self) -> int:
        """Number of tokens of all inputs, estimated until all are known."""
        return max(1, round(self._n_tokens * len(self._corpus) / max(1, self._n_read)))

    def batches(self) -> Iterator[tuple[int, ...]]:
        """Indices of inputs, batch by batch, as soon as a part is tokenised."""
        waiting: list[int] = []
        for part in self._parts():
            waiting += part
            *batches, last = self._length_batches(waiting)
            yield from batches
            waiting = sorted(last)
            if (len(last) + 1) * len(self.inputs[last[-1]].tokens) > self._max_tokens:
                yield last
                waiting = []
        if not self.inputs:
            raise no_input_refusal(self._corpus, self._counts)
        self._n_read = len(self._corpus)
        if waiting:
            yield from self._length_batches(waiting)

    def _parts(self) -> Iterator[list[int]]:
        """Indices of the inputs of each part."""
        sizes = chain(PART_BATCHES, repeat(PART_BATCHES[-1]))
        size, n_tokens, start = next(sizes), 0, 0
        for recorded in tokenise_corpus(self._encoder, self._corpus, self._config, self._counts):
            self.inputs.append(recorded)
            n_tokens += len(recorded.tokens)
            if n_tokens >= size * self._max_tokens:
                yield self._finish_part(start, n_tokens)
                size, n_tokens, start = next(sizes), 0, len(self.inputs)
        if start < len(self.inputs):
            yield self._finish_part(start, n_tokens)

    def _finish_part(self, start: int, n_tokens: int) -> list[int]:
        count_alignment(self.inputs[start:], self._counts)
        self._n_tokens += n_tokens
        self._n_read = self.inputs[-1].example_index + 1
        return list(range(start, len(self.inputs)))

    def _length_batches(self, indices: list[int]) -> Iterator[tuple[int, ...]]:
        lengths = [len(self.inputs[index].tokens) for index in indices]
        for batch in length_batches(lengths, self._max_tokens):
            yield tuple(indices[position] for position in batch)
