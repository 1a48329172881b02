"""The Hard Concrete distribution: differentiable gates that can be exactly 0 or 1 (louizos2018, voita2019).

A gate is a sigmoid with logistic noise, stretched beyond [0, 1] and clipped to it, so that some probability mass lies
on 0 and some on 1. The L0 penalty is the probability that a gate is not 0, which is differentiable.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bertology.lazy import torch

if TYPE_CHECKING:
    from torch import Generator, Tensor

NOISE_MARGIN = 1e-6
"""Distance that uniform noise keeps from 0 and 1, where its logit is infinite."""


@dataclass(frozen=True)
class HardConcrete:
    """The distribution of gates with locations `log_alpha`, temperature `beta` and stretch (`gamma`, `zeta`)."""

    beta: float = 0.33
    gamma: float = -0.1
    zeta: float = 1.1

    def sample(self, log_alpha: Tensor, generator: Generator | None = None) -> Tensor:
        """Sample a gate in [0, 1] for each location, differentiable by reparameterisation."""
        noise = torch.rand(log_alpha.shape, generator=generator, dtype=log_alpha.dtype, device=log_alpha.device)
        return self.gates(log_alpha, noise.clamp(NOISE_MARGIN, 1 - NOISE_MARGIN))

    def gates(self, log_alpha: Tensor, noise: Tensor) -> Tensor:
        """The gates for uniform noise: quantiles of the distribution."""
        unstretched = torch.sigmoid((torch.logit(noise) + log_alpha) / self.beta)
        return (unstretched * (self.zeta - self.gamma) + self.gamma).clamp(0, 1)

    def is_open(self, log_alpha: Tensor) -> Tensor:
        """Whether a gate is more probably 1 than 0, the criterion of the paper after training."""
        return self.p_one(log_alpha) > 1 - self.p_nonzero(log_alpha)

    def p_nonzero(self, log_alpha: Tensor) -> Tensor:
        """The probability that a gate is not 0; the sum is the expected L0 norm."""
        return torch.sigmoid(log_alpha - self.beta * math.log(-self.gamma / self.zeta))

    def p_one(self, log_alpha: Tensor) -> Tensor:
        """The probability that a gate is exactly 1."""
        return torch.sigmoid(log_alpha - self.beta * math.log((1 - self.gamma) / (self.zeta - 1)))
