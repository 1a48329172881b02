"""How is a partner trained? Cross-entropy with AdamW, warm-up and linear decay, and back to the best epoch."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from torch import Tensor, nn

from pretraining.partners.examples import UNLABELLED, Example, Padded, batches
from pretraining.partners.factors import moving, put_back

BEST = "best.pt"
RUN = "run.json"

Score = Callable[[nn.Module], float]


@dataclass(frozen=True)
class Recipe:
    """Every choice that changes the weights; `fresh` begins from random weights and learns them whole."""

    seed: int = 0
    epochs: int = 3
    size: int = 64
    rate: float = 1e-3
    warm_up: float = 0.1
    clip: float = 1.0
    rank: int = 16
    fresh: bool = False


@dataclass
class Progress:
    """What came of a run: the best score and its epoch, and a line for each epoch."""

    best: float = float("-inf")
    best_epoch: int = 0
    log: list[dict[str, float]] = field(default_factory=list[dict[str, float]])


def train(model: nn.Module, examples: Sequence[Example], score: Score, recipe: Recipe, folder: Path) -> Progress:
    """Train in place and leave the model, and the folder, with what was best by `score`.

    Only parameters that require a gradient are moved and kept. No weight decay: the factors would shrink for no reason
    but their form.
    """
    folder.mkdir(parents=True, exist_ok=True)
    learnt = moving(model)
    optimiser = torch.optim.AdamW(learnt.values(), lr=recipe.rate, weight_decay=0.0, fused=True)
    progress = Progress()
    kept: dict[str, Tensor] = {}
    for epoch in range(recipe.epochs):
        begin = time.monotonic()
        loss = _epoch(model, optimiser, examples, recipe, epoch)
        trained = time.monotonic()
        value = score(model.eval())
        seconds = {"seconds": trained - begin, "scoring": time.monotonic() - trained}
        progress.log.append({"epoch": epoch + 1, "loss": loss, "score": value, **seconds})
        print(f"{folder.name}: {json.dumps(progress.log[-1])}", file=sys.stderr, flush=True)
        if value > progress.best:
            progress.best, progress.best_epoch = value, epoch + 1
            kept = {name: weights.detach().cpu().clone() for name, weights in learnt.items()}
    put_back(model, kept)
    torch.save(kept, folder / BEST)
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


def rate_at(recipe: Recipe, step: int, steps: int) -> float:
    """The learning rate of a step counted from 0: up over the share `warm_up` of all steps, then down to 0."""
    rising = max(1, round(recipe.warm_up * steps))
    if step < rising:
        return recipe.rate * (step + 1) / rising
    return recipe.rate * (steps - step) / max(1, steps - rising)


def _epoch(
    model: nn.Module, optimiser: torch.optim.Optimizer, examples: Sequence[Example], recipe: Recipe, epoch: int
) -> float:
    """One pass over the examples, whose order depends on seed and epoch alone. The mean loss."""
    model.train()
    torch.manual_seed(1_000 * recipe.seed + epoch)
    each = -(-len(examples) // recipe.size)
    losses: list[Tensor] = []
    for step, batch in enumerate(batches(examples, recipe.size, order=1_000 * recipe.seed + epoch)):
        with _fast_products():
            loss = loss_of(model, batch)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
        for group in optimiser.param_groups:
            group["lr"] = rate_at(recipe, epoch * each + step, recipe.epochs * each)
        optimiser.step()
        losses.append(loss.detach())
    return float(torch.stack(losses).mean())


@contextmanager
def _fast_products() -> Generator[None]:
    """Products of float32 by TF32 where the device has it: for learning, never for what is measured."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
