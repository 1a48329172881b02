"""Fine-tune a model on one task many times: variants of the model, or variants of the training examples.

All runs are tested on the same examples after the last epoch; no epoch is selected.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, TypeVar

import numpy as np

from bertology.analyses.cache import AnalysisCache, step_progress
from bertology.analyses.evaluation.options import FinetuningOptions
from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example
from bertology.encoder.encoder import Encoder, TaskEncoder
from bertology.encoder.layer_variants import LayerVariant, transformer_layers
from bertology.errors import Refusal
from bertology.estimates.metrics import Counts
from bertology.progress import ProgressCallback
from bertology.recording.overflow import count_unusable, fit_examples
from bertology.training.data_split import DataSplit, sort_by_content, split_examples
from bertology.training.job import TrainingJob, build_model, train_model
from bertology.training.loop import TrainingConfig, resolve_config
from bertology.training.task_selection import build_task, infer_task, select_examples
from bertology.work_estimate import WorkEstimate, check_work

TEST_FRACTION = 0.25
COMPUTED_SECONDS = 0.05
"""A run that takes less was in the cache, or is too short to matter."""
Key = TypeVar("Key")


def cached_runs(
    cache: AnalysisCache, title: str, run: Callable[..., Any], arguments: Sequence[Mapping[str, Any]]
) -> list[Any]:
    """The result of a run for each of these arguments; finished runs are cached.

    The first run that is computed says how long all of them take, which is refused above the bound of the cache.
    """
    meter = cache.progress_meter(f"{title} ({len(arguments)} runs)")
    if cache.max_hours is None or cache.engine is not None:
        return cache.call_all(run, arguments, meter=meter, hand_on_progress=True)
    results: list[Any] = []
    is_measured = False
    for step, values in enumerate(arguments):
        start = perf_counter()
        results.append(cache.call(run, progress=step_progress(meter, step, len(arguments)), **values))
        seconds = perf_counter() - start
        if not is_measured and seconds >= COMPUTED_SECONDS:
            n_left, is_measured = len(arguments) - step - 1, True
            check_work(f"{title} {n_left} times more", WorkEstimate(n_left * seconds), cache.max_hours)
    return results


class FinetuningSweep:
    """Repeated fine-tuning on one task, with one split into training and test examples."""

    def __init__(
        self,
        encoder: Encoder,
        corpus: Corpus,
        cache: AnalysisCache,
        task: str,
        label: str,
        options: FinetuningOptions,
        *,
        analysis_name: str,
    ) -> None:
        """Select and split the examples; the task `auto` is what the corpus is annotated for."""
        if not isinstance(encoder, TaskEncoder):
            raise Refusal(
                f"{analysis_name} fine-tunes a model, and {encoder.name} has no transformer layers",
                "a transformer",
                "Choose another model",
            )
        if options.learning_rate < 0:
            raise Refusal(
                f"--learning-rate is {options.learning_rate}", "a positive number, or 0", "Omit it for the default"
            )
        transformer_layers(encoder.model.base_model)
        task_name = infer_task(corpus, label) if task == "auto" else task
        usable, label_name = select_examples(corpus, task_name, label or None)
        examples = sort_by_content(usable.examples)[: options.sample_size or None]
        fitted, self._long_examples = fit_examples(
            encoder, examples, options.overflow, keep_end=task_name == "sentence"
        )
        sample = replace(usable, examples=tuple(fitted))
        self.split: DataSplit = split_examples(sample, TEST_FRACTION, seed=options.seed)
        config = TrainingConfig(
            seed=options.seed,
            epochs=options.epochs,
            batch_size=options.batch_size,
            learning_rate=options.learning_rate or None,
            patience=None,
        )
        self.job = TrainingJob(
            build_task(task_name, self.split.train, label_name),
            self.split.train,
            resolve_config(config, width=encoder.width, device=encoder.device),
            LayerVariant(),
        )
        self.encoder, self.cache, self.n_seeds, self.analysis_name = encoder, cache, options.n_seeds, analysis_name
        self.train_set, self.test_set = (
            self.job.encode(encoder, examples) for examples in (self.split.train, self.split.validation)
        )

    def run(self, variants: Sequence[LayerVariant]) -> dict[LayerVariant, list[Counts]]:
        """Test counts of each variant of the model, for every seed."""
        return self.run_jobs({variant: replace(self.job, variant=variant) for variant in variants})

    def run_jobs(self, jobs: Mapping[Key, TrainingJob]) -> dict[Key, list[Counts]]:
        """Test counts of each job, for every seed."""
        seeds = range(self.job.config.seed, self.job.config.seed + self.n_seeds)
        runs = [replace(job, config=replace(self.job.config, seed=seed)) for job in jobs.values() for seed in seeds]
        arguments = [{"encoder": self.encoder, "job": run, "test_examples": self.split.validation} for run in runs]
        stored = cached_runs(self.cache, "Fine-tuning", train_and_test, arguments)
        counts = iter([Counts(np.array(run["correct"]), np.array(run["total"])) for run in stored])
        return {key: [next(counts) for _ in seeds] for key in jobs}

    def long_examples(self) -> dict[str, int]:
        """How many examples, for training or test, were too long, and skipped, truncated or split into windows."""
        sets = self.train_set, self.test_set
        n_skipped = len(self.split.train) + len(self.split.validation) - sum(len(part.examples) for part in sets)
        n_changed = sum(part.n_truncated for part in sets) - n_skipped
        return dict(self._long_examples + Counter(count_unusable(self.job.task.name, n_skipped, n_changed)))

    def baseline_counts(self) -> dict[str, Counts]:
        """Test counts of predictions that need no model, by the name of the baseline."""
        examples, task = self.test_set.examples, self.job.task
        predictions = task.baseline_predictions(self.train_set.examples, examples)
        return {name: task.count_correct(examples, predicted) for name, predicted in predictions.items()}


def train_and_test(
    encoder: TaskEncoder, job: TrainingJob, test_examples: Sequence[Example], progress: ProgressCallback
) -> dict[str, list[float]]:
    """Counts of one job on the test examples after the last epoch."""
    model = build_model(encoder, job)
    train_model(model, job, job.encode(encoder, job.examples), None, progress=progress)
    test_set = job.encode(encoder, test_examples)
    counts = job.task.count_correct(test_set.examples, job.task.predict(model, test_set))
    return {"correct": counts.correct.tolist(), "total": counts.total.tolist()}
