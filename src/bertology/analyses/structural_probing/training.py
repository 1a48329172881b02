"""Configuration and data of structural probes, from the options of an analysis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from annotated_types import Ge

from bertology.analyses.probing.dataset import WORD_SITE
from bertology.analyses.probing.options import EpochsOption, Layer, LearningRateOption, resolve_layer
from bertology.analyses.probing.train_test_split import TrainTestSplit
from bertology.analyses.structural_probing.dataset import TreeBatches, TreeDataset, tree_dataset
from bertology.analyses.structural_probing.fitting import FitSchedule, fit_structural_probes
from bertology.analyses.structural_probing.probe import StructuralKind, StructuralProbes, probe_specs
from bertology.encoder.encoder import Encoder
from bertology.errors import Refusal
from bertology.number_ranges import LAYER, SIZE
from bertology.recording.recording import Recording
from bertology.recording.sites import RAW_SITES


@dataclass(frozen=True)
class StructuralProbeConfig:
    """Options of structural probes: the layer to show, the rank of the probes, and how they are fitted."""

    layer: Annotated[
        Layer,
        LAYER,
        "Layer to show, where only one is; 0: embeddings, negative: counted from the last (-1); `auto`: two thirds of "
        "the depth.",
    ] = "auto"
    rank: Annotated[
        int | Literal["full"], SIZE, "Rank of the probe; `full`: the model's width, as in the paper's tables."
    ] = 64
    float16: Annotated[bool, "Store word vectors of --train-corpus in float16, which halves memory."] = False
    epochs: EpochsOption = 40
    learning_rate: LearningRateOption = 0.01
    batch_size: Annotated[int, Ge(1), "Sentences per training batch."] = 20

    def layer_index(self, dataset: TreeDataset) -> int:
        """The index of the layer; `auto` is the peak of Hewitt & Manning's curve (8 of 12)."""
        n_layers = len(dataset.states[0])
        return resolve_layer(self.layer, n_layers, auto=round(2 / 3 * (n_layers - 1)))

    def probe_rank(self, dataset: TreeDataset) -> int:
        """The rank as a number, at most the width of the model."""
        width = dataset.states[0].shape[-1]
        return width if self.rank == "full" else min(self.rank, width)

    def fit(
        self,
        train: TreeDataset,
        kinds: Sequence[StructuralKind],
        ranks: Sequence[int],
        seeds: Sequence[int],
        *,
        device: str = "cpu",
        legacy: bool = False,
    ) -> StructuralProbes:
        """Fit probes of every kind, rank and seed in every layer at once.

        `legacy` keeps Adam's moments when the learning rate drops.
        """
        schedule = FitSchedule(self.epochs, self.learning_rate, reset_moments=not legacy, seed=seeds[0])
        batches, validation_batches = (
            TreeBatches(part, self.batch_size, device) for part in train.train_validation_split(seeds[0])
        )
        return fit_structural_probes(batches, validation_batches, probe_specs(kinds, ranks, seeds), schedule)


def split_trees(
    recording: Recording,
    encoder: Encoder | None,
    split: TrainTestSplit,
    *,
    analysis_name: str,
    half_precision: bool = False,
) -> tuple[TreeDataset, TreeDataset]:
    """Training and test sentences with trees; refused if there are too few."""
    site = RAW_SITES[WORD_SITE]
    data = split.split(recording, encoder, (site,), analysis_name=analysis_name, half_precision=half_precision)
    train, test = tree_dataset(*data.train), tree_dataset(*data.test)
    train = replace(train, skipped={**train.skipped, **data.left_out})
    if len(train.inputs) < 2 or not test.inputs:
        skipped = {f"{reason}: {count}" for dataset in (train, test) for reason, count in dataset.skipped.items()}
        raise Refusal(
            f"{recording.corpus.name} has {len(train.inputs)} training and {len(test.inputs)} test sentences with a "
            "usable tree" + (f" (skipped: {', '.join(sorted(skipped))})" if skipped else ""),
            "at least two training sentences and one test sentence of two words or more",
            "Use a larger treebank, or name another with --train-corpus",
        )
    return train, test
