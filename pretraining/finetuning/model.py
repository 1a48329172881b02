"""Initial model and training configuration of each task."""

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
from pretraining.finetuning.encoded_task import EncodedTask
from pretraining.finetuning.low_rank import add_low_rank_factors
from pretraining.finetuning.prediction import count_correct, predict
from pretraining.finetuning.training import BEST_WEIGHTS_FILE, RUN_FILE, FinetuningConfig, ScoreFunction

CONFIGS = {
    "sentiment": FinetuningConfig(epochs=3),
    "ner": FinetuningConfig(epochs=8, batch_size=32),
    "pairs": FinetuningConfig(epochs=8),
}
FROM_SCRATCH_LEARNING_RATE = 3e-4
"""Full matrices trained from scratch need a lower learning rate than low-rank factors over trained ones."""


def task_config(task: str, seed: int, *, from_scratch: bool) -> FinetuningConfig:
    """The training configuration of a task."""
    config = replace(CONFIGS[task], seed=seed, from_scratch=from_scratch)
    return replace(config, learning_rate=FROM_SCRATCH_LEARNING_RATE) if from_scratch else config


def initial_model(dataset: EncodedTask, base: Path, config: FinetuningConfig) -> nn.Module:
    """The model to train, in float32: the base with low-rank factors and a random task head, or random weights.

    The embeddings of the base are frozen: a few thousand sentences would only change the rows of their own words.
    From scratch, all weights are trained, including the embeddings.
    """
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    torch.manual_seed(config.seed)
    model_class: Any = BertForTokenClassification if dataset.tags else BertForSequenceClassification
    id2label = dict(enumerate(dataset.labels))
    label2id = {label: index for index, label in id2label.items()}
    bert_config: Any = BertConfig.from_pretrained(base, id2label=id2label, label2id=label2id)
    if config.from_scratch:
        return model_class(bert_config).float()
    model = model_class.from_pretrained(base, config=bert_config, dtype=torch.float32)
    model.bert.embeddings.requires_grad_(False)
    add_low_rank_factors(model.bert, config.rank)
    return model


def trained_model(dataset: EncodedTask, base: Path, run: Path) -> Any:
    """The model of a run, with the weights of its best epoch."""
    config = FinetuningConfig(**json.loads((run / RUN_FILE).read_text("utf-8"))["config"])
    model = initial_model(dataset, base, config)
    restore_weights(model, torch.load(run / BEST_WEIGHTS_FILE, map_location="cpu", weights_only=True))
    return model.eval()


def task_score(dataset: EncodedTask, examples: Sequence[EncodedExample]) -> ScoreFunction:
    """A function that scores a model on these examples: accuracy, or F1 of entities."""
    return lambda model: count_correct(examples, predict(model, examples), dataset.labels, tags=dataset.tags).score
