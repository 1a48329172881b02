"""How far a work of many passes and analyses is: what each is expected to take, and what it took."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter

from bertology.corpus.corpus import Corpus

PASS = 0.005
"""Seconds a word takes in a pass, for a small encoder on one core; only proportions matter."""

MOST = 6000
"""From so many words on, analyses that draw a sample take no longer."""


@dataclass(frozen=True)
class Effort:
    """Seconds beside those of passes: on any corpus, for each word of it, for each word where only some are drawn."""

    fixed: float = 0.5
    word: float = 0.0
    sampled: float = 0.0

    def on(self, words: int) -> float:
        """What so many words take."""
        return self.fixed + self.word * words + self.sampled * min(words, MOST)


EFFORTS: Mapping[str, Effort] = {
    "attention/relevance": Effort(60.0),
    "heads/probe": Effort(sampled=0.006),
    "probes/token": Effort(sampled=0.015),
    "probes/structural": Effort(sampled=0.008),
    "probes/pipeline": Effort(sampled=0.018),
    "probes/agreement": Effort(word=0.0005),
    "probes/generalisation": Effort(word=0.001),
    "probes/sentence": Effort(10.0),
    "geometry/phrases": Effort(sampled=0.004),
    "geometry/anisotropy": Effort(word=0.0005),
    "meaning/diagnostic": Effort(20.0),
    "meaning/compare": Effort(20.0),
    "meaning/curves": Effort(15.0),
    "causes/heads": Effort(45.0),
    "causes/pruning": Effort(90.0),
    "causes/importance_against_ablation": Effort(60.0),
    "causes/freezing": Effort(300.0),
    "causes/unanswerable": Effort(900.0),
    "causes/gates": Effort(300.0),
}
"""As measured; those that are not here take next to nothing beside a pass."""


def expected(analysis: str, words: int) -> float:
    """Seconds that an analysis takes once its passes are made, to compare with those of others."""
    return EFFORTS.get(analysis, Effort()).on(words)


def words_of(corpus: Corpus | None) -> int:
    """How many words a corpus has."""
    return sum(len(given.words) for item in corpus or () for given in item.inputs)


@dataclass
class Course:
    """Tells `meter` how much is done, of how much, in expected seconds; `seconds` are those that parts really took.

    Parts that need not be done again are left out of both, so that the share that is done foretells the rest.
    """

    meter: Callable[[int, int], None] | None = None
    to_do: float = 0.0
    done: float = 0.0
    seconds: dict[str, float] = field(default_factory=dict[str, float])

    @contextmanager
    def stage(self, expected: float) -> Generator[None]:
        """Some parts that take so long together; what of it turned out to be no work is let go at the end."""
        rest = self.to_do - expected
        yield
        self.to_do = rest
        self._tell(0.0)

    @contextmanager
    def part(self, name: str, expected: float) -> Generator[Callable[[int, int], None]]:
        """One part of a stage; gives a meter of its own, which lets it go where it says that there is nothing to do.

        A part within a part takes its time for itself.
        """
        start, others = perf_counter(), sum(self.seconds.values())
        idle = False

        def move(done: int, total: int) -> None:
            nonlocal idle
            idle = total == 0
            self._tell(expected * done / max(1, total))

        yield move
        inside = sum(self.seconds.values()) - others
        if not idle:
            self.seconds[name] = self.seconds.get(name, 0.0) + perf_counter() - start - inside
            self.done += expected
        self.to_do -= expected
        self._tell(0.0)

    def _tell(self, here: float) -> None:
        if self.meter is not None:
            self.meter(round(1000 * (self.done + here)), round(1000 * (self.done + max(self.to_do, here))))
