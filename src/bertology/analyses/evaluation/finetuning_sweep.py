"""Fine-tune a model on one task many times: variants of the model, or variants of the training examples.

All runs are tested on the same examples after the last epoch; no epoch is selected.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from bertology.analyses.evaluation.options import FinetuningOptions
from bertology.analyses.run import AnalysisCache, ProgressCallback, step_progress
from bertology.corpus.corpus import Corpus
from bertology.encoder.encoder import Encoder, TaskEncoder
from bertology.encoder.layer_variants import LayerVariant, transformer_layers
from bertology.errors import Refusal
from bertology.estimates.metrics import Counts
from bertology.training.data_split import DataSplit, content_hash, sort_by_content, split_examples
from bertology.training.job import TrainingJob, build_model, train_model
from bertology.training.loop import TrainingConfig, resolve_config
from bertology.training.task_selection import build_task, infer_task, select_examples

TEST_FRACTION = 0.25
Key = TypeVar("Key")


def cached_runs(
    cache: AnalysisCache,
    title: str,
    keys: Sequence[Mapping[str, Any]],
    run: Callable[[int, ProgressCallback], Any],
) -> list[Any]:
    """The result of each run, by its index; finished runs are cached under their keys."""
    meter = cache.progress_meter(f"{title} ({len(keys)} runs)")
    return [
        cache.get_or_compute(key, partial(run, step, step_progress(meter, step, len(keys))))
        for step, key in enumerate(keys)
    ]


class FinetuningSweep:
    """Repeated fine-tuning on one task, with one split into training and test examples."""

    def __init__(
        self,
        encoder: Encoder,
        corpus: Corpus,
        cache: AnalysisCache,
        task: str,
        annotation: str,
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
        transformer_layers(encoder.model.base_model)
        task_name = infer_task(corpus) if task == "auto" else task
        usable, tag_annotation = select_examples(corpus, task_name, annotation or None)
        sample = replace(usable, examples=tuple(sort_by_content(usable.examples)[: options.sample_size or None]))
        self.split: DataSplit = split_examples(sample, TEST_FRACTION, seed=options.seed)
        config = TrainingConfig(
            seed=options.seed,
            epochs=options.epochs,
            batch_size=options.batch_size,
            learning_rate=options.learning_rate or None,
            patience=None,
        )
        self.job = TrainingJob(
            build_task(task_name, self.split.train, tag_annotation),
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
        keys = list(map(self._cache_key, runs))
        stored = cached_runs(self.cache, "Fine-tuning", keys, lambda step, progress: self._train(runs[step], progress))
        counts = iter([Counts(np.array(run["correct"]), np.array(run["total"])) for run in stored])
        return {key: [next(counts) for _ in seeds] for key in jobs}

    def baseline_counts(self) -> dict[str, Counts]:
        """Test counts of predictions that need no model, by the name of the baseline."""
        examples, task = self.test_set.examples, self.job.task
        predictions = task.baseline_predictions(self.train_set.examples, examples)
        return {name: task.count_correct(examples, predicted) for name, predicted in predictions.items()}

    def _cache_key(self, job: TrainingJob) -> dict[str, Any]:
        return {
            "analysis": self.analysis_name,
            "format": 2,
            "model": self.encoder.fingerprint,
            "task": [job.task.name, list(job.task.labels), job.task.metric],
            "train": content_hash(job.examples),
            "test": content_hash(self.split.validation),
            "config": asdict(job.config),
            "variant": asdict(job.variant),
        }

    def _train(self, job: TrainingJob, progress: ProgressCallback) -> dict[str, list[float]]:
        model = build_model(self.encoder, job)
        is_unchanged = job.examples is self.split.train
        train_set = self.train_set if is_unchanged else job.encode(self.encoder, job.examples)
        train_model(model, job, train_set, None, progress=progress)
        counts = job.task.count_correct(self.test_set.examples, job.task.predict(model, self.test_set))
        return {"correct": counts.correct.tolist(), "total": counts.total.tolist()}
