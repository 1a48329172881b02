"""Lessons from questions that cannot be answered: passages, questions or both shuffled or removed (si2019)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import numpy as np

from bertology.corpus.corpus import Corpus, Item
from bertology.corpus.sentence import Sentence
from bertology.encoder.encoder import Encoder
from bertology.encoder.variant import Variant
from bertology.errors import Refusal, unknown_name
from bertology.finetuning.choose import guessed_task
from bertology.finetuning.loop import Recipe
from bertology.finetuning.metrics import Counts
from bertology.measures.causes.attack_list import drawing
from bertology.measures.causes.perturbations import Shuffling, words_shuffled
from bertology.measures.causes.rewording import without_words
from bertology.measures.variant_sweep import Sweep
from bertology.measures.work import Work

CLEAN = "clean"
BLINDINGS: dict[str, tuple[str, str]] = {
    "P-Shuffle": ("P", "shuffled"),
    "Q-Shuffle": ("Q", "shuffled"),
    "PQ-Shuffle": ("PQ", "shuffled"),
    "P-Remove": ("P", "removed"),
    "Q-Remove": ("Q", "removed"),
    "PQ-Remove": ("PQ", "removed"),
}
"""In the order of the paper's table 3: what is changed, and how."""
WORDS = {"P": "passages", "Q": "questions", "PQ": "passages and questions"}


def blinded(item: Item, name: str, rule: Shuffling, seed: int) -> Item:
    """The item with its passage, its question or both shuffled or removed."""
    which, how = BLINDINGS[name]
    places = {"P": 0, "Q": 1} if item.kind == "choice" else {"P": 1, "Q": 0}
    draw = drawing(item, name, seed)
    parts = list(item.parts)
    for letter in which:
        parts[places[letter]] = _changed(parts[places[letter]], how, draw, rule)
    return replace(item, parts=tuple(parts))


class BlindLessons:
    """One task learnt from clean and from blinded items, and judged on clean ones."""

    def __init__(
        self,
        encoder: Encoder,
        corpus: Corpus,
        work: Work,
        *,
        items: int,
        recipe: Recipe,
        seeds: int,
        rule: Shuffling,
        names: Sequence[str] = (),
    ) -> None:
        """Divides the items; `names` are the lessons besides clean ones, all of them where none is named."""
        for name in names:
            if name not in BLINDINGS:
                raise unknown_name("lesson", name, list(BLINDINGS))
        self.task = guessed_task(corpus)
        if self.task not in ("choice", "qa"):
            raise Refusal(
                f"{corpus.name} has no questions on passages",
                "multiple choice, or questions with answers in a passage",
                "Give such a corpus, for example --corpus generated:reading",
            )
        self._sweep = Sweep(encoder, corpus, work, self.task, "", items, recipe, seeds, "causes/unanswerable")
        self._rule = rule
        self._names = names or tuple(BLINDINGS)

    @property
    def measure(self) -> str:
        """What the score is."""
        return self._sweep.lesson.task.measure

    def run(self) -> dict[str, list[Counts]]:
        """What is right, for each seed, after each lesson; clean first."""
        lesson = self._sweep.lesson
        blind = {name: replace(lesson, items=self._learnt(name)) for name in self._possible()}
        return self._sweep.counts({CLEAN: lesson, **blind})

    def fresh(self) -> list[Counts]:
        """The same of random weights, from clean items."""
        return self._sweep.counts({"": replace(self._sweep.lesson, variant=Variant(random=True))})[""]

    def guesses(self) -> dict[str, Counts]:
        """What answers that need no model get right."""
        items, task = self._sweep.judged.items, self._sweep.lesson.task
        found = {
            name: task.counts(items, answers) for name, answers in task.guesses(self._sweep.seen.items, items).items()
        }
        if self.task == "choice":
            found["longest option"] = longest_option(items)
            found["chance"] = _of_one([1 / (len(item.parts) - 2) for item in items])
        return found

    def told(self, name: str) -> str:
        """What a lesson was made of."""
        learnt, judged = len(self._sweep.seen.items), len(self._sweep.judged.items)
        if name == CLEAN:
            cut = self._sweep.judged.cut
            return f"learnt from {learnt} questions, judged on {judged} others; of {cut} of these the passage was cut"
        which, how = BLINDINGS[name]
        return f"{WORDS[which]} {how} in training, and as they are in the test"

    def _possible(self) -> list[str]:
        marked = self.task == "qa"
        removed = {name for name, (which, how) in BLINDINGS.items() if "P" in which and how == "removed"}
        return [name for name in BLINDINGS if name in self._names and not (marked and name in removed)]

    def _learnt(self, name: str) -> list[Item]:
        seed = self._sweep.lesson.recipe.seed
        return [blinded(item, name, self._rule, seed) for item in self._sweep.parts.learnt]


def longest_option(items: list[Item]) -> Counts:
    """What the option of most words gets right; of several as long each counts alike."""
    shares: list[float] = []
    for item in items:
        lengths = [len(option) for option in item.parts[2:]]
        longest = [place for place, length in enumerate(lengths) if length == max(lengths)]
        shares.append((int(item.label or 0) in longest) / len(longest))
    return _of_one(shares)


def _of_one(shares: list[float]) -> Counts:
    return Counts(np.array(shares, np.float64), np.ones(len(shares)))


def _changed(sentence: Sentence, how: str, draw: Random, rule: Shuffling) -> Sentence:
    return words_shuffled(sentence, draw, rule) if how == "shuffled" else without_words(sentence)
