"""Fine-tune a model with bertology's training loop and save the weights of the best epoch."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

from bertology.training import loop
from bertology.training.encoded_examples import IGNORE_INDEX, EncodedExample, TrainingBatch
from bertology.training.loop import TrainingDtype, TrainingHistory

BEST_WEIGHTS_FILE = "best.pt"
RUN_FILE = "run.json"

ScoreFunction = Callable[[nn.Module], float]


@dataclass(frozen=True)
class FinetuningConfig(loop.TrainingConfig):
    """Training configuration; `from_scratch` trains all weights from random ones instead of low-rank factors.

    There is no weight decay, because it would shrink the factors only for being factors.
    """

    batch_size: int = 64
    learning_rate: float | None = 1e-3
    weight_decay: float = 0.0
    patience: int | None = None
    dtype: TrainingDtype = "float32"
    rank: int = 16
    from_scratch: bool = False


def train(
    model: nn.Module,
    examples: Sequence[EncodedExample],
    score: ScoreFunction,
    config: FinetuningConfig,
    directory: Path,
) -> TrainingHistory:
    """Train a model in place, restore the best epoch by `score` and save its weights."""
    directory.mkdir(parents=True, exist_ok=True)

    def print_epoch(history: TrainingHistory, step: int) -> None:
        print(f"{directory.name}: {json.dumps(history.epochs[-1])}", file=sys.stderr, flush=True)

    history = loop.train(
        model, partial(batch_loss, model), examples, lambda: score(model), config, after_epoch=print_epoch
    )
    weights = {name: parameter.detach().cpu() for name, parameter in loop.trainable_parameters(model).items()}
    torch.save(weights, directory / BEST_WEIGHTS_FILE)
    run = {"config": asdict(config), **asdict(history)}
    (directory / RUN_FILE).write_text(json.dumps(run, indent=1) + "\n", encoding="utf-8")
    return history


def batch_loss(model: nn.Module, batch: TrainingBatch) -> Tensor:
    """Mean cross-entropy in nats over the labelled positions of a batch."""
    logits = batch_logits(model, batch)
    labels = batch.labels.to(logits.device)
    return nn.functional.cross_entropy(
        logits.reshape(-1, logits.shape[-1]), labels.reshape(-1), ignore_index=IGNORE_INDEX
    )


def batch_logits(model: nn.Module, batch: TrainingBatch) -> Tensor:
    """(example, class) of a classifier, (example, token, class) of a tagger."""
    device = next(model.parameters()).device
    return model(
        input_ids=batch.inputs.input_ids.to(device),
        attention_mask=batch.inputs.attention_mask.to(device),
        token_type_ids=batch.inputs.token_type_ids.to(device),
    ).logits
