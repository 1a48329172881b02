"""The training loop: AdamW, linear warm-up and decay, and selection of the best epoch.

The order of the examples and all randomness follow from seed and epoch, and a `TrainingState` holds everything a step
depends on: an interrupted run ends with the same weights as an uninterrupted one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from bertology.lazy import torch
from bertology.number_ranges import COUNT, LEARNING_RATE_OR_ZERO, PENALTY, PROPORTION, SEED, STEPS, check_fields
from bertology.training.encoded_examples import EncodedExample, TrainingBatch, batch_indices, pad_examples

if TYPE_CHECKING:
    from torch import Tensor, nn

    from bertology.training.checkpointer import Checkpointer

NO_LR_MULTIPLIERS: Mapping[str, float] = {}
REFERENCE_LEARNING_RATE, REFERENCE_WIDTH, MAX_LEARNING_RATE = 5e-5, 768, 1e-3

TrainingDtype = Literal["auto", "float32", "bfloat16"]
BatchLoss = Callable[[TrainingBatch], "Tensor"]
ValidationScore = Callable[[], float]
EpochLog = dict[str, float]
StateDict = dict[str, "Tensor"]


@dataclass(frozen=True)
class TrainingConfig:
    """Hyperparameters of a run.

    The learning rate rises over the fraction `warmup_ratio` of all steps and falls to 0; None chooses it by the width
    of the model. `weight_decay` applies to matrices. Training stops after `patience` epochs without a better
    validation score. `dtype` "auto" is bfloat16 on GPUs that support it. See `resolve_config`.
    """

    seed: Annotated[int, SEED] = 0
    epochs: Annotated[int, STEPS] = 3
    batch_size: Annotated[int, COUNT] = 16
    learning_rate: Annotated[float | None, LEARNING_RATE_OR_ZERO] = None
    warmup_ratio: Annotated[float, PROPORTION] = 0.1
    max_grad_norm: Annotated[float, PENALTY] = 1.0
    weight_decay: Annotated[float, PENALTY] = 0.01
    patience: Annotated[int | None, COUNT] = 2
    dtype: TrainingDtype = "auto"

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass
class TrainingHistory:
    """Best validation score and its epoch, and a log of each epoch."""

    best_score: float = float("-inf")
    best_epoch: int = 0
    epochs: list[EpochLog] = field(default_factory=list[EpochLog])


@dataclass
class TrainingState:
    """Everything the next step depends on."""

    step: int = 0
    losses: list[float] = field(default_factory=list[float])
    history: TrainingHistory = field(default_factory=TrainingHistory)
    weights: StateDict = field(default_factory=dict)
    optimiser: dict[str, Any] = field(default_factory=dict[str, Any])
    rng_states: list[Tensor] = field(default_factory=list)


class TrainingDivergedError(Exception):
    """The loss or its gradient is not finite; the weights were not updated with it."""


def train(
    model: nn.Module,
    loss: BatchLoss,
    examples: Sequence[EncodedExample],
    score: ValidationScore | None,
    config: TrainingConfig,
    *,
    lr_multipliers: Mapping[str, float] = NO_LR_MULTIPLIERS,
    max_steps: int | None = None,
    checkpointer: Checkpointer | None = None,
    progress: Callable[[int, int], None] | None = None,
    after_epoch: Callable[[TrainingHistory, int], None] | None = None,
) -> TrainingHistory:
    """Train a model in place; it ends with the weights of the best epoch by `score`, or of the last without a score.

    Only parameters that require a gradient are trained and saved. `lr_multipliers` scale the learning rate of
    parameters by the prefix of their name. After `max_steps` training ends, if need be within an epoch, and the
    learning rate is 0 by then. `after_epoch` receives the history and the step.
    """
    trainer = _Trainer(model, loss, examples, config, lr_multipliers, max_steps, checkpointer)
    best_weights: StateDict = {}
    while trainer.state.step < trainer.n_steps and not _is_out_of_patience(trainer.state.history, config):
        started = time.monotonic()
        mean_loss = trainer.train_epoch(progress)
        trained = time.monotonic()
        epoch = -(-trainer.state.step // trainer.steps_per_epoch)
        value = float(epoch) if score is None else score()
        history = trainer.state.history
        history.epochs.append({"epoch": epoch, "loss": mean_loss, "train_seconds": trained - started})
        if score is not None:
            history.epochs[-1] |= {"score": value, "validation_seconds": time.monotonic() - trained}
        if value > history.best_score:
            history.best_score, history.best_epoch = value, epoch
            best_weights = {name: weights.detach().cpu().clone() for name, weights in trainer.trainable.items()}
            if checkpointer is not None:
                checkpointer.save_best(epoch, best_weights)
        if checkpointer is not None:
            checkpointer.save(trainer.snapshot, force=True)
        if after_epoch is not None:
            after_epoch(history, trainer.state.step)
    history = trainer.state.history
    if not best_weights and checkpointer is not None and history.best_epoch:
        best_weights = checkpointer.load_best(history.best_epoch)
    if best_weights:
        restore_weights(model, best_weights)
    model.eval()
    return history


class _Trainer:
    """A model, its optimiser and its training state."""

    def __init__(
        self,
        model: nn.Module,
        loss: BatchLoss,
        examples: Sequence[EncodedExample],
        config: TrainingConfig,
        lr_multipliers: Mapping[str, float],
        max_steps: int | None,
        checkpointer: Checkpointer | None,
    ) -> None:
        self.model, self.loss, self.examples = model, loss, examples
        self.config, self.checkpointer = config, checkpointer
        self.trainable = trainable_parameters(model)
        self.optimiser = _build_optimiser(self.trainable, config, lr_multipliers)
        self.steps_per_epoch = -(-len(examples) // config.batch_size)
        n_steps = config.epochs * self.steps_per_epoch
        self.n_steps = n_steps if max_steps is None else min(n_steps, max_steps)
        self.state = (checkpointer.latest() if checkpointer is not None else None) or TrainingState()
        if self.state.step:
            restore_weights(model, self.state.weights)
            self.optimiser.load_state_dict(self.state.optimiser)

    def train_epoch(self, progress: Callable[[int, int], None] | None) -> float:
        """Run the remaining steps of the epoch and return its mean loss; the order depends on seed and epoch only."""
        state = self.state
        epoch, n_done = divmod(state.step, self.steps_per_epoch)
        shuffle_seed = 1_000 * self.config.seed + epoch
        self.model.train()
        if n_done:
            _restore_rng_states(state.rng_states)
        else:
            state.losses = []
            torch.manual_seed(shuffle_seed)
        batches = batch_indices(self.examples, self.config.batch_size, shuffle_seed=shuffle_seed)
        for indices in batches[n_done : n_done + self.n_steps - state.step]:
            state.losses.append(self._step(pad_examples(self.examples, indices), epoch))
            state.step += 1
            if progress is not None:
                progress(state.step, self.n_steps)
            if self.checkpointer is not None and state.step % self.steps_per_epoch:
                self.checkpointer.save(self.snapshot, force=False)
        self.model.eval()
        return sum(state.losses) / len(state.losses)

    def _step(self, batch: TrainingBatch, epoch: int) -> float:
        config, step = self.config, self.state.step
        with _allow_tf32(), _autocast(self.model, config.dtype):
            loss = self.loss(batch)
        self.optimiser.zero_grad(set_to_none=True)
        with _allow_tf32():
            loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.trainable.values(), config.max_grad_norm)
        if not bool(torch.isfinite(loss) & torch.isfinite(norm)):
            raise TrainingDivergedError(
                f"the loss became {float(loss.detach())} at step {step + 1} (epoch {epoch + 1})"
            )
        for group in self.optimiser.param_groups:
            group["lr"] = learning_rate_at(config, step, self.n_steps) * group["lr_multiplier"]
        self.optimiser.step()
        return float(loss.detach())

    def snapshot(self) -> TrainingState:
        """The current state; its tensors are the model's, and must be written before the next step."""
        state = self.state
        weights = {name: tensor.detach() for name, tensor in self.trainable.items()}
        state.weights, state.optimiser, state.rng_states = weights, self.optimiser.state_dict(), _rng_states()
        return state


