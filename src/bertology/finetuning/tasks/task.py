"""A task: what it needs of a corpus, what a model is shown and taught, and how its answers are judged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from torch import Tensor

from bertology.corpus.corpus import Item
from bertology.encoder.encoder import Output
from bertology.encoder.task_heads import HeadName
from bertology.finetuning.examples import Padded, Seen, Tokenise
from bertology.finetuning.learner import Learner
from bertology.finetuning.metrics import Counts, Scores


class Task(Protocol):
    """A task over the items of a corpus; one answer an item, of a kind that the task alone knows.

    `measure` names the score that decides which epoch was best; `labels` are the classes the model learns, by number.
    """

    @property
    def name(self) -> str:
        """The task's name on the command line."""
        ...

    @property
    def head(self) -> HeadName:
        """The head that the model gets."""
        ...

    @property
    def measure(self) -> str:
        """The score that decides."""
        ...

    @property
    def labels(self) -> tuple[str, ...]:
        """The classes, by number; none where the head has no classes."""
        ...

    def see(self, items: Sequence[Item], tokenise: Tokenise, *, longest: int) -> Seen:
        """The items as examples."""
        ...

    def loss(self, learner: Learner, batch: Padded) -> Tensor:
        """What is made small: the mean cross-entropy of a batch in nats."""
        ...

    def answers(self, learner: Learner, seen: Seen) -> list[Any]:
        """The model's answer to each item."""
        ...

    def counts(self, items: Sequence[Item], answers: Sequence[Any]) -> Counts:
        """What `measure` counts, for each item."""
        ...

    def scores(self, items: Sequence[Item], answers: Sequence[Any]) -> Scores:
        """All measures with their intervals."""
        ...

    def guesses(self, learnt: Sequence[Item], items: Sequence[Item]) -> Mapping[str, list[Any]]:
        """Answers that need no model, by the name of what gives them."""
        ...


class HeadTask(Task, Protocol):
    """A task whose answers are read from the model's own head, so that any output of it can be judged."""

    def losses(self, output: Output, batch: Padded) -> Tensor:
        """(example,) the cross-entropy of each example in nats."""
        ...

    def read(self, shown: Iterable[tuple[Padded, Output]], seen: Seen) -> list[Any]:
        """The answer to each item, from what came of all its examples."""
        ...
