"""Tiny classifiers whose answers are known: one that reads a bag of words, one that reads order."""

from __future__ import annotations

import random
from functools import cache

from bertology.corpus.corpus import Corpus, Item
from bertology.corpus.sentence import sentence
from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.encoder.load import load
from bertology.encoder.variant import Variant
from bertology.finetuning.learn import Lesson, learner_for, teach
from bertology.finetuning.loop import Recipe, settled
from bertology.finetuning.tasks.classes import Classes
from finetuning.planted_tasks import planted

FILLER = ("the", "of", "and", "to", "in", "was", "with", "by", "on", "he", "this")
LABELS = ("bad", "good")


def order_matters(count: int, seed: int = 0) -> Corpus:
    """Good where `red` stands before `blue`: what no bag of words shows."""
    draw = random.Random(seed)
    items: list[Item] = []
    for number in range(count):
        words = draw.choices(FILLER, k=3)
        first, second = ("red", "blue") if number % 2 else ("blue", "red")
        text = sentence([words[0], first, words[1], second, words[2]])
        items.append(Item((text,), label=LABELS[number % 2], id=str(number)))
    return Corpus(tuple(items), name="order")


@cache
def bag_of_words() -> HuggingFaceEncoder:
    """Good where a good word is there, wherever it stands: a model without positions."""
    return _taught(planted("sentence", 120), positions=False)


@cache
def reader_of_order() -> HuggingFaceEncoder:
    """Good where red stands before blue."""
    return _taught(order_matters(120), positions=True)


def without_positions(encoder: HuggingFaceEncoder) -> None:
    """Take the positions away from a BERT: every order of its pieces is the same to it."""
    weight = encoder.model.base_model.embeddings.position_embeddings.weight
    weight.requires_grad_(False)
    weight.zero_()


def _taught(corpus: Corpus, *, positions: bool) -> HuggingFaceEncoder:
    base = load("tiny")
    assert isinstance(base, HuggingFaceEncoder)
    recipe = settled(Recipe(epochs=12, size=8, rate=5e-3, patience=None), width=base.width, device=base.device)
    lesson = Lesson(Classes("sentence", LABELS), list(corpus), recipe, Variant())
    learner = learner_for(base, lesson)
    if not positions:
        without_positions(learner.encoder)
    teach(learner, lesson, lesson.see(base, list(corpus)), None)
    learner.encoder.model.eval()
    return learner.encoder
