"""Tensor product decomposition: vectors as sums of fillers bound to roles (McCoy et al. 2019).

A sequence is a list of fillers (fixed vectors) in roles (numbers). Its vector is approximated by W vec(sum over the
sequence of filler x role vector) + b, with learned role vectors and W; any linear map of the fillers is absorbed by W.
Several targets of the same sequences (layers of a model, seeds) are fitted together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from torch import Tensor, nn

from bertology.arrays import Array
from bertology.lazy import torch

PADDING_ROLE = -1
ADAM_EPSILON = 1e-6
"""Above the rounding errors of gradients, which Adam would otherwise turn into steps of full size."""
ROLE_STD = 0.1
"""Standard deviation of role vectors around their common initial vector, whose components have a variance of 1."""


@dataclass(frozen=True)
class FillerRoleSequences:
    """(sequence, position) fillers as rows of a table, and roles, `PADDING_ROLE` beyond the end of a sequence."""

    fillers: Array
    roles: Array

    def __len__(self) -> int:
        return len(self.roles)

    def __getitem__(self, rows: Array) -> FillerRoleSequences:
        """Some of the sequences, cropped to the longest of them."""
        length = max(1, int((self.roles[rows] != PADDING_ROLE).sum(1).max(initial=1)))
        return FillerRoleSequences(self.fillers[rows, :length], self.roles[rows, :length])


class TensorProductDecomposition(nn.Module):
    """One decomposition per target: role vectors (target, role, size) and a map (target, size x filler, width)."""

    def __init__(
        self, table: Array, n_roles: int, width: int, n_targets: int, *, role_size: int, seeds: tuple[int, ...]
    ) -> None:
        """Target i is initialised with the seed i modulo the number of seeds."""
        super().__init__()
        self.table = nn.Buffer(torch.from_numpy(np.asarray(table, np.float32)))
        initial_roles = [_initial_roles(n_roles, role_size, seed) for seed in seeds]
        self.roles = nn.Parameter(torch.stack(initial_roles * (n_targets // len(seeds))))
        # Zeros: before training, the prediction is the bias for every sequence.
        self.weights = nn.Parameter(torch.zeros(n_targets, role_size * table.shape[1], width))
        self.bias = nn.Parameter(torch.zeros(n_targets, 1, width))

    def forward(self, sequences: FillerRoleSequences) -> Tensor:
        """(target, sequence, width) predicted vectors."""
        roles = torch.from_numpy(np.asarray(sequences.roles, np.int64))
        is_filled = (roles != PADDING_ROLE)[None, :, :, None]
        fillers = self.table[torch.from_numpy(np.asarray(sequences.fillers, np.int64))]
        role_vectors = self.roles[:, roles.clamp(min=0)] * is_filled
        bindings = torch.einsum("lstk,ste->lske", role_vectors, fillers).flatten(2)
        return torch.baddbmm(self.bias, bindings, self.weights)


def _initial_roles(n_roles: int, role_size: int, seed: int) -> Tensor:
    """Similar role vectors, so that a role with few examples behaves like the others."""
    generator = torch.Generator().manual_seed(seed)
    common = torch.randn(1, role_size, generator=generator)
    return common + ROLE_STD * torch.randn(n_roles, role_size, generator=generator)


def fit_decomposition(
    table: Array,
    train: FillerRoleSequences,
    targets: Array,
    validation: FillerRoleSequences,
    validation_targets: Array,
    *,
    n_roles: int,
    role_size: int = 6,
    seeds: tuple[int, ...] = (0,),
    epochs: int = 100,
    patience: int = 10,
    learning_rate: float = 1e-3,
    batch_size: int = 32,
) -> TensorProductDecomposition:
    """Fit (target, sequence, width) vectors by Adam on the squared error, each target with its best validation epoch.

    Targets should have mean zero: a target that never improves on the validation data keeps the prediction zero.
    Training stops if no target has improved for `patience` epochs.
    """
    train_targets, watched = (torch.from_numpy(np.asarray(part, np.float32)) for part in (targets, validation_targets))
    model = TensorProductDecomposition(table, n_roles, targets.shape[2], len(targets), role_size=role_size, seeds=seeds)
    best = {name: value.detach().clone() for name, value in model.named_parameters()}
    best_losses = watched.square().mean((1, 2))
    optimiser = torch.optim.Adam(model.parameters(), lr=learning_rate, eps=ADAM_EPSILON)
    generator = np.random.default_rng(seeds[0])
    epochs_without_improvement = 0
    for _ in range(epochs):
        for rows in np.array_split(generator.permutation(len(train)), max(1, len(train) // batch_size)):
            optimiser.zero_grad()
            # Summed over targets, because each target has its own parameters.
            ((model(train[rows]) - train_targets[:, rows]) ** 2).mean((1, 2)).sum().backward()
            optimiser.step()
        with torch.no_grad():
            losses = ((model(validation) - watched) ** 2).mean((1, 2))
            is_better = losses < best_losses
            best_losses = torch.where(is_better, losses, best_losses)
            for name, value in model.named_parameters():
                best[name][is_better] = value.detach()[is_better]
        epochs_without_improvement = 0 if is_better.any() else epochs_without_improvement + 1
        if epochs_without_improvement >= patience:
            break
    model.load_state_dict(best, strict=False)
    return model


def reconstruct(model: TensorProductDecomposition, sequences: FillerRoleSequences, *, batch_size: int = 256) -> Array:
    """(target, sequence, width) predicted vectors."""
    batches = np.array_split(np.arange(len(sequences)), max(1, -(-len(sequences) // batch_size)))
    with torch.no_grad():
        return torch.cat([model(sequences[rows]) for rows in batches], 1).numpy()
