"""How is a partner trained? By the package's own loop, with a recipe for thin factors; what was best is kept."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

from bertology.finetuning import loop
from bertology.finetuning.examples import UNLABELLED, Example, Padded
from bertology.finetuning.loop import Precision, Progress

BEST = "best.pt"
RUN = "run.json"

Score = Callable[[nn.Module], float]


@dataclass(frozen=True)
class Recipe(loop.Recipe):
    """The recipe of a partner; `fresh` begins from random weights and learns them whole.

    No weight decay: the factors would shrink for no reason but their form.
    """

    size: int = 64
    rate: float = 1e-3
    decay: float = 0.0
    patience: int | None = None
    precision: Precision = "float32"
    rank: int = 16
    fresh: bool = False


def train(model: nn.Module, examples: Sequence[Example], score: Score, recipe: Recipe, folder: Path) -> Progress:
    """Train in place and leave the model, and the folder, with what was best by `score`."""
    folder.mkdir(parents=True, exist_ok=True)

    def tell(progress: Progress, step: int) -> None:
        print(f"{folder.name}: {json.dumps(progress.log[-1])}", file=sys.stderr, flush=True)

    progress = loop.train(model, partial(loss_of, model), examples, lambda: score(model), recipe, after_epoch=tell)
    torch.save({name: weights.detach().cpu() for name, weights in loop.moving(model).items()}, folder / BEST)
    told = {"recipe": asdict(recipe), **asdict(progress)}
    (folder / RUN).write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    return progress


def loss_of(model: nn.Module, batch: Padded) -> Tensor:
    """Mean cross-entropy in nats over the labelled places of a batch."""
    logits = logits_of(model, batch)
    labels = batch.labels.to(logits.device)
    return nn.functional.cross_entropy(
        logits.reshape(-1, logits.shape[-1]), labels.reshape(-1), ignore_index=UNLABELLED
    )


def logits_of(model: nn.Module, batch: Padded) -> Tensor:
    """(example, class) of a classifier, (example, piece, class) of a tagger."""
    shown, device = batch.shown, device_of(model)
    ids, mask, types = (tensor.to(device) for tensor in (shown.ids, shown.mask, shown.types))
    return model(input_ids=ids, attention_mask=mask, token_type_ids=types).logits


def device_of(model: nn.Module) -> torch.device:
    """Where the weights are."""
    return next(model.parameters()).device
