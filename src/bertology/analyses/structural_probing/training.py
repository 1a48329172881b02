"""Configuration and data of structural probes, from the options of an analysis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from annotated_types import Ge

from bertology.analyses.probing.options import Layer, resolve_layer
from bertology.analyses.probing.train_test_split import TrainTestSplit
from bertology.analyses.structural_probing.dataset import (
    SITE,
    TreeBatches,
    TreeDataset,
    check_enough_trees,
    tree_dataset,
)
from bertology.analyses.structural_probing.fitting import FitSchedule, fit_structural_probes
from bertology.analyses.structural_probing.probe import StructuralKind, StructuralProbes, probe_specs
from bertology.encoder.encoder import Encoder
from bertology.recording.recording import Recording
from bertology.recording.sites import RAW_SITES

Rank = int | Literal["full"]
RankOption = Annotated[Rank, Ge(1), "Rank of the probe; `full`: the model's width, as in the paper's tables."]


@dataclass(frozen=True)
class StructuralProbeConfig:
    """How structural probes are fitted; `legacy` keeps Adam's moments when the learning rate drops."""

    n_seeds: int
    epochs: int
    learning_rate: float
    batch_size: int
    legacy: bool
    seed: int

    def fit(
        self, train: TreeDataset, kinds: Sequence[StructuralKind], ranks: Sequence[int], device: str
    ) -> StructuralProbes:
        """Fit probes of every kind, rank and seed in every layer at once."""
        specs = probe_specs(kinds, ranks, range(self.seed, self.seed + self.n_seeds))
        schedule = FitSchedule(self.epochs, self.learning_rate, reset_moments=not self.legacy, seed=self.seed)
        batches, validation_batches = (
            TreeBatches(part, self.batch_size, device) for part in train.train_validation_split(self.seed)
        )
        return fit_structural_probes(batches, validation_batches, specs, schedule)


def split_trees(
    recording: Recording, encoder: Encoder | None, split: TrainTestSplit, *, analysis_name: str
) -> tuple[TreeDataset, TreeDataset]:
    """Training and test sentences with trees; refused if there are too few."""
    parts = split.split(recording, encoder, (RAW_SITES[SITE],), analysis_name=analysis_name)
    train, test = (tree_dataset(part, indices) for part, indices in parts)
    if n_unused := split.n_unused(recording):
        train = replace(train, skipped={**train.skipped, "beyond --train-size": n_unused})
    check_enough_trees(train, test, recording.corpus.name)
    return train, test


def resolve_structural_layer(layer: Layer, n_layers: int) -> int:
    """The index of a layer; `auto` is at two thirds of the depth, the peak of Hewitt & Manning's curve (8 of 12)."""
    return resolve_layer(layer, n_layers, auto=round(2 / 3 * (n_layers - 1)))


def resolve_rank(rank: Rank, width: int) -> int:
    """The rank as a number, at most the width of the model."""
    return width if rank == "full" else min(rank, width)


def fit_device(encoder: Encoder | None) -> str:
    """The device of the model if there is one, else the CPU."""
    return "cpu" if encoder is None else encoder.device
