"""What small models learn on frozen features, and what they are judged by: the same items for every feature.

Items are divided once into those learnt from and those judged. Each seed holds out another part of those learnt from,
to choose by, and has an order of the rest; a smaller training set is the beginning of a larger one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertology.corpus.corpus import Corpus, Item
from bertology.corpus.sentence import Sentence
from bertology.errors import Refusal

if TYPE_CHECKING:
    from bertology.finetuning.tasks.task import Task

Kind = Literal["auto", "sentence", "pair", "token"]

JUDGED = 0.25
HELD = 0.15
FEWEST = 2
"""Items in the smallest training set, at least."""


class Choice(NamedTuple):
    """What the options say about the material."""

    task: Kind
    layer: str
    items: int
    train: str
    train_limit: int
    seeds: int
    seed: int


class Draw(NamedTuple):
    """Of one seed: places among the items learnt from, in the order in which they are added, and those held out."""

    seed: int
    trained: tuple[int, ...]
    held: tuple[int, ...]


@dataclass(frozen=True)
class Lesson:
    """A task, the items to learn from and to be judged by, and a draw for each seed."""

    task: Task
    learnt: tuple[Item, ...]
    judged: tuple[Item, ...]
    draws: tuple[Draw, ...]

    @property
    def most(self) -> int:
        """How many items every seed can learn from."""
        return min(len(draw.trained) for draw in self.draws)

    @cached_property
    def sentences(self) -> tuple[Sentence, ...]:
        """All texts, those of an item one after the other: what features are recorded of."""
        return tuple(part for item in (*self.learnt, *self.judged) for part in item.parts)

    @cached_property
    def golds(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The numbers of the labels, to learn from and to be judged by: one an item, or one a word, end to end.

        A label that is not among those learnt from has the number -1.
        """
        numbers = {label: number for number, label in enumerate(self.task.labels)}
        first, second = (
            np.array([numbers.get(label, -1) for item in some for label in labels_of(self.task, item)], np.int64)
            for some in (self.learnt, self.judged)
        )
        return first, second

    def sizes(self, count: int, least: float) -> list[int]:
        """Training sizes in items: from a `least` share to all, in equal steps of the logarithm, each once."""
        shares = np.geomspace(least, 1, count) if count > 1 else np.ones(1)
        return sorted({max(min(FEWEST, self.most), round(self.most * share)) for share in shares.tolist()})

    @property
    def said(self) -> str:
        """How much there is, in words."""
        held = len(self.draws[0].held)
        return (
            f"{len(self.task.labels)} labels; up to {self.most} items to learn from, {held} to choose by, "
            f"{len(self.judged)} to be judged by; {len(self.draws)} seeds"
        )


def labels_of(task: Task, item: Item) -> Sequence[str]:
    """The label of an item, or those of its words."""
    if task.name == "token":
        from bertology.finetuning.tasks.tags import Tags

        assert isinstance(task, Tags)
        return getattr(item.parts[0], task.layer)
    return (str(item.label),)


def lesson_of(corpus: Corpus, choice: Choice, *, purpose: str) -> Lesson:
    """The lesson that the options ask for; refused where the corpus is not annotated for it."""
    from bertology.finetuning.choose import fitting, guessed_task, task_for
    from bertology.finetuning.division import divided, ordered

    name = guessed_task(corpus) if choice.task == "auto" else choice.task
    if name not in {"sentence", "pair", "token"}:
        raise Refusal(f"{purpose} does not know the task {name}", "sentence, pair or token", "Give one with --task")
    layer = choice.layer or _spans_first(corpus, name)
    usable, layer = fitting(corpus, name, layer)
    if choice.train:
        learnt, judged = _read(choice, name, layer), list(ordered(usable.items)[: choice.items or None])
    else:
        drawn = replace(usable, items=tuple(ordered(usable.items)[: choice.items or None]))
        parts = divided(drawn, JUDGED, seed=choice.seed)
        learnt, judged = parts.learnt, parts.held_out
    task = task_for(name, learnt, layer)
    if len(task.labels) < 2:
        raise Refusal(
            f"{purpose}: every label to learn is {', '.join(task.labels)!r}",
            "at least two labels",
            "Use another corpus",
        )
    draws = tuple(_draw(learnt, seed) for seed in range(choice.seed, choice.seed + choice.seeds))
    return Lesson(task, tuple(learnt), tuple(judged), draws)


def _spans_first(corpus: Corpus, name: str) -> str | None:
    """Names are what Arora et al. tag: they come before parts of speech where a corpus has both."""
    return "entities" if name == "token" and corpus.layers["entities"] and not corpus.layers["tags"] else None


def _read(choice: Choice, name: str, layer: str | None) -> list[Item]:
    from bertology.corpus.builtin import corpus_named
    from bertology.finetuning.choose import fitting
    from bertology.finetuning.division import ordered

    other, _ = fitting(corpus_named(choice.train, limit=choice.train_limit or None), name, layer)
    return ordered(other.items)


def _draw(items: Sequence[Item], seed: int) -> Draw:
    """Items with the same text stay together; at least one is held out and one is left."""
    texts: dict[str, list[int]] = {}
    for place, item in enumerate(items):
        texts.setdefault("\n".join(part.text for part in item.parts), []).append(place)
    order = sorted(texts, key=lambda text: hashlib.sha256(f"{seed}\n{text}".encode("utf-8", "surrogatepass")).digest())
    held: list[int] = []
    trained: list[int] = []
    for number, text in enumerate(order):
        few = len(held) < HELD * len(items) and number < len(order) - 1
        (held if few else trained).extend(texts[text])
    if not held:
        raise Refusal(
            f"There are {len(items)} items to learn from, all of one text", "at least two texts", "Use a larger corpus"
        )
    return Draw(seed, tuple(trained), tuple(held))