def learning_rate_at(config: TrainingConfig, step: int, steps: int) -> float:
    """Learning rate of a step counted from 0: linear warm-up over `warmup_ratio` of all steps, then down to 0."""
    assert config.learning_rate is not None, "`resolve_config` sets the learning rate"
    n_warmup = max(1, round(config.warmup_ratio * steps))
    if step < n_warmup:
        return config.learning_rate * (step + 1) / n_warmup
    return config.learning_rate * (steps - step) / max(1, steps - n_warmup)


def trainable_parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    """The parameters that require a gradient, by name."""
    return {name: weights for name, weights in model.named_parameters() if weights.requires_grad}


def restore_weights(model: nn.Module, saved_weights: Mapping[str, Tensor]) -> None:
    """Copy saved values into all trainable parameters."""
    with torch.no_grad():
        for name, weights in trainable_parameters(model).items():
            weights.copy_(saved_weights[name])


def resolve_config(config: TrainingConfig, *, width: int, device: str) -> TrainingConfig:
    """The configuration with its defaults resolved: learning rate by the model's width, dtype by the device.

    BERT's 5e-5 is for a width of 768; the learning rate is inversely proportional to the width.
    """
    by_width = REFERENCE_LEARNING_RATE * REFERENCE_WIDTH / width
    default = float(f"{min(by_width, MAX_LEARNING_RATE):.2g}")
    learning_rate = default if config.learning_rate is None else config.learning_rate
    return replace(config, learning_rate=learning_rate, dtype=_resolve_dtype(config.dtype, device))


