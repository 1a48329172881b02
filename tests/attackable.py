"""Tiny classifiers with known behaviour: one that reads a bag of words, and one that reads word order."""

from __future__ import annotations

import random
from functools import cache

from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example
from bertology.corpus.sentence import sentence_from_words
from bertology.encoder.encoder import TaskEncoder
from bertology.encoder.layer_variants import LayerVariant
from bertology.encoder.load import load
from bertology.training.job import TrainingJob, build_model, train_model
from bertology.training.loop import TrainingConfig, resolve_config
from bertology.training.tasks.text_classification import TextClassification
from planted_tasks import planted_corpus

FILLER = ("the", "of", "and", "to", "in", "was", "with", "by", "on", "he", "this")
LABELS = ("bad", "good")


def order_matters(count: int, seed: int = 0) -> Corpus:
    """Texts that are good if `red` stands before `blue`, which no bag of words shows."""
    rng = random.Random(seed)
    examples: list[Example] = []
    for number in range(count):
        words = rng.choices(FILLER, k=3)
        first, second = ("red", "blue") if number % 2 else ("blue", "red")
        text = sentence_from_words([words[0], first, words[1], second, words[2]])
        examples.append(Example((text,), label=LABELS[number % 2], id=str(number)))
    return Corpus(tuple(examples), name="order")


@cache
def bag_of_words_classifier() -> TaskEncoder:
    """A classifier without positions that predicts good if a good word occurs."""
    return _train(planted_corpus("sentence", 120), positions=False)


@cache
def word_order_classifier() -> TaskEncoder:
    """A classifier that predicts good if `red` stands before `blue`."""
    return _train(order_matters(120), positions=True)


def without_positions(encoder: TaskEncoder) -> None:
    """Set the position embeddings of a BERT to zero and freeze them."""
    weight = encoder.model.base_model.embeddings.position_embeddings.weight
    weight.requires_grad_(False)
    weight.zero_()


def _train(corpus: Corpus, *, positions: bool) -> TaskEncoder:
    base = load("tiny")
    assert isinstance(base, TaskEncoder)
    config = resolve_config(
        TrainingConfig(epochs=12, batch_size=8, learning_rate=5e-3, patience=None), width=base.width, device=base.device
    )
    job = TrainingJob(TextClassification("sentence", LABELS), list(corpus), config, LayerVariant())
    model = build_model(base, job)
    if not positions:
        without_positions(model.encoder)
    train_model(model, job, job.encode(base, list(corpus)), None)
    model.encoder.model.eval()
    return model.encoder
