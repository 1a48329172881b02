"""Initial model and training configuration of each partner."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import BertConfig, BertForSequenceClassification, BertForTokenClassification
from transformers.utils import logging as transformers_logging

from bertology.training.encoded_examples import EncodedExample
from bertology.training.loop import restore_weights
from pretraining.partners.factors import factorise
from pretraining.partners.loop import BEST, RUN, Recipe, Score
from pretraining.partners.measure import count, predict
from pretraining.partners.pack import Pack

RECIPES = {
    "sentiment": Recipe(epochs=3),
    "ner": Recipe(epochs=8, batch_size=32),
    "pairs": Recipe(epochs=8),
}
FRESH_RATE = 3e-4
"""Whole matrices from random weights take smaller steps than thin factors over trained ones."""


def recipe_of(task: str, seed: int, *, fresh: bool) -> Recipe:
    """The recipe of a task under a seed."""
    recipe = replace(RECIPES[task], seed=seed, fresh=fresh)
    return replace(recipe, learning_rate=FRESH_RATE) if fresh else recipe


def start(pack: Pack, base: Path, recipe: Recipe) -> nn.Module:
    """The model to train, in float32: the base with factors, a fresh head and still embeddings, or fresh throughout.

    The embeddings of a base stay as they are: a few thousand sentences would move only the rows of their own words.
    A fresh model learns all its weights, embeddings too.
    """
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    torch.manual_seed(recipe.seed)
    kind: Any = BertForTokenClassification if pack.tags else BertForSequenceClassification
    names = dict(enumerate(pack.labels))
    ids = {label: place for place, label in names.items()}
    config: Any = BertConfig.from_pretrained(base, id2label=names, label2id=ids)
    if recipe.fresh:
        return kind(config).float()
    model = kind.from_pretrained(base, config=config, dtype=torch.float32)
    model.bert.embeddings.requires_grad_(False)
    factorise(model.bert, recipe.rank)
    return model


def trained(pack: Pack, base: Path, run: Path) -> Any:
    """The model that a run left, with its best weights."""
    recipe = Recipe(**json.loads((run / RUN).read_text("utf-8"))["recipe"])
    model = start(pack, base, recipe)
    restore_weights(model, torch.load(run / BEST, map_location="cpu", weights_only=True))
    return model.eval()


def score_of(pack: Pack, examples: Sequence[EncodedExample]) -> Score:
    """Accuracy or F1 of a model on these examples."""
    return lambda model: count(examples, predict(model, examples), pack.labels, tags=pack.tags).score
