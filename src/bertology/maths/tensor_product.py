"""Tensor product decomposition: vectors as sums of fillers bound to roles (McCoy et al. 2019); no BERT here.

A sequence is a list of fillers (fixed vectors) in roles (numbers). Its vector is approximated by W vec(sum over the
sequence of filler x role vector) + b, with learned role vectors and a learned W, into which any linear map of the
fillers is absorbed. Many targets of the same sequences (the layers of a model, several seeds) are fitted together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.integer[Any]]

NOTHING = -1
"""The role of padding."""
NEAR = 0.1
"""How far apart role vectors are at first; their common part has a length of about 1 a component."""


@dataclass(frozen=True)
class Sequences:
    """(sequence, place) fillers by their row in a table, and roles, `NOTHING` where a sequence has ended."""

    fillers: Ints
    roles: Ints

    def __len__(self) -> int:
        return len(self.roles)

    def __getitem__(self, rows: Ints) -> Sequences:
        """Some of the sequences, cut to the longest of them."""
        longest = max(1, int((self.roles[rows] != NOTHING).sum(1).max(initial=1)))
        return Sequences(self.fillers[rows, :longest], self.roles[rows, :longest])


class TensorProducts(nn.Module):
    """One decomposition a target: role vectors (target, role, size) and a map (target, size x filler, width)."""

    def __init__(
        self, table: Floats, roles: int, width: int, targets: int, *, size: int, seeds: tuple[int, ...]
    ) -> None:
        """As many role vectors of a `size` as there are roles; target i starts from the seed i modulo their number."""
        super().__init__()
        self.table = nn.Buffer(torch.from_numpy(np.asarray(table, np.float32)))
        drawn = [_first_roles(roles, size, seed) for seed in seeds]
        self.roles = nn.Parameter(torch.stack(drawn * (targets // len(seeds))))
        # Zeros: before it has learned anything it predicts the bias, whatever the sequence.
        self.weights = nn.Parameter(torch.zeros(targets, size * table.shape[1], width))
        self.bias = nn.Parameter(torch.zeros(targets, 1, width))

    def forward(self, sequences: Sequences) -> Tensor:
        """(target, sequence, width)."""
        roles = torch.from_numpy(np.asarray(sequences.roles, np.int64))
        there = (roles != NOTHING)[None, :, :, None]
        fillers = self.table[torch.from_numpy(np.asarray(sequences.fillers, np.int64))]
        vectors = self.roles[:, roles.clamp(min=0)] * there
        bound = torch.einsum("lstk,ste->lske", vectors, fillers).flatten(2)
        return torch.baddbmm(self.bias, bound, self.weights)


def _first_roles(roles: int, size: int, seed: int) -> Tensor:
    """Vectors near each other: a role of which there are few examples then does as the others do."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(1, size, generator=generator) + NEAR * torch.randn(roles, size, generator=generator)


def fit(
    table: Floats,
    trained: Sequences,
    targets: Floats,
    held: Sequences,
    held_targets: Floats,
    *,
    roles: int,
    size: int = 6,
    seeds: tuple[int, ...] = (0,),
    epochs: int = 100,
    patience: int = 10,
    rate: float = 1e-3,
    batch: int = 32,
) -> TensorProducts:
    """Fit (target, sequence, width) by Adam on the squared error; every target keeps what suits the held-out best.

    Targets should have a mean of zero: what does not suit the held-out at all stays at the prediction of zero. It ends
    no target has improved on what is held out for `patience` epochs.
    """
    wanted, watched = (torch.from_numpy(np.asarray(some, np.float32)) for some in (targets, held_targets))
    model = TensorProducts(table, roles, targets.shape[2], len(targets), size=size, seeds=seeds)
    best = {name: value.detach().clone() for name, value in model.named_parameters()}
    lowest = watched.square().mean((1, 2))
    optimiser = torch.optim.Adam(model.parameters(), lr=rate)
    random = np.random.default_rng(seeds[0])
    waited = 0
    for _ in range(epochs):
        for rows in np.array_split(random.permutation(len(trained)), max(1, len(trained) // batch)):
            optimiser.zero_grad()
            # A sum over targets: each has its own parameters and must not be slowed down by the others.
            ((model(trained[rows]) - wanted[:, rows]) ** 2).mean((1, 2)).sum().backward()
            optimiser.step()
        with torch.no_grad():
            loss = ((model(held) - watched) ** 2).mean((1, 2))
            better = loss < lowest
            lowest = torch.where(better, loss, lowest)
            for name, value in model.named_parameters():
                best[name][better] = value.detach()[better]
        waited = 0 if better.any() else waited + 1
        if waited >= patience:
            break
    model.load_state_dict(best, strict=False)
    return model


@torch.no_grad()
def predict(model: TensorProducts, sequences: Sequences, *, at_once: int = 256) -> Floats:
    """(target, sequence, width)."""
    places = np.array_split(np.arange(len(sequences)), max(1, -(-len(sequences) // at_once)))
    return torch.cat([model(sequences[rows]) for rows in places], 1).numpy()
