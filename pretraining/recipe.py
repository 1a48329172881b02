"""The training configuration: every choice that affects the weights; it is stored with them."""

from dataclasses import dataclass, field

from pretraining.model import Shape


@dataclass(frozen=True)
class Recipe:
    """Shape, data and optimiser; `power` is that of document length in drawing, rows are for one step."""

    steps: int
    seed: int = 0
    shape: Shape = field(default_factory=Shape)
    full_rows: int = 384
    short_rows: int = 512
    short_width: int = 64
    power: float = 0.85
    rate: float = 1e-3
    warm_up: int = 1_000
    decay: float = 0.1
    clip: float = 1.0

    @property
    def pieces(self) -> int:
        """Places of one step, padding counted in."""
        return self.full_rows * self.shape.positions + self.short_rows * self.short_width


def learning_rate(recipe: Recipe, step: int) -> float:
    """The rate of a step counted from 0: linear from 0 to the peak over `warm_up` steps, then linear to 0."""
    if step < recipe.warm_up:
        return recipe.rate * (step + 1) / recipe.warm_up
    return recipe.rate * (recipe.steps - step) / max(1, recipe.steps - recipe.warm_up)
