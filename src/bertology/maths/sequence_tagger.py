"""A bidirectional LSTM under a conditional random field, many at once (Huang et al. 2015); no BERT here."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from bertology.maths.conditional_random_field import best_paths, log_partition, path_score
from bertology.maths.stacked_training import Parameters, dropped, weights

DROPOUT = 0.3


@dataclass(frozen=True)
class SequenceTagger:
    """Vectors through an LSTM in each direction with `units` units, a score for each tag, and a field over the tags."""

    tags: int
    units: int = 64
    by_step: bool = True

    def start(self, width: int, seed: int) -> Parameters:
        """Random weights, a forget bias of 1, and moves that know nothing."""
        generator = torch.Generator().manual_seed(seed)
        bias = torch.zeros(2, 4 * self.units)
        bias[:, self.units : 2 * self.units] = 1
        return {
            "input": torch.stack([weights(generator, width, 4 * self.units) for _ in range(2)]),
            "state": torch.stack([weights(generator, self.units, 4 * self.units) for _ in range(2)]),
            "bias": bias,
            "out": weights(generator, 2 * self.units, self.tags),
            "out bias": torch.zeros(self.tags),
            "moves": torch.zeros(self.tags + 1, self.tags + 1),
        }

    def losses(
        self, parameters: Parameters, x: Tensor, real: Tensor, labels: Tensor, noise: torch.Generator | None
    ) -> Tensor:
        """(model, batch) minus the log chance of the labels, for each step of the sequence."""
        scores, moves = self._scores(parameters, x, real, noise), parameters["moves"][:, None]
        missed = log_partition(scores, moves, real) - path_score(scores, moves, real, labels)
        return missed / real.sum(-1)

    def answers(self, parameters: Parameters, x: Tensor, real: Tensor) -> Tensor:
        """(model, batch, step) the best path."""
        return best_paths(self._scores(parameters, x, real, None), parameters["moves"][:, None], real)

    def _scores(self, parameters: Parameters, x: Tensor, real: Tensor, noise: torch.Generator | None) -> Tensor:
        states = dropped(self._states(parameters, dropped(x, DROPOUT, noise), real), DROPOUT, noise)
        return torch.einsum("mbsu,mut->mbst", states, parameters["out"]) + parameters["out bias"][:, None, None]

    def _states(self, parameters: Parameters, x: Tensor, real: Tensor) -> Tensor:
        """(model, batch, step, 2 units): both directions go through one loop, the second from the end."""
        models, batch, steps, _ = x.shape
        shown = x.flatten(1, 2)[:, None] @ parameters["input"] + parameters["bias"][:, :, None]
        shown = shown.unflatten(2, (batch, steps)).flatten(0, 1)
        turned = torch.arange(steps).flip(0)
        recurrent = parameters["state"].flatten(0, 1)
        hidden = cell = x.new_zeros(2 * models, batch, self.units)
        found: list[Tensor] = []
        forwards = torch.tensor([True, False]).repeat(models)[:, None, None]
        for step in range(steps):
            back = int(turned[step])
            now = torch.where(forwards, shown[:, :, step], shown[:, :, back])
            there = torch.stack([real[..., step], real[..., back]], 1).flatten(0, 1)[..., None]
            entry, forget, out, new = torch.baddbmm(now, hidden, recurrent).chunk(4, -1)
            cell = torch.where(there, forget.sigmoid() * cell + entry.sigmoid() * new.tanh(), cell)
            hidden = torch.where(there, out.sigmoid() * cell.tanh(), hidden)
            found.append(hidden)
        both = torch.stack(found, 2).unflatten(0, (models, 2))
        return torch.cat([both[:, 0], both[:, 1].flip(2)], -1)
