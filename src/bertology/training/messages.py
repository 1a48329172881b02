"""Progress messages of a fine-tuning run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from bertology.encoder.encoder import TaskEncoder
from bertology.encoder.layer_variants import LayerVariant
from bertology.errors import count_noun
from bertology.training.data_split import DataSplit
from bertology.training.encoded_examples import EncodedDataset
from bertology.training.job import TaskScores, TrainingJob
from bertology.training.loop import TrainingHistory

MAX_LABELS = 6
SPLIT_DESCRIPTIONS = {
    "validation": "validation (also used to select the epoch)",
    "test": "test (not used in training)",
}


def job_message(encoder: TaskEncoder, corpus_name: str, split: DataSplit, job: TrainingJob) -> str:
    """Model, task, data and configuration in one line."""
    labels = ""
    if job.task.name in {"sentence", "pair"}:
        counts = Counter(str(example.label) for example in split.train).most_common()
        shown = [f"{label} ({100 * count / len(split.train):.0f} %)" for label, count in counts[:MAX_LABELS]]
        labels = f"; labels {', '.join(shown)}" + (" ..." if len(counts) > MAX_LABELS else "")
    elif job.task.labels:
        labels = f"; {len(job.task.labels)} labels"
    grouping = "" if split.grouped_by == "corpus" else f", no {split.grouped_by} in both"
    config = job.config
    return (
        f"Fine-tuning {encoder.name}{_describe_variant(job.variant)} on the task {job.task.name} of {corpus_name}: "
        f"{len(split.train)} training and {count_noun(len(split.validation), 'validation examples')}{grouping}{labels}"
        f"; at most {count_noun(config.epochs, 'epochs')}, batch size {config.batch_size}, learning "
        f"rate {config.learning_rate:g}, {config.dtype}"
    )


def truncation_messages(
    job: TrainingJob, encoder: TaskEncoder, datasets: Mapping[str, EncodedDataset]
) -> Iterator[str]:
    """One line for each dataset with examples too long for the model."""
    for name, dataset in datasets.items():
        if dataset.n_truncated:
            yield (
                f"{count_noun(dataset.n_truncated, f'{name} examples')} longer than {job.sequence_length(encoder)} "
                "tokens: truncated or skipped"
            )


def epoch_message(history: TrainingHistory, job: TrainingJob) -> str:
    """Loss and validation score of the last epoch."""
    log = history.epochs[-1]
    best = " (best so far)" if history.best_epoch == log["epoch"] else ""
    return (
        f"Epoch {log['epoch']:g} of {job.config.epochs}: loss {log['loss']:.3f}, validation {job.task.metric} "
        f"{log['score']:.3f}{best}, {log['train_seconds'] + log['validation_seconds']:.0f} s"
    )


def score_message(split: str, task_scores: TaskScores, metric: str) -> str:
    """The model's metrics on a split, and the baselines."""
    scores = ", ".join(f"{name} {estimate}" for name, estimate in task_scores.scores.items())
    baselines = ", ".join(f"{name} {metrics[metric]}" for name, metrics in task_scores.baselines.items())
    n = task_scores.scores[metric].n
    return f"{SPLIT_DESCRIPTIONS[split].capitalize()}, n = {n}: {scores}; baselines ({metric}): {baselines}"


def _describe_variant(variant: LayerVariant) -> str:
    changes: list[str] = []
    if variant.random_weights:
        changes.append("random weights")
    if variant.kept_layers is not None:
        changes.append(f"first {count_noun(variant.kept_layers, 'layers')} only")
    if variant.reinitialised_layers:
        changes.append(f"last {count_noun(variant.reinitialised_layers, 'layers')} re-initialised")
    if variant.frozen_layers is not None:
        changes.append(f"embeddings and first {count_noun(variant.frozen_layers, 'layers')} frozen")
    return f" ({', '.join(changes)})" if changes else ""
