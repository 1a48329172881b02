"""One training job: build the model, encode the examples, train and score."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bertology.corpus.example import Example
from bertology.encoder.encoder import TaskEncoder
from bertology.encoder.layer_variants import LayerVariant
from bertology.encoder.task_heads import add_task_head, save_pretrained
from bertology.errors import Refusal
from bertology.estimates.metrics import MetricEstimates
from bertology.lazy import torch
from bertology.machine_errors import raise_machine_error
from bertology.progress import ProgressCallback
from bertology.training.biaffine_parser import BiaffineParser
from bertology.training.checkpointer import Checkpointer
from bertology.training.encoded_examples import EncodedDataset
from bertology.training.loop import TrainingConfig, TrainingHistory, train
from bertology.training.tasks.task import Task
from bertology.training.trainable_model import TrainableModel

PARSER_LR_MULTIPLIER = 10.0
"""Learning rate of a parser, which starts from random weights, relative to the encoder's."""


@dataclass(frozen=True)
class TrainingJob:
    """A task, its training examples, and the configuration."""

    task: Task
    examples: Sequence[Example]
    config: TrainingConfig
    variant: LayerVariant
    max_length: int | None = None

    def sequence_length(self, encoder: TaskEncoder) -> int:
        """Maximum length of an encoded sequence, in tokens."""
        return min(encoder.max_length, self.max_length or encoder.max_length)

    def encode(self, encoder: TaskEncoder, examples: Sequence[Example]) -> EncodedDataset:
        """Encode examples; refused if none fits the model."""
        dataset = self.task.encode(examples, encoder.tokenise, max_length=self.sequence_length(encoder))
        if not dataset.encoded:
            raise Refusal(
                f"None of {len(examples)} examples fits into {self.sequence_length(encoder)} tokens",
                "shorter examples",
                "Choose a model that accepts longer inputs, or shorten the texts",
            )
        return dataset


def build_model(encoder: TaskEncoder, job: TrainingJob) -> TrainableModel:
    """The model before training: the encoder, changed by the variant, with a new task head or parser."""
    task, seed = job.task, job.config.seed
    with_head = add_task_head(encoder, task.task_head, task.labels, variant=job.variant, seed=seed)
    if task.task_head != "none":
        return TrainableModel(with_head)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        parser = BiaffineParser(with_head.width, len(task.labels))
    return TrainableModel(with_head, parser.to(with_head.device))


def train_model(
    model: TrainableModel,
    job: TrainingJob,
    train_data: EncodedDataset,
    validation_data: EncodedDataset | None,
    *,
    checkpointer: Checkpointer | None = None,
    progress: ProgressCallback | None = None,
    after_epoch: Callable[[TrainingHistory, int], None] | None = None,
) -> TrainingHistory:
    """Train the model in place; validation data select the epoch, without them it is the last."""
    task = job.task

    def score() -> float:
        assert validation_data is not None, "called only with validation data"
        return task.count_correct(validation_data.examples, task.predict(model, validation_data)).score

    return train(
        model.module,
        lambda batch: task.loss(model, batch),
        train_data.encoded,
        score if validation_data is not None else None,
        job.config,
        lr_multipliers={"parser.": PARSER_LR_MULTIPLIER},
        checkpointer=checkpointer,
        progress=progress,
        after_epoch=after_epoch,
    )


@dataclass(frozen=True)
class TaskScores:
    """Metrics of a model, and of baselines without a model."""

    scores: MetricEstimates
    baselines: dict[str, MetricEstimates]


def score_task(
    task: Task, model: TrainableModel, dataset: EncodedDataset, train_examples: Sequence[Example]
) -> TaskScores:
    """Evaluate the model and the baselines on a dataset."""
    baselines = task.baseline_predictions(train_examples, dataset.examples)
    return TaskScores(
        task.metrics(dataset.examples, task.predict(model, dataset)),
        {name: task.metrics(dataset.examples, baseline) for name, baseline in baselines.items()},
    )


def save_model(model: TrainableModel, folder: Path) -> None:
    """Write the model in Hugging Face format, with its parser if it has one."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        save_pretrained(model.encoder, folder)
        if model.parser is not None:
            model.parser.save(folder)
    except Exception as error:  # transformers and safetensors tell of a full disk each in its own way
        raise_machine_error(error)
        raise