def _resolve_dtype(dtype: TrainingDtype, device: str) -> Literal["float32", "bfloat16"]:
    if dtype != "auto":
        return dtype
    return "bfloat16" if device.startswith("cuda") and torch.cuda.is_bf16_supported() else "float32"


def _is_out_of_patience(history: TrainingHistory, config: TrainingConfig) -> bool:
    return config.patience is not None and len(history.epochs) - history.best_epoch >= config.patience


def _build_optimiser(
    trainable: Mapping[str, nn.Parameter], config: TrainingConfig, lr_multipliers: Mapping[str, float]
) -> torch.optim.Optimizer:
    """AdamW; biases and the vectors of LayerNorms do not decay."""
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for name, weights in trainable.items():
        multiplier = next((factor for prefix, factor in lr_multipliers.items() if name.startswith(prefix)), 1.0)
        groups.setdefault((multiplier, config.weight_decay if weights.ndim > 1 else 0.0), []).append(weights)
    param_groups = [
        {"params": params, "lr_multiplier": multiplier, "weight_decay": decay}
        for (multiplier, decay), params in groups.items()
    ]
    return torch.optim.AdamW(param_groups, lr=config.learning_rate or 0.0, fused=True)


def _autocast(model: nn.Module, dtype: TrainingDtype) -> Any:
    device = next(model.parameters()).device.type
    if _resolve_dtype(dtype, device) == "float32":
        return nullcontext()
    return torch.autocast(device, torch.bfloat16)


def _rng_states() -> list[Tensor]:
    return [torch.get_rng_state(), *(torch.cuda.get_rng_state_all() if torch.cuda.is_available() else ())]


def _restore_rng_states(states: Sequence[Tensor]) -> None:
    torch.set_rng_state(states[0])
    if len(states) > 1 and torch.cuda.device_count() == len(states) - 1:
        torch.cuda.set_rng_state_all(list(states[1:]))


@contextmanager
def _allow_tf32() -> Generator[None]:
    """Allow TF32 in float32 matrix products: for training, never for measurements."""
    previous = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(previous)
