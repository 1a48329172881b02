"""Bidirectional LSTMs with a conditional random field on top, many at once (Huang et al. 2015)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bertology.analyses.frozen_features.batched_training import Parameters, dropout, scaled_normal
from bertology.analyses.frozen_features.crf import log_partition, path_score, viterbi
from bertology.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor

DROPOUT = 0.3


@dataclass(frozen=True)
class BiLstmCrf:
    """An LSTM in each direction with `hidden_size` units, a linear layer to tag scores, and a CRF over the tags."""

    tags: int
    hidden_size: int = 64
    is_sequence_labelling: bool = True

    def init(self, width: int, seed: int) -> Parameters:
        """Random weights, a forget-gate bias of 1, and transition scores of 0."""
        generator = torch.Generator().manual_seed(seed)
        bias = torch.zeros(2, 4 * self.hidden_size)
        bias[:, self.hidden_size : 2 * self.hidden_size] = 1
        return {
            "input": torch.stack([scaled_normal(generator, width, 4 * self.hidden_size) for _ in range(2)]),
            "hidden": torch.stack([scaled_normal(generator, self.hidden_size, 4 * self.hidden_size) for _ in range(2)]),
            "bias": bias,
            "output": scaled_normal(generator, 2 * self.hidden_size, self.tags),
            "output_bias": torch.zeros(self.tags),
            "transitions": torch.zeros(self.tags + 1, self.tags + 1),
        }

    def losses(
        self, parameters: Parameters, x: Tensor, step_mask: Tensor, labels: Tensor, noise: torch.Generator | None
    ) -> Tensor:
        """(model, batch) negative log-likelihood of the labels, divided by the length of the sequence."""
        scores, transitions = self._scores(parameters, x, step_mask, noise), parameters["transitions"][:, None]
        loss = log_partition(scores, transitions, step_mask) - path_score(scores, transitions, step_mask, labels)
        return loss / step_mask.sum(-1)

    def predict(self, parameters: Parameters, x: Tensor, step_mask: Tensor) -> Tensor:
        """(model, batch, step) the best path."""
        return viterbi(self._scores(parameters, x, step_mask, None), parameters["transitions"][:, None], step_mask)

    def _scores(self, parameters: Parameters, x: Tensor, step_mask: Tensor, noise: torch.Generator | None) -> Tensor:
        states = dropout(self._states(parameters, dropout(x, DROPOUT, noise), step_mask), DROPOUT, noise)
        return torch.einsum("mbsu,mut->mbst", states, parameters["output"]) + parameters["output_bias"][:, None, None]

    def _states(self, parameters: Parameters, x: Tensor, step_mask: Tensor) -> Tensor:
        """(model, batch, step, 2 units); one loop runs both directions, the second from the end."""
        models, batch, steps, _ = x.shape
        projected = x.flatten(1, 2)[:, None] @ parameters["input"] + parameters["bias"][:, :, None]
        projected = projected.unflatten(2, (batch, steps)).flatten(0, 1)
        recurrent = parameters["hidden"].flatten(0, 1)
        hidden = cell = x.new_zeros(2 * models, batch, self.hidden_size)
        states: list[Tensor] = []
        is_forward = torch.tensor([True, False]).repeat(models)[:, None, None]
        for step in range(steps):
            back = steps - 1 - step
            inputs = torch.where(is_forward, projected[:, :, step], projected[:, :, back])
            mask = torch.stack([step_mask[..., step], step_mask[..., back]], 1).flatten(0, 1)[..., None]
            input_gate, forget_gate, output_gate, new = torch.baddbmm(inputs, hidden, recurrent).chunk(4, -1)
            cell = torch.where(mask, forget_gate.sigmoid() * cell + input_gate.sigmoid() * new.tanh(), cell)
            hidden = torch.where(mask, output_gate.sigmoid() * cell.tanh(), hidden)
            states.append(hidden)
        both = torch.stack(states, 2).unflatten(0, (models, 2))
        return torch.cat([both[:, 0], both[:, 1].flip(2)], -1)
