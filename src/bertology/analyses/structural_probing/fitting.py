"""Fit many structural probes at once, each with its own learning rate, best epoch and early stopping.

Probes of different layers, kinds, ranks and seeds see the same batches and do not interact: fitted alone, each gives
the same result. A probe that has stopped is no longer computed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from bertology.analyses.structural_probing.probe import (
    ProbeSpec,
    StructuralProbes,
    initial_weights,
    losses,
    probe_gradients,
)
from bertology.analyses.structural_probing.tree_batch import TreeBatch, select_layers
from bertology.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor

ADAM_BETAS = (0.9, 0.999)
ADAM_EPS = 1e-8
MIN_IMPROVEMENT = 1e-4
"""A loss must fall by more than this for a new best epoch."""

PATIENCE = 4
LEARNING_RATE_FACTOR = 0.1
MAX_REMAINING_CHANGE = 2.0
"""All epochs after a drop of the learning rate change the loss at most by this multiple of the last change."""


@dataclass(frozen=True)
class FitSchedule:
    """Training schedule: the learning rate drops to a tenth after an epoch without a new lowest validation loss.

    A probe stops if its best epoch is more than four epochs ago, or earlier if that epoch is certain to stay the best:
    the learning rate has dropped, and the loss exceeds its best by more than twice the mean change of the validation
    sentences' losses in the last epoch. `reset_moments` resets Adam's moments when the learning rate drops, as in the
    paper; the released code keeps them.
    """

    epochs: int = 40
    learning_rate: float = 1e-3
    reset_moments: bool = True
    seed: int = 0


def fit_structural_probes(
    batches: Sequence[TreeBatch],
    validation_batches: Sequence[TreeBatch],
    specs: Sequence[ProbeSpec],
    schedule: FitSchedule,
    *,
    layers_per_chunk: int = 0,
) -> StructuralProbes:
    """Fit all probes in all layers and keep the weights of the epoch with the lowest validation loss.

    `layers_per_chunk` layers are computed at once (0: chosen by the device); it does not change the result.
    """
    states = batches[0].states
    n_layers = len(states)
    # A CPU's cache holds weights and moments of one layer, not of all; a GPU is fastest with all layers at once.
    layers_per_chunk = layers_per_chunk or (1 if states.device.type == "cpu" else n_layers)
    fits: list[_StructuralFit] = []
    for start in range(0, n_layers, layers_per_chunk):
        layers = range(n_layers)[start : start + layers_per_chunk]
        fits.append(
            _fit_layers(select_layers(batches, layers), select_layers(validation_batches, layers), specs, schedule)
        )
    weights = torch.cat([fit.best_weights for fit in fits])
    progress = [probe for fit in fits for probe in fit.progress]
    best_losses = torch.tensor([probe.best_loss for probe in progress]).view(n_layers, -1)
    best_epochs = torch.tensor([probe.best_epoch + 1 for probe in progress]).view(n_layers, -1)
    return StructuralProbes(tuple(specs), weights.transpose(1, 2).contiguous(), best_losses, best_epochs)


def _fit_layers(
    batches: Sequence[TreeBatch],
    validation_batches: Sequence[TreeBatch],
    specs: Sequence[ProbeSpec],
    schedule: FitSchedule,
) -> _StructuralFit:
    """Fit all probes in the layers of the batches."""
    states = batches[0].states
    fit = _StructuralFit(initial_weights(specs, len(states), states.shape[-1]).to(states.device), specs, schedule)
    generator = torch.Generator().manual_seed(schedule.seed)
    with torch.inference_mode():
        for epoch in range(schedule.epochs):
            if not fit.layers:
                break
            order = torch.randperm(len(batches), generator=generator).tolist()
            fit.train_epoch(batches[index] for index in order)
            fit.update_progress(epoch, fit.validation_losses(validation_batches))
    return fit


@dataclass
class _ProbeProgress:
    """Progress of one probe: learning rate, Adam steps since its moments were reset, and best epoch."""

    learning_rate: float
    steps: int = 0
    best_loss: float = float("inf")
    best_epoch: int = 0
    is_active: bool = True

    @property
    def step_group(self) -> tuple[bool, float, int]:
        """Adjacent probes with equal values take their Adam steps together."""
        return self.is_active, self.learning_rate, self.steps


@dataclass(frozen=True)
class _AdamGroup:
    """Column blocks with the same learning rate: their slices of the weights, moments and step counts."""

    learning_rate: float
    slices: list[tuple[int, slice]]
    weights: list[Tensor]
    moments: tuple[list[Tensor], list[Tensor]]
    steps: list[Tensor]

    def step(self, gradient: Tensor) -> None:
        """One Adam step on the group's slices of the gradient of all active weights."""
        from torch.optim.adam import adam  # the function is not an attribute of torch.optim

        adam(
            self.weights,
            [gradient[layer_columns] for layer_columns in self.slices],
            *self.moments,
            [],
            self.steps,
            fused=True,
            amsgrad=False,
            beta1=ADAM_BETAS[0],
            beta2=ADAM_BETAS[1],
            lr=self.learning_rate,
            weight_decay=0.0,
            eps=ADAM_EPS,
            maximize=False,
        )


