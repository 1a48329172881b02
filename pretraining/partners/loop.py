"""How is a partner trained? Cross-entropy with AdamW, warm-up and linear decay, stopped early, resumable by epoch."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from pretraining.partners.examples import UNLABELLED, Example, Padded, batches

LATEST = "latest.pt"
BEST = "best.pt"

Score = Callable[[nn.Module], float]


@dataclass(frozen=True)
class Recipe:
    """Every choice that changes the weights.

    `longest` is in pieces; a longer text gives up to `stretches` examples. With `half`, products are computed in
    bfloat16; weights and sums are float32 in any case. No weight decay: it would put a multiple of the old weights
    into the difference that is stored.
    """

    seed: int = 0
    epochs: int = 4
    size: int = 16
    rate: float = 2e-4
    warm_up: float = 0.1
    clip: float = 1.0
    patience: int = 1
    longest: int = 128
    stretches: int = 1
    half: bool = True


@dataclass
class Progress:
    """Where a run is: epochs done, the best score so far and its epoch, and a line for each epoch."""

    epoch: int = 0
    best: float = float("-inf")
    best_epoch: int = 0
    log: list[dict[str, float]] | None = None

    def over(self, recipe: Recipe) -> bool:
        """Whether all epochs are done, or the last `patience` + 1 brought nothing."""
        return self.epoch >= recipe.epochs or self.epoch - self.best_epoch > recipe.patience


def train(model: nn.Module, examples: Sequence[Example], score: Score, recipe: Recipe, folder: Path) -> Progress:
    """Train in place and leave the model with its best weights by `score`; a run stopped in the folder goes on.

    Parameters that do not require a gradient stay as they are.
    """
    folder.mkdir(parents=True, exist_ok=True)
    moving = [weights for weights in model.parameters() if weights.requires_grad]
    optimiser = torch.optim.AdamW(moving, lr=recipe.rate, weight_decay=0.0)
    steps = recipe.epochs * -(-len(examples) // recipe.size)
    progress = _resume(folder, recipe, model, optimiser)
    while not progress.over(recipe):
        begin = time.process_time()
        loss = _epoch(model, optimiser, examples, recipe, progress.epoch, steps)
        progress.epoch += 1
        value = score(model.eval())
        line = {"epoch": progress.epoch, "loss": loss, "score": value, "seconds": time.process_time() - begin}
        progress.log = [*(progress.log or []), line]
        print(f"{folder.name}: {json.dumps(line)}", file=sys.stderr, flush=True)
        if value > progress.best:
            progress.best, progress.best_epoch = value, progress.epoch
            _write(model.state_dict(), folder / BEST)
        _save(folder, recipe, model, optimiser, progress)
    model.load_state_dict(torch.load(folder / BEST, map_location=device_of(model), weights_only=True))
    model.eval()
    return progress


def loss_of(model: nn.Module, batch: Padded) -> Tensor:
    """Mean cross-entropy in nats over the labelled places of a batch."""
    logits = logits_of(model, batch)
    labels = batch.labels.to(logits.device)
    return nn.functional.cross_entropy(
        logits.reshape(-1, logits.shape[-1]).float(), labels.reshape(-1), ignore_index=UNLABELLED
    )


def logits_of(model: nn.Module, batch: Padded) -> Tensor:
    """(example, class) of a classifier, (example, piece, class) of a tagger."""
    shown, device = batch.shown, device_of(model)
    ids, mask, types = (tensor.to(device) for tensor in (shown.ids, shown.mask, shown.types))
    return model(input_ids=ids, attention_mask=mask, token_type_ids=types).logits


def device_of(model: nn.Module) -> torch.device:
    """Where the weights are."""
    return next(model.parameters()).device


def rate_at(recipe: Recipe, step: int, steps: int) -> float:
    """The learning rate of a step counted from 0: up over the share `warm_up` of all steps, then down to 0."""
    rising = max(1, round(recipe.warm_up * steps))
    if step < rising:
        return recipe.rate * (step + 1) / rising
    return recipe.rate * (steps - step) / max(1, steps - rising)


def _epoch(
    model: nn.Module, optimiser: torch.optim.Optimizer, examples: Sequence[Example], recipe: Recipe, epoch: int,
    steps: int,
) -> float:  # fmt: skip
    """One pass over the examples; order and dropout depend on seed and epoch alone. The mean loss."""
    model.train()
    torch.manual_seed(1_000 * recipe.seed + epoch)
    step = epoch * -(-len(examples) // recipe.size)
    total = 0.0
    first = step
    for batch in batches(examples, recipe.size, order=1_000 * recipe.seed + epoch):
        with _precision(recipe, device_of(model)):
            loss = loss_of(model, batch)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
        for group in optimiser.param_groups:
            group["lr"] = rate_at(recipe, step, steps)
        optimiser.step()
        total += loss.item()
        step += 1
    return total / max(1, step - first)


def _precision(recipe: Recipe, device: torch.device) -> AbstractContextManager[object]:
    return torch.autocast(device.type, dtype=torch.bfloat16) if recipe.half else nullcontext()


def _save(folder: Path, recipe: Recipe, model: nn.Module, optimiser: torch.optim.Optimizer, progress: Progress) -> None:
    state = {
        "recipe": asdict(recipe),
        "model": model.state_dict(),
        "optimiser": optimiser.state_dict(),
        "progress": asdict(progress),
    }
    _write(state, folder / LATEST)


def _write(state: object, path: Path) -> None:
    """The old file is replaced only by a whole new one."""
    part = path.with_suffix(".part")
    torch.save(state, part)
    part.replace(path)


def _resume(folder: Path, recipe: Recipe, model: nn.Module, optimiser: torch.optim.Optimizer) -> Progress:
    path = folder / LATEST
    if not path.exists():
        return Progress()
    state: dict[str, Any] = torch.load(path, map_location=device_of(model), weights_only=True)
    if state["recipe"] != asdict(recipe):
        raise ValueError(
            f"{path} is of another recipe: found {state['recipe']}, asked for {asdict(recipe)}; "
            "give the same options to resume, or another folder to start afresh"
        )
    model.load_state_dict(state["model"])
    optimiser.load_state_dict(state["optimiser"])
    return Progress(**state["progress"])
