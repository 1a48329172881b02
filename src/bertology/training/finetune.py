"""`bertology.finetune`: fine-tune a model on a task and write it in Hugging Face format.

The directory contains config.json, model.safetensors and the tokeniser, for any tool that reads this format;
finetuning.json with configuration, data and scores, written last; and until then `training`, from which an interrupted
run resumes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

from annotated_types import Interval

from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example
from bertology.corpus.read import as_corpus
from bertology.encoder.encoder import TaskEncoder
from bertology.encoder.huggingface_loading import load_directory
from bertology.encoder.layer_variants import LayerVariant
from bertology.encoder.load import as_encoder, load
from bertology.errors import Refusal, unknown_name
from bertology.estimates.estimate import Estimate
from bertology.estimates.metrics import MetricEstimates
from bertology.number_ranges import COUNT, FRACTION, HOURS, MAX_COUNT
from bertology.progress import MessageCallback, ProgressCallback
from bertology.results.result import versions
from bertology.training.checkpointer import SAVE_SECONDS, Checkpointer
from bertology.training.data_split import DataSplit, content_hash, sort_by_content, split_examples
from bertology.training.encoded_examples import EncodedDataset
from bertology.training.job import TaskScores, TrainingJob, build_model, score_task, train_model
from bertology.training.loop import (
    TrainingConfig,
    TrainingDivergedError,
    TrainingHistory,
    resolve_config,
    restore_weights,
)
from bertology.training.messages import epoch_message, job_message, score_message, truncation_messages
from bertology.training.run_directory import LAST_GOOD_FOLDER, RunDirectory, save_atomically
from bertology.training.task_selection import TaskName, build_task, select_examples
from bertology.training.trainable_model import TrainableModel
from bertology.training.training_work import estimate_training
from bertology.work_estimate import MAX_HOURS, check_work

FORMAT = 2
VALIDATION_FRACTION = 0.1


@dataclass(frozen=True)
class FineTunedModel:
    """A fine-tuned encoder, its directory, and the content of finetuning.json."""

    encoder: TaskEncoder
    directory: Path
    metadata: Mapping[str, Any]

    def scores(self, split: str = "validation") -> dict[str, Estimate]:
        """Metrics on the `validation` or `test` examples."""
        by_split: Mapping[str, Any] = self.metadata["scores"]
        if split not in by_split:
            raise unknown_name("split with scores", split, by_split)
        return {name: Estimate(**_estimate_fields(value)) for name, value in by_split[split].items()}


def finetune(
    model: Any,
    data: Any,
    task: TaskName,
    output: str | Path,
    *,
    validation: Any = None,
    validation_fraction: Annotated[float, FRACTION] = VALIDATION_FRACTION,
    test: Any = None,
    config: TrainingConfig = TrainingConfig(),
    variant: LayerVariant = LayerVariant(),
    label: str | None = None,
    max_length: Annotated[int | None, COUNT] = None,
    keep_checkpoints: bool = False,
    device: str = "cpu",
    seconds: Annotated[float, Interval(ge=0, le=MAX_COUNT)] = SAVE_SECONDS,
    max_hours: Annotated[float | None, HOURS] = MAX_HOURS,
    progress: Callable[[str], ProgressCallback] | None = None,
    notify: MessageCallback | None = None,
) -> FineTunedModel:
    """Fine-tune a model on a task and write it to the directory `output`, described in the module's docstring.

    `model` is what `bertology.load` takes, `data`, `validation` and `test` what `bertology.corpus` or `read` take.
    The epoch with the best score on the `validation` corpus is kept; without one, `validation_fraction` of the data
    are held out by document or text. An interrupted run resumes from its last checkpoint (every epoch, and every
    `seconds` within one) and ends with the same weights. A loss that is not finite stops the run, and the last good
    weights are kept. `test` examples are scored at the end only. While another process writes the same run to `output`,
    this one waits; another run is refused. Training that is estimated to take longer than `max_hours`, or more space
    than there is, is refused before it starts (None: no bound).
    """
    notify = notify or _ignore_message
    encoder = _load_encoder(model, device)
    corpus, label = select_examples(as_corpus(data), task, label)
    split = _split_data(corpus, validation, validation_fraction, task, label)
    config = resolve_config(config, width=encoder.width, device=encoder.device)
    job = TrainingJob(build_task(task, split.train, label), split.train, config, variant, max_length)
    test_examples = None
    if test is not None:
        test_examples = sort_by_content(select_examples(as_corpus(test), task, label)[0].examples)
    key = _run_key(encoder, corpus, split, test_examples, job, label)
    run_directory = RunDirectory(Path(output), key)
    with run_directory.locked(notify):
        if (metadata := run_directory.finished_metadata()) is not None:
            notify(f"{output} is already finished; nothing to do")
            return FineTunedModel(load_finetuned(run_directory.folder, encoder.device), run_directory.folder, metadata)
        notify(job_message(encoder, corpus.name, split, job))
        if max_hours is not None:
            work = estimate_training(encoder, job, split, run_directory.folder, keep_checkpoints=keep_checkpoints)
            title = f"Fine-tuning {encoder.name} on {corpus.name}"
            check_work(title, work, max_hours, folder=run_directory.folder, notify=notify)
        trainable = build_model(encoder, job)
        train_data, validation_data = job.encode(encoder, split.train), job.encode(encoder, split.validation)
        for message in truncation_messages(job, encoder, {"training": train_data, "validation": validation_data}):
            notify(message)
        history = _train(
            trainable, job, train_data, validation_data, run_directory, keep_checkpoints, seconds, progress, notify
        )
        scores = {"validation": score_task(job.task, trainable, validation_data, train_data.examples)}
        if test_examples is not None:
            test_data = job.encode(encoder, test_examples)
            scores["test"] = score_task(job.task, trainable, test_data, train_data.examples)
        for name, split_scores in scores.items():
            notify(score_message(name, split_scores, job.task.metric))
        metadata = {
            **key,
            "n_truncated": {"train": train_data.n_truncated, "validation": validation_data.n_truncated},
            **asdict(history),
            **_scores_to_json(scores),
        }
        metadata = run_directory.finish(trainable, metadata)
        return FineTunedModel(load_finetuned(run_directory.folder, encoder.device), run_directory.folder, metadata)


def load_finetuned(folder: Path, device: str = "cpu") -> TaskEncoder:
    """Load the model in the directory of a finished run."""
    return load_directory(folder.resolve(), name=str(folder), device=device)


def _train(
    model: TrainableModel,
    job: TrainingJob,
    train_data: EncodedDataset,
    validation_data: EncodedDataset,
    run_directory: RunDirectory,
    keep_checkpoints: bool,
    seconds: float,
    progress: Callable[[str], ProgressCallback] | None,
    notify: MessageCallback,
) -> TrainingHistory:
    checkpointer = Checkpointer(run_directory.training, seconds)
    state = checkpointer.latest()
    if state is not None:
        notify(f"Resuming at step {state.step}")

    def after_epoch(history: TrainingHistory, step: int) -> None:
        notify(epoch_message(history, job))
        if keep_checkpoints:
            save_atomically(model, run_directory.folder / f"checkpoint-{step}")

    try:
        return train_model(
            model,
            job,
            train_data,
            validation_data,
            checkpointer=checkpointer,
            progress=progress("fine-tuning") if progress else None,
            after_epoch=after_epoch,
        )
    except TrainingDivergedError as error:
        raise _divergence_refusal(error, model, job, checkpointer, run_directory) from error


def _divergence_refusal(
    error: TrainingDivergedError,
    model: TrainableModel,
    job: TrainingJob,
    checkpointer: Checkpointer,
    run_directory: RunDirectory,
) -> Refusal:
    """Save the last good weights as a model, and report where they are."""
    state = checkpointer.latest()
    outcome = "No epoch was finished, so that no weights were kept"
    if state is not None:
        restore_weights(model.module, state.weights)
        save_atomically(model, run_directory.folder / LAST_GOOD_FOLDER)
        outcome = f"The weights of step {state.step} are in {run_directory.folder / LAST_GOOD_FOLDER}"
    run_directory.discard_training()
    return Refusal(
        f"Fine-tuning diverged: {error}. {outcome}",
        "a finite loss",
        f"Try a --learning-rate below {job.config.learning_rate:g}, or a higher --warmup-ratio",
    )


def _ignore_message(message: str) -> None:
    """Print nothing."""


def _load_encoder(model: Any, device: str) -> TaskEncoder:
    encoder = load(model, device=device) if isinstance(model, str) else as_encoder(model)
    if not isinstance(encoder, TaskEncoder):
        raise Refusal(f"{encoder.name} has static vectors, without weights to train", "a transformer", "Choose one")
    return encoder


def _split_data(
    corpus: Corpus,
    validation: Any,
    validation_fraction: float,
    task: str,
    label: str | None,
) -> DataSplit:
    if validation is None:
        # Independent of the training seed, so that runs with different seeds are comparable.
        return split_examples(corpus, validation_fraction, seed=0)
    held_out, _ = select_examples(as_corpus(validation), task, label)
    return DataSplit(sort_by_content(corpus.examples), sort_by_content(held_out.examples), "corpus")


def _run_key(
    encoder: TaskEncoder,
    corpus: Corpus,
    split: DataSplit,
    test_examples: Sequence[Example] | None,
    job: TrainingJob,
    label: str | None,
) -> dict[str, Any]:
    """Everything the weights and scores depend on."""
    return {
        "format": FORMAT,
        "task": job.task.name,
        "model": {"name": encoder.name, "fingerprint": encoder.fingerprint},
        "data": {
            "name": corpus.name,
            "train": _describe_examples(split.train),
            "validation": _describe_examples(split.validation),
            "test": None if test_examples is None else _describe_examples(test_examples),
            "grouped_by": split.grouped_by,
            "skipped": dict(Counter(skipped.reason for skipped in corpus.skipped)),
        },
        "label": label,
        "labels": list(job.task.labels),
        "metric": job.task.metric,
        "config": asdict(job.config),
        "variant": asdict(job.variant),
        "max_length": job.sequence_length(encoder),
        "versions": versions(),
    }


def _describe_examples(examples: Sequence[Example]) -> dict[str, Any]:
    return {"examples": len(examples), "fingerprint": content_hash(examples)}


def _scores_to_json(scores_by_split: Mapping[str, TaskScores]) -> dict[str, Any]:
    return {
        "scores": {split: _metrics_to_json(scores.scores) for split, scores in scores_by_split.items()},
        "baselines": {
            split: {name: _metrics_to_json(metrics) for name, metrics in scores.baselines.items()}
            for split, scores in scores_by_split.items()
        },
    }


def _metrics_to_json(metrics: MetricEstimates) -> dict[str, Any]:
    """Estimates as JSON objects, with null for NaN."""
    return {
        name: {field: None if value != value else value for field, value in asdict(estimate).items()}
        for name, estimate in metrics.items()
    }


def _estimate_fields(value: Mapping[str, Any]) -> dict[str, Any]:
    return {name: float("nan") if number is None else number for name, number in value.items()}
