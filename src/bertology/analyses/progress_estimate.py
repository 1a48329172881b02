"""How much of a run is done, in estimated seconds of its passes and analyses."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter

from bertology.corpus.corpus import Corpus
from bertology.progress import ProgressCallback

SECONDS_PER_WORD = 0.005
"""Seconds per word of a forward pass of a small encoder on one core; only proportions matter."""


def count_words(corpus: Corpus | None) -> int:
    """The number of words a model reads in one pass over the corpus."""
    return sum(len(text.words) for example in corpus or () for text in example.text_inputs)


@dataclass
class ProgressEstimate:
    """Progress over many passes and analyses in estimated seconds, and the seconds each step really took.

    Steps that turn out to be cached are removed from both totals, so that the fraction done predicts the rest.
    """

    callback: ProgressCallback | None = None
    remaining: float = 0.0
    completed: float = 0.0
    elapsed: dict[str, float] = field(default_factory=dict[str, float])

    @contextmanager
    def stage(self, expected_seconds: float) -> Generator[None]:
        """Several steps with a common estimate; what was not needed of it is removed at the end."""
        rest = self.remaining - expected_seconds
        yield
        self.remaining = rest
        self._report(0.0)

    @contextmanager
    def step(self, name: str, expected_seconds: float) -> Generator[ProgressCallback]:
        """Time one step and yield its progress callback.

        A step that reports a total of 0 was cached and is not counted. Time spent in nested steps is subtracted.
        """
        start, nested_before = perf_counter(), sum(self.elapsed.values())
        cached = False

        def update(done: int, total: int) -> None:
            nonlocal cached
            cached = total == 0
            self._report(expected_seconds * done / max(1, total))

        yield update
        nested = sum(self.elapsed.values()) - nested_before
        if not cached:
            self.elapsed[name] = self.elapsed.get(name, 0.0) + perf_counter() - start - nested
            self.completed += expected_seconds
        self.remaining -= expected_seconds
        self._report(0.0)

    def _report(self, step_seconds: float) -> None:
        if self.callback is not None:
            done = self.completed + step_seconds
            self.callback(round(1000 * done), round(1000 * (self.completed + max(self.remaining, step_seconds))))
