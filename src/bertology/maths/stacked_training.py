"""Small networks over sequences, many trained at once: the same network with other examples, seeds and rates; no BERT.

Parameters have the models along their first axis, so that one product serves all of them. Each model draws batches from
its own examples, has its own rate, and keeps the parameters that suited what it holds out best.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

Parameters = dict[str, Tensor]

LOOKS = 10
"""How often on the way what is held out is looked at."""

BATCH, AT_ONCE = 16, 64
MOMENTS = (0.9, 0.999)


@dataclass(frozen=True)
class Sequences:
    """Sequences of vectors end to end after a row of zeros for padding: (1 + word, width); their lengths are > 0."""

    vectors: Tensor
    lengths: Tensor

    @property
    def starts(self) -> Tensor:
        """(sequence,) the row of each sequence's first vector."""
        return 1 + self.lengths.cumsum(0) - self.lengths

    def rows(self, places: Tensor) -> tuple[Tensor, Tensor]:
        """(..., step) the rows of the sequences at these places, 0 where there is none, and which are there."""
        lengths = self.lengths[places]
        step = torch.arange(int(lengths.max()))
        real = step < lengths[..., None]
        return torch.where(real, self.starts[places][..., None] + step, 0), real


class Network(Protocol):
    """A network with the models along the first axis of everything."""

    def start(self, width: int, seed: int) -> Parameters:
        """The first parameters of one model."""
        ...

    def losses(
        self, parameters: Parameters, x: Tensor, real: Tensor, labels: Tensor, noise: torch.Generator | None
    ) -> Tensor:
        """(model, batch) the loss of each (model, batch, step, width) sequence; with `noise` under dropout.

        Labels are (model, batch), or (model, batch, step) where `by_step`.
        """
        ...

    def answers(self, parameters: Parameters, x: Tensor, real: Tensor) -> Tensor:
        """(model, batch) or (model, batch, step) the labels."""
        ...

    @property
    def by_step(self) -> bool:
        """Whether every step has a label."""
        ...


@dataclass(frozen=True)
class Lot:
    """What one model learns from and holds out (places of sequences), its seed and its rate."""

    trained: Sequence[int]
    held: Sequence[int]
    seed: int
    rate: float


def train(
    network: Network, given: Sequences, labels: Tensor, lots: Sequence[Lot], steps: int
) -> tuple[Parameters, Tensor]:
    """Each model's parameters with the least loss on what it holds out, and (model,) that loss.

    Adam (Kingma & Ba 2015) with batches of 16; the rate falls to 0 in a straight line.
    """
    width = given.vectors.shape[1]
    each = [network.start(width, lot.seed) for lot in lots]
    place = {name: torch.stack([one[name] for one in each]).requires_grad_() for name in each[0]}
    first, second = ({name: torch.zeros_like(value) for name, value in place.items()} for _ in range(2))
    rates = torch.tensor([lot.rate for lot in lots])
    noise = torch.Generator().manual_seed(lots[0].seed)
    batches = [_drawn(lot) for lot in lots]
    best = torch.full((len(lots),), torch.inf)
    kept = {name: value.detach().clone() for name, value in place.items()}
    looks = {round(steps * (look + 1) / LOOKS) for look in range(LOOKS)}
    for step in range(1, steps + 1):
        places = torch.tensor([next(batch) for batch in batches])
        loss = _losses(network, place, given, labels, places, noise).mean(1)
        slopes = torch.autograd.grad(loss.sum(), list(place.values()))
        with torch.no_grad():
            rate = rates * (1 - (step - 1) / steps)
            for (name, value), slope in zip(place.items(), slopes, strict=True):
                value -= _along(rate, value) * _adam(first[name], second[name], slope, step)
        if step in looks:
            watched = _watched(network, place, given, labels, lots)
            better = watched < best
            best = torch.minimum(watched, best)
            for name, value in place.items():
                kept[name] = torch.where(_along(better, value), value.detach(), kept[name])
    return kept, best


def answers(network: Network, parameters: Parameters, given: Sequences, places: Sequence[int]) -> list[Tensor]:
    """(model,) or (model, step) labels of each of the sequences at these places."""
    found: list[Tensor] = []
    models = len(next(iter(parameters.values())))
    for some in torch.tensor(places).split(AT_ONCE):
        rows, real = given.rows(some.expand(models, -1))
        with torch.inference_mode():
            said = network.answers(parameters, given.vectors[rows], real)
        for number, place in enumerate(some.tolist()):
            found.append(said[:, number, : int(given.lengths[place])] if network.by_step else said[:, number])
    return found


def _losses(
    network: Network,
    parameters: Parameters,
    given: Sequences,
    labels: Tensor,
    places: Tensor,
    noise: torch.Generator | None = None,
) -> Tensor:
    rows, real = given.rows(places)
    own = labels[rows] if network.by_step else labels[places]
    return network.losses(parameters, given.vectors[rows], real, own, noise)


def _watched(network: Network, parameters: Parameters, given: Sequences, labels: Tensor, lots: Sequence[Lot]) -> Tensor:
    """(model,) the mean loss of what each holds out; a model with less than others counts some of it twice."""
    most = max(len(lot.held) for lot in lots)
    places = torch.tensor([[lot.held[number % len(lot.held)] for number in range(most)] for lot in lots])
    with torch.inference_mode():
        parts = [_losses(network, parameters, given, labels, some) for some in places.split(AT_ONCE, 1)]
    return torch.cat(parts, 1).mean(1)


def _drawn(lot: Lot) -> Iterator[list[int]]:
    """Batches of the examples in one random order after the other."""
    generator = torch.Generator().manual_seed(lot.seed)
    waiting: list[int] = []
    while True:
        while len(waiting) < BATCH:
            waiting += [lot.trained[place] for place in torch.randperm(len(lot.trained), generator=generator).tolist()]
        yield waiting[:BATCH]
        del waiting[:BATCH]


def _adam(first: Tensor, second: Tensor, slope: Tensor, step: int) -> Tensor:
    """The direction of one step; the two moments are brought up to date."""
    first.lerp_(slope, 1 - MOMENTS[0])
    second.lerp_(slope.square(), 1 - MOMENTS[1])
    mean, square = (moment / (1 - decay**step) for moment, decay in zip((first, second), MOMENTS, strict=True))
    return mean / (square.sqrt() + 1e-8)


def _along(values: Tensor, like: Tensor) -> Tensor:
    """(model,) values shaped so that they go along the first axis of `like`."""
    return values.reshape(-1, *[1] * (like.ndim - 1))


def weights(generator: torch.Generator, *shape: int) -> Tensor:
    """Normal numbers whose spread is one over the root of the first size."""
    return torch.randn(shape, generator=generator) * shape[0] ** -0.5


def dropped(values: Tensor, share: float, noise: torch.Generator | None) -> Tensor:
    """The values with a share of them set to 0 and the rest scaled up; as they are without noise."""
    if noise is None:
        return values
    return values * (torch.rand(values.shape, generator=noise) >= share) / (1 - share)
