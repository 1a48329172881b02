"""What is one partner? Its data as examples of a base's pieces, its model class and its recipe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import BertConfig, BertForSequenceClassification, BertForTokenClassification
from transformers.utils import logging as transformers_logging

from bertology.corpus.corpus import Item
from bertology.encoder.huggingface import load_directory
from pretraining.partners.data import TASKS, Material
from pretraining.partners.examples import Example, classified, tagged
from pretraining.partners.loop import Recipe, Score
from pretraining.partners.measure import count, predict

RECIPES = {
    "sentiment": Recipe(epochs=4, rate=2e-4, longest=64),
    "ner": Recipe(epochs=1, rate=3e-4, longest=56),
    "pairs": Recipe(epochs=2, rate=2e-4, longest=96),
}
LONGEST = 128


@dataclass(frozen=True)
class Task:
    """The examples of one partner; `cut` says how many items of each part were shortened or left out."""

    name: str
    material: Material
    train: list[Example]
    stop: list[Example]
    dev: dict[str, list[Example]]
    cut: dict[str, int]

    @property
    def tags(self) -> bool:
        """Whether every word has a label, not the whole."""
        return self.name == "ner"

    def score(self, examples: Sequence[Example]) -> Score:
        """Accuracy or F1 of a model on these examples."""
        labels = self.material.labels
        return lambda model: count(examples, predict(model, examples), labels).value


def prepare(name: str, base: Path, data: Path) -> Task:
    """Read the data of a task as pieces of the base; only what is learnt from is cut shorter than the base can read."""
    material = TASKS[name](data)
    tokenise = load_directory(base).tokenise
    recipe = RECIPES[name]

    def examples(items: list[Item], *, longest: int = LONGEST, stretches: int = 1) -> tuple[list[Example], int]:
        if name == "ner":
            return tagged(items, tokenise, material.labels, longest=longest)
        return classified(items, tokenise, material.labels, longest=longest, stretches=stretches)

    train = examples(material.train, longest=recipe.longest, stretches=recipe.stretches)
    parts = {"train": train, "stop": examples(material.stop)}
    dev = {source: examples(items) for source, items in material.dev.items()}
    return Task(
        name,
        material,
        parts["train"][0],
        parts["stop"][0],
        {source: found for source, (found, _) in dev.items()},
        {part: cut for part, (_, cut) in (parts | dev).items()},
    )


def start(task: Task, base: Path, *, seed: int, fresh: bool = False) -> nn.Module:
    """The model to train, in float32: the base with a fresh head and still embeddings, or fresh throughout.

    The embeddings of a base stay as they are: a few thousand sentences would move only the rows of their own words.
    A fresh model has to learn its embeddings too.
    """
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    torch.manual_seed(seed)
    kind: Any = BertForTokenClassification if task.tags else BertForSequenceClassification
    names = dict(enumerate(task.material.labels))
    ids = {label: place for place, label in names.items()}
    config: Any = BertConfig.from_pretrained(base, id2label=names, label2id=ids)
    if fresh:
        return kind(config).float()
    model = kind.from_pretrained(base, config=config, dtype=torch.float32)
    model.bert.embeddings.requires_grad_(False)
    return model


def recipe_of(name: str, seed: int) -> Recipe:
    """The recipe of a task under a seed."""
    return replace(RECIPES[name], seed=seed)