class _StructuralFit:
    """State of the fit of some layers: the probes still active, and the best weights of all probes.

    Weights, moments and best weights are (layer, column, width), so that each probe has a contiguous block.
    """

    def __init__(self, weights: Tensor, specs: Sequence[ProbeSpec], schedule: FitSchedule) -> None:
        """`weights` are (layer, width, column)."""
        self.schedule = schedule
        self.layers = list(range(len(weights)))
        self.spec_indices = list(range(len(specs)))
        self.active_specs = tuple(specs)
        self.progress = [_ProbeProgress(schedule.learning_rate) for _ in self.layers for _ in specs]
        self.weights = weights.transpose(1, 2).contiguous()
        self.moments = torch.zeros_like(self.weights), torch.zeros_like(self.weights)
        self.best_weights = self.weights.clone()
        self.best_blocks = _split_by_probe(self.best_weights, specs)
        self.previous_losses = torch.tensor(torch.inf)
        self._regroup()

    def train_epoch(self, batches: Iterable[TreeBatch]) -> None:
        """One Adam step per batch, each probe with its own learning rate and step count."""
        n_batches = 0
        for batch in batches:
            n_batches += 1
            gradient = probe_gradients(
                self.weights.transpose(1, 2), self.active_specs, self._select_active_layers(batch)
            ).transpose(1, 2)
            for group in self.adam_groups:
                group.step(gradient)
        for probe in self.progress:
            probe.steps += n_batches

    def validation_losses(self, validation_batches: Sequence[TreeBatch]) -> Tensor:
        """(layer, probe, sentence) losses of the validation sentences."""
        weights = self.weights.transpose(1, 2)
        return torch.cat(
            [losses(weights, self.active_specs, self._select_active_layers(batch)) for batch in validation_batches], -1
        ).cpu()

    def _select_active_layers(self, batch: TreeBatch) -> TreeBatch:
        return batch if len(self.layers) == len(batch.states) else batch.select_layers(self.layers)

    def update_progress(self, epoch: int, validation_losses: Tensor) -> None:
        """Keep better weights, lower the learning rate of worse probes, and stop probes without improvement.

        `validation_losses` are (layer, probe, sentence).
        """
        changes = (validation_losses - self.previous_losses).abs().mean(-1).flatten().tolist()
        self.previous_losses = validation_losses
        needs_regrouping = False
        mean_losses = validation_losses.mean(-1).flatten().tolist()
        for index, (loss, change) in enumerate(zip(mean_losses, changes, strict=True)):
            probe = self.progress[self.probe_indices[index]]
            if not probe.is_active:
                continue
            is_worse, is_better = not loss < probe.best_loss, loss < probe.best_loss - MIN_IMPROVEMENT
            cannot_improve = is_worse and loss - MAX_REMAINING_CHANGE * change > probe.best_loss - MIN_IMPROVEMENT
            if is_better:
                probe.best_loss, probe.best_epoch = loss, epoch
                self.best_blocks[self.probe_indices[index]].copy_(self.blocks[index])
            if is_worse:
                probe.learning_rate *= LEARNING_RATE_FACTOR
                if self.schedule.reset_moments:
                    self._reset_moments(index)
            probe.is_active = epoch - probe.best_epoch <= PATIENCE and not cannot_improve
            needs_regrouping |= is_worse or not probe.is_active
        if needs_regrouping:
            self._drop_finished()

    def _reset_moments(self, index: int) -> None:
        """Set the Adam moments of one active probe to zero."""
        self.progress[self.probe_indices[index]].steps = 0
        for moment in self.moments:
            _split_by_probe(moment, self.active_specs)[index].zero_()

    def _drop_finished(self) -> None:
        """Drop layers and specs without active probes; a single stopped probe among active ones stays."""
        is_active = [self.progress[index].is_active for index in self.probe_indices]
        n_specs = len(self.spec_indices)
        layers = [layer for layer in range(len(self.layers)) if any(is_active[layer * n_specs :][:n_specs])]
        specs = [spec for spec in range(n_specs) if any(is_active[spec::n_specs])]
        if len(layers) < len(self.layers) or len(specs) < n_specs:
            self._keep_only(layers, specs)
        self._regroup()

    def _keep_only(self, layers: list[int], specs: list[int]) -> None:
        """Keep these of the active layers and specs."""
        owners = [index for index, spec in enumerate(self.active_specs) for _ in range(spec.rank)]
        columns = [column for column, owner in enumerate(owners) if owner in specs]
        self.weights, first_moments, second_moments = (
            tensor[layers][:, columns].contiguous() for tensor in (self.weights, *self.moments)
        )
        self.moments = first_moments, second_moments
        self.previous_losses = self.previous_losses[layers][:, specs]
        self.layers = [self.layers[index] for index in layers]
        self.spec_indices = [self.spec_indices[index] for index in specs]
        self.active_specs = tuple(self.active_specs[index] for index in specs)

    def _regroup(self) -> None:
        """Update the indices of the active probes among all, and their groups of Adam steps."""
        n_specs = len(self.best_blocks) // len(self.best_weights)
        self.probe_indices = [layer * n_specs + spec for layer in self.layers for spec in self.spec_indices]
        self.blocks = _split_by_probe(self.weights, self.active_specs)
        blocks_by_rate: dict[float, list[tuple[tuple[int, slice], int]]] = {}
        for layer in range(len(self.layers)):
            for columns, (is_active, learning_rate, steps) in self._column_blocks(layer):
                if is_active:
                    blocks_by_rate.setdefault(learning_rate, []).append(((layer, columns), steps))
        self.adam_groups = [self._adam_group(rate, blocks) for rate, blocks in blocks_by_rate.items()]

    def _column_blocks(self, layer: int) -> Iterator[tuple[slice, tuple[bool, float, int]]]:
        """The columns of one active layer; adjacent probes of equal step group form one block."""
        indices = self.probe_indices[layer * len(self.spec_indices) :][: len(self.spec_indices)]
        probes = zip((self.progress[index] for index in indices), self.active_specs, strict=True)
        column = 0
        for step_group, members in groupby(probes, lambda probe: probe[0].step_group):
            width = sum(spec.rank for _, spec in members)
            yield slice(column, column + width), step_group
            column += width

    def _adam_group(self, learning_rate: float, blocks: Sequence[tuple[tuple[int, slice], int]]) -> _AdamGroup:
        """The Adam steps of column blocks, each with its number of steps so far."""
        slices = [layer_columns for layer_columns, _ in blocks]
        weights, first, second = (
            [tensor[layer_columns] for layer_columns in slices] for tensor in (self.weights, *self.moments)
        )
        steps = torch.tensor([float(steps) for _, steps in blocks], device=self.weights.device)
        return _AdamGroup(learning_rate, slices, weights, (first, second), list(steps.unbind()))


def _split_by_probe(tensor: Tensor, specs: Sequence[ProbeSpec]) -> list[Tensor]:
    """(column, width) blocks of each probe, layer by layer."""
    ranks = [spec.rank for spec in specs]
    return [block for layer in tensor.unbind() for block in layer.split(ranks)]
