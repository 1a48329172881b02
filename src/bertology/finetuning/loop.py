"""How does a model learn? AdamW, warm-up and linear decay, and back to the epoch that was best.

The one training loop of the project. The order of the examples and all randomness follow from seed and epoch, and
what `Keeper` keeps is all that a step depends on: a run that was interrupted ends with the weights of one that was not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

import torch
from torch import Tensor, nn

from bertology.finetuning.examples import Example, Padded, grouped, pad

NONE_FASTER: Mapping[str, float] = {}
USUAL_RATE, USUAL_WIDTH, HIGHEST_RATE = 5e-5, 768, 1e-3

Precision = Literal["auto", "float32", "bfloat16"]
Loss = Callable[[Padded], Tensor]
Score = Callable[[], float]
Log = dict[str, float]
Weights = dict[str, Tensor]


@dataclass(frozen=True)
class Recipe:
    """Every choice that changes the weights.

    `size` examples a step; `rate` rises over the share `warm_up` of all steps and falls to 0; gradients are clipped to
    the norm `clip`; matrices shrink by `decay`; training stops after `patience` epochs without a better score. Without
    a `rate` it is chosen by the width of the model, and without a `precision` by the device: see `settled`.
    """

    seed: int = 0
    epochs: int = 3
    size: int = 16
    rate: float | None = None
    warm_up: float = 0.1
    clip: float = 1.0
    decay: float = 0.01
    patience: int | None = 2
    precision: Precision = "auto"


@dataclass
class Progress:
    """What came of a run: the best score and its epoch, and a line for each epoch."""

    best: float = float("-inf")
    best_epoch: int = 0
    log: list[Log] = field(default_factory=list[Log])


@dataclass
class State:
    """All that the next step depends on."""

    step: int = 0
    losses: list[float] = field(default_factory=list[float])
    progress: Progress = field(default_factory=Progress)
    weights: Weights = field(default_factory=dict[str, Tensor])
    optimiser: dict[str, Any] = field(default_factory=dict[str, Any])
    random: list[Tensor] = field(default_factory=list[Tensor])


class Keeper(Protocol):
    """Keeps what a run needs to go on after an interruption."""

    def last(self) -> State | None:
        """The state that was kept last."""
        ...

    def keep(self, state: Callable[[], State], *, now: bool) -> None:
        """Keep the state, `now` or if it is time to."""
        ...

    def keep_best(self, epoch: int, weights: Mapping[str, Tensor]) -> None:
        """Keep the weights that have the best score so far."""
        ...

    def best(self, epoch: int) -> Weights:
        """The weights that were kept as the best."""
        ...


class Diverged(Exception):
    """The loss or its gradient is no finite number any more; nothing was changed by it."""

    def __init__(self, loss: float, step: int, epoch: int) -> None:
        super().__init__(f"the loss became {loss} at step {step} (epoch {epoch})")
        self.loss = loss
        self.step = step
        self.epoch = epoch


def train(
    model: nn.Module,
    loss: Loss,
    examples: Sequence[Example],
    score: Score | None,
    recipe: Recipe,
    *,
    faster: Mapping[str, float] = NONE_FASTER,
    keeper: Keeper | None = None,
    progress: Callable[[int, int], None] | None = None,
    after_epoch: Callable[[Progress, int], None] | None = None,
) -> Progress:
    """Train in place and leave the model with what was best by `score`, with its last weights where there is none.

    Only parameters that require a gradient are moved and kept, those whose name begins as one in `faster` at so many
    times the rate. `after_epoch` is told the progress and the step.
    """
    run = _Run(model, loss, examples, recipe, faster, keeper)
    kept: Weights = {}
    while run.state.step < run.steps and not _is_stale(run.state.progress, recipe):
        begin = time.monotonic()
        mean = run.epoch(progress)
        trained = time.monotonic()
        epoch = run.state.step // run.each
        value = float(epoch) if score is None else score()
        reached = run.state.progress
        reached.log.append({"epoch": epoch, "loss": mean, "seconds": trained - begin})
        if score is not None:
            reached.log[-1] |= {"score": value, "scoring": time.monotonic() - trained}
        if value > reached.best:
            reached.best, reached.best_epoch = value, epoch
            kept = {name: weights.detach().cpu().clone() for name, weights in run.learnt.items()}
            if keeper is not None:
                keeper.keep_best(epoch, kept)
        if keeper is not None:
            keeper.keep(run.snapshot, now=True)
        if after_epoch is not None:
            after_epoch(reached, run.state.step)
    found = run.state.progress
    if not kept and keeper is not None and found.best_epoch:
        kept = keeper.best(found.best_epoch)
    if kept:
        put_back(model, kept)
    model.eval()
    return found


class _Run:
    """A model on its way: its optimiser, and where it stands."""

    def __init__(
        self,
        model: nn.Module,
        loss: Loss,
        examples: Sequence[Example],
        recipe: Recipe,
        faster: Mapping[str, float],
        keeper: Keeper | None,
    ) -> None:
        self.model, self.loss, self.examples, self.recipe, self.keeper = model, loss, examples, recipe, keeper
        self.learnt = moving(model)
        self.optimiser = _optimiser(self.learnt, recipe, faster)
        self.each = -(-len(examples) // recipe.size)
        self.steps = recipe.epochs * self.each
        self.state = (keeper.last() if keeper is not None else None) or State()
        if self.state.step:
            put_back(model, self.state.weights)
            self.optimiser.load_state_dict(self.state.optimiser)

    def epoch(self, progress: Callable[[int, int], None] | None) -> float:
        """What is left of one pass over the examples, whose order depends on seed and epoch alone. The mean loss."""
        state = self.state
        epoch, done = divmod(state.step, self.each)
        order = 1_000 * self.recipe.seed + epoch
        self.model.train()
        if done:
            _set_random(state.random)
        else:
            state.losses = []
            torch.manual_seed(order)
        for places in grouped(self.examples, self.recipe.size, order=order)[done:]:
            state.losses.append(self._step(pad(self.examples, places), epoch))
            state.step += 1
            if progress is not None:
                progress(state.step, self.steps)
            if self.keeper is not None and state.step % self.each:
                self.keeper.keep(self.snapshot, now=False)
        self.model.eval()
        return sum(state.losses) / len(state.losses)

    def _step(self, batch: Padded, epoch: int) -> float:
        recipe, step = self.recipe, self.state.step
        with _fast_products(), _autocast(self.model, recipe.precision):
            loss = self.loss(batch)
        self.optimiser.zero_grad(set_to_none=True)
        with _fast_products():
            loss.backward()
        norm = nn.utils.clip_grad_norm_(self.learnt.values(), recipe.clip)
        if not bool(torch.isfinite(loss) & torch.isfinite(norm)):
            raise Diverged(float(loss.detach()), step + 1, epoch + 1)
        for group in self.optimiser.param_groups:
            group["lr"] = rate_at(recipe, step, self.steps) * group["times"]
        self.optimiser.step()
        return float(loss.detach())

    def snapshot(self) -> State:
        """The state as it is now; its tensors are those of the model, to be written before the next step."""
        state = self.state
        weights = {name: tensor.detach() for name, tensor in self.learnt.items()}
        state.weights, state.optimiser, state.random = weights, self.optimiser.state_dict(), _random()
        return state


def rate_at(recipe: Recipe, step: int, steps: int) -> float:
    """The learning rate of a step counted from 0: up over the share `warm_up` of all steps, then down to 0."""
    assert recipe.rate is not None, "a recipe is settled before it is followed"
    rising = max(1, round(recipe.warm_up * steps))
    if step < rising:
        return recipe.rate * (step + 1) / rising
    return recipe.rate * (steps - step) / max(1, steps - rising)


def moving(model: nn.Module) -> dict[str, nn.Parameter]:
    """The parameters that are learnt, by name."""
    return {name: weights for name, weights in model.named_parameters() if weights.requires_grad}


@torch.no_grad()
def put_back(model: nn.Module, kept: Mapping[str, Tensor]) -> None:
    """Give every parameter that is learnt the values kept under its name."""
    for name, weights in moving(model).items():
        weights.copy_(kept[name])


def settled(recipe: Recipe, *, width: int, device: str) -> Recipe:
    """The recipe with what it leaves open: the rate by the model's width, the precision by the device.

    BERT's 5e-5 is for a width of 768; narrower models take larger steps, in proportion, and wider ones smaller.
    """
    usual = USUAL_RATE * USUAL_WIDTH / width
    rate = recipe.rate if recipe.rate is not None else float(f"{min(usual, HIGHEST_RATE):.2g}")
    return replace(recipe, rate=rate, precision=_settled_precision(recipe.precision, device))


def _settled_precision(precision: Precision, device: str) -> Literal["float32", "bfloat16"]:
    """What `auto` means on a device: bfloat16 where a graphics card has it, else float32."""
    if precision != "auto":
        return precision
    return "bfloat16" if device.startswith("cuda") and torch.cuda.is_bf16_supported() else "float32"


def _is_stale(progress: Progress, recipe: Recipe) -> bool:
    return recipe.patience is not None and len(progress.log) - progress.best_epoch >= recipe.patience


def _optimiser(
    learnt: Mapping[str, nn.Parameter], recipe: Recipe, faster: Mapping[str, float]
) -> torch.optim.Optimizer:
    """AdamW; biases and the vectors of layer norms do not decay."""
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for name, weights in learnt.items():
        times = next((times for beginning, times in faster.items() if name.startswith(beginning)), 1.0)
        groups.setdefault((times, recipe.decay if weights.ndim > 1 else 0.0), []).append(weights)
    told = [{"params": some, "times": times, "weight_decay": decay} for (times, decay), some in groups.items()]
    return torch.optim.AdamW(told, lr=recipe.rate or 0.0, fused=True)


def _autocast(model: nn.Module, precision: Precision) -> Any:
    device = next(model.parameters()).device.type
    if _settled_precision(precision, device) == "float32":
        return nullcontext()
    return torch.autocast(device, torch.bfloat16)


def _random() -> list[Tensor]:
    return [torch.get_rng_state(), *(torch.cuda.get_rng_state_all() if torch.cuda.is_available() else ())]


def _set_random(states: Sequence[Tensor]) -> None:
    torch.set_rng_state(states[0])
    if len(states) > 1 and torch.cuda.device_count() == len(states) - 1:
        torch.cuda.set_rng_state_all(list(states[1:]))


@contextmanager
def _fast_products() -> Generator[None]:
    """Products of float32 by TF32 where the device has it: for learning, never for what is measured."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
