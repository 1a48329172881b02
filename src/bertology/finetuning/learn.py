"""One model taught one task: the head put on, the examples made, the loop run, the answers judged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from bertology.corpus.corpus import Item
from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.encoder.task_heads import save, with_head
from bertology.encoder.variant import Variant
from bertology.errors import Refusal
from bertology.finetuning.examples import Seen
from bertology.finetuning.learner import Learner
from bertology.finetuning.loop import Keeper, Progress, Recipe, train
from bertology.finetuning.metrics import Counts, Scores
from bertology.finetuning.parser import Parser
from bertology.finetuning.tasks.task import Task

PARSER_TIMES = 10.0
"""How much faster a parser, which begins from nothing, learns than the encoder below it."""

Meter = Callable[[int, int], None]


@dataclass(frozen=True)
class Lesson:
    """What is to be learnt: a task, the items to learn it from, and by which choices."""

    task: Task
    items: Sequence[Item]
    recipe: Recipe
    variant: Variant
    max_pieces: int | None = None

    def longest(self, encoder: HuggingFaceEncoder) -> int:
        """The longest sequence that the model is shown."""
        return min(encoder.max_pieces, self.max_pieces or encoder.max_pieces)

    def see(self, encoder: HuggingFaceEncoder, items: Sequence[Item]) -> Seen:
        """Items as examples; refused where none is short enough."""
        seen = self.task.see(items, encoder.tokenise, longest=self.longest(encoder))
        if not seen.examples:
            raise Refusal(
                f"None of {len(items)} items fits into {self.longest(encoder)} pieces",
                "items that the model can be shown",
                "Choose a model that takes longer inputs, or shorten the texts",
            )
        return seen


def learner_for(encoder: HuggingFaceEncoder, lesson: Lesson) -> Learner:
    """The model before it learns: the encoder's weights, changed as the variant says, under a fresh head."""
    task, seed = lesson.task, lesson.recipe.seed
    headed = with_head(encoder, task.head, task.labels, variant=lesson.variant, seed=seed)
    if task.head != "none":
        return Learner(headed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        parser = Parser(headed.width, len(task.labels))
    return Learner(headed, parser.to(headed.device))


def teach(
    learner: Learner,
    lesson: Lesson,
    seen: Seen,
    deciding: Seen | None,
    *,
    keeper: Keeper | None = None,
    progress: Meter | None = None,
    after_epoch: Callable[[Progress, int], None] | None = None,
) -> Progress:
    """Train the learner in place; `deciding` items tell which epoch is kept, without them it is the last."""
    task = lesson.task

    def score() -> float:
        assert deciding is not None, "asked only where there are items to decide by"
        return task.counts(deciding.items, task.answers(learner, deciding)).value

    return train(
        learner.module,
        lambda batch: task.loss(learner, batch),
        seen.examples,
        score if deciding is not None else None,
        lesson.recipe,
        faster={"parser.": PARSER_TIMES},
        keeper=keeper,
        progress=progress,
        after_epoch=after_epoch,
    )


@dataclass(frozen=True)
class Judged:
    """The scores of a model on some items, beside those of answers that need no model."""

    scores: Scores
    baselines: dict[str, Scores]
    counts: Counts


def judge(task: Task, learner: Learner, seen: Seen, learnt: Sequence[Item]) -> Judged:
    """What the model, and guessing, get right."""
    answers: list[Any] = task.answers(learner, seen)
    guesses = task.guesses(learnt, seen.items)
    return Judged(
        task.scores(seen.items, answers),
        {name: task.scores(seen.items, guess) for name, guess in guesses.items()},
        task.counts(seen.items, answers),
    )


def save_learner(learner: Learner, folder: Path) -> None:
    """Write the model in Hugging Face form, and a parser beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    save(learner.encoder, folder)
    if learner.parser is not None:
        learner.parser.save(folder)
