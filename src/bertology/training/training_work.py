"""The work of a fine-tuning, estimated before it starts from a measured forward pass over its examples."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example
from bertology.encoder.encoder import TaskEncoder
from bertology.recording.plan import RecordingConfig
from bertology.recording.recording_work import GRADIENT_PASSES, estimate_recording
from bertology.recording.sites import resolve_sites
from bertology.training.data_split import DataSplit
from bertology.training.job import TrainingJob
from bertology.work_estimate import SMALL_BYTES, WorkEstimate

COPIES = 5
"""Copies of the weights on the disk: the weights and two moments of the last step, the best epoch and the model."""


def estimate_training(
    encoder: TaskEncoder, job: TrainingJob, split: DataSplit, folder: Path, *, keep_checkpoints: bool
) -> WorkEstimate:
    """Seconds of all epochs on this machine, and the bytes of checkpoints that are not in the folder yet."""
    training, validation = (_pass_seconds(encoder, job, examples) for examples in (split.train, split.validation))
    n_copies = COPIES + (job.config.epochs if keep_checkpoints else 0)
    n_weights = sum(weights.numel() for weights in encoder.model.parameters())
    written = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    n_bytes = max(0, 4 * n_copies * n_weights - written)
    return WorkEstimate(
        job.config.epochs * (GRADIENT_PASSES * training + validation), n_bytes if n_bytes > SMALL_BYTES else 0
    )


def _pass_seconds(encoder: TaskEncoder, job: TrainingJob, examples: Sequence[Example]) -> float:
    config = RecordingConfig(overflow="truncate", max_length=job.sequence_length(encoder))
    return estimate_recording(encoder, Corpus(tuple(examples)), resolve_sites(["hidden"]), config).seconds
