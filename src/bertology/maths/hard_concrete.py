"""Gates that can be exactly 0 or 1 and still be learnt: the Hard Concrete distribution (louizos2018, voita2019).

A gate is a sigmoid with logistic noise, stretched over both ends of [0, 1] and clipped to it, so that a piece of its
mass lies on 0 and another on 1. What it costs is the chance that it is not 0, which has a gradient.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Generator, Tensor

NOISE_MARGIN = 1e-6
"""How far uniform noise stays from 0 and 1, where its logit has no value."""


@dataclass(frozen=True)
class HardConcrete:
    """The distribution of gates with the locations `log_alpha`: its temperature, and the ends it is stretched to."""

    beta: float = 0.33
    gamma: float = -0.1
    zeta: float = 1.1

    def draw(self, log_alpha: Tensor, generator: Generator | None = None) -> Tensor:
        """A gate for each location, in [0, 1], with a gradient by reparameterisation."""
        import torch

        noise = torch.rand(log_alpha.shape, generator=generator, dtype=log_alpha.dtype, device=log_alpha.device)
        return self.at(log_alpha, noise.clamp(NOISE_MARGIN, 1 - NOISE_MARGIN))

    def at(self, log_alpha: Tensor, noise: Tensor) -> Tensor:
        """The gates that uniform noise makes: the quantiles of the distribution."""
        import torch

        return self._stretched(torch.sigmoid((torch.logit(noise) + log_alpha) / self.beta))

    def settled(self, log_alpha: Tensor) -> Tensor:
        """The gates without noise, as the released code of voita2019 takes them after learning: no division by beta."""
        import torch

        return self._stretched(torch.sigmoid(log_alpha))

    def kept(self, log_alpha: Tensor) -> Tensor:
        """Booleans: whether a gate is likelier to be 1 than 0, as the paper takes them after learning."""
        return self.chance_one(log_alpha) > 1 - self.chance_open(log_alpha)

    def chance_open(self, log_alpha: Tensor) -> Tensor:
        """The chance that a gate is not 0; the sum of it is the expected number of gates, their L0 norm."""
        import torch

        return torch.sigmoid(log_alpha - self.beta * math.log(-self.gamma / self.zeta))

    def chance_one(self, log_alpha: Tensor) -> Tensor:
        """The chance that a gate is exactly 1."""
        import torch

        return torch.sigmoid(log_alpha - self.beta * math.log((1 - self.gamma) / (self.zeta - 1)))

    def _stretched(self, share: Tensor) -> Tensor:
        return (share * (self.zeta - self.gamma) + self.gamma).clamp(0, 1)
