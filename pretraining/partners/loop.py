"""Train a partner with the package's training loop and keep the best epoch."""

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

BEST = "best.pt"
RUN = "run.json"

Score = Callable[[nn.Module], float]


@dataclass(frozen=True)
class Recipe(loop.TrainingConfig):
    """The recipe of a partner; `fresh` begins from random weights and learns them whole.

    No weight decay: the factors would shrink for no reason but their form.
    """

    batch_size: int = 64
    learning_rate: float | None = 1e-3
    weight_decay: float = 0.0
    patience: int | None = None
    dtype: TrainingDtype = "float32"
    rank: int = 16
    fresh: bool = False


def train(
    model: nn.Module, examples: Sequence[EncodedExample], score: Score, recipe: Recipe, folder: Path
) -> TrainingHistory:
    """Train in place and leave the model, and the folder, with what was best by `score`."""
    folder.mkdir(parents=True, exist_ok=True)

    def tell(progress: TrainingHistory, step: int) -> None:
        print(f"{folder.name}: {json.dumps(progress.epochs[-1])}", file=sys.stderr, flush=True)

    progress = loop.train(model, partial(loss_of, model), examples, lambda: score(model), recipe, after_epoch=tell)
    torch.save(
        {name: weights.detach().cpu() for name, weights in loop.trainable_parameters(model).items()}, folder / BEST
    )
    told = {"recipe": asdict(recipe), **asdict(progress)}
    (folder / RUN).write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    return progress


def loss_of(model: nn.Module, batch: TrainingBatch) -> Tensor:
    """Mean cross-entropy in nats over the labelled places of a batch."""
    logits = logits_of(model, batch)
    labels = batch.labels.to(logits.device)
    return nn.functional.cross_entropy(
        logits.reshape(-1, logits.shape[-1]), labels.reshape(-1), ignore_index=IGNORE_INDEX
    )


def logits_of(model: nn.Module, batch: TrainingBatch) -> Tensor:
    """(example, class) of a classifier, (example, piece, class) of a tagger."""
    shown, device = batch.inputs, device_of(model)
    ids, mask, types = (tensor.to(device) for tensor in (shown.input_ids, shown.attention_mask, shown.token_type_ids))
    return model(input_ids=ids, attention_mask=mask, token_type_ids=types).logits


def device_of(model: nn.Module) -> torch.device:
    """Where the weights are."""
    return next(model.parameters()).device
