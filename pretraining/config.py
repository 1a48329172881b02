"""The training configuration: every setting that affects the weights; it is stored with them."""

from dataclasses import dataclass, field

from pretraining.model import ModelSize


@dataclass(frozen=True)
class PretrainingConfig:
    """Model size, data and optimiser.

    Each step has `batch_size` full pairs and `short_batch_size` short sequences. Documents are sampled in proportion
    to their length to the power of `length_exponent`.
    """

    steps: int
    seed: int = 0
    model: ModelSize = field(default_factory=ModelSize)
    batch_size: int = 384
    short_batch_size: int = 512
    short_max_length: int = 64
    length_exponent: float = 0.85
    learning_rate: float = 1e-3
    warmup_steps: int = 1_000
    weight_decay: float = 0.1
    max_grad_norm: float = 1.0

    @property
    def tokens_per_step(self) -> int:
        """Token positions of one step, including padding."""
        return self.batch_size * self.model.max_length + self.short_batch_size * self.short_max_length


def learning_rate_at(config: PretrainingConfig, step: int) -> float:
    """The learning rate of a 0-based step: linear warm-up from 0 to the peak, then linear decay to 0."""
    if step < config.warmup_steps:
        return config.learning_rate * (step + 1) / config.warmup_steps
    return config.learning_rate * (config.steps - step) / max(1, config.steps - config.warmup_steps)
