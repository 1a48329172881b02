"""Fine-tune a model on one task many times: variants of the model, or variants of the training examples.

All runs are tested on the same examples after the last epoch; no epoch is selected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import TypeVar

import numpy as np

from bertology.analyses.run import AnalysisCache, ProgressCallback, step_progress
from bertology.corpus.corpus import Corpus
from bertology.encoder.encoder import Encoder, TaskEncoder
from bertology.encoder.layer_variants import LayerVariant, transformer_layers
from bertology.errors import Refusal
from bertology.estimates.estimate import Estimate
from bertology.estimates.metrics import Counts, bootstrap_runs
from bertology.training.data_split import DataSplit, content_hash, sort_by_content, split_examples
from bertology.training.job import TrainingJob, build_model, train_model
from bertology.training.loop import TrainingConfig, resolve_config
from bertology.training.task_selection import build_task, infer_task, select_examples

TEST_FRACTION = 0.25
Key = TypeVar("Key")


class FinetuningSweep:
    """Repeated fine-tuning on one task, with one split into training and test examples."""

    def __init__(
        self,
        encoder: Encoder,
        corpus: Corpus,
        cache: AnalysisCache,
        task: str,
        annotation: str,
        sample_size: int,
        config: TrainingConfig,
        n_seeds: int,
        *,
        analysis_name: str,
    ) -> None:
        """Select and split the examples. `config.seed` is the first of the seeds."""
        if not isinstance(encoder, TaskEncoder):
            raise Refusal(
                f"{analysis_name} fine-tunes a model, and {encoder.name} has no transformer layers",
                "a transformer",
                "Choose another model",
            )
        transformer_layers(encoder.model.base_model)
        task_name = infer_task(corpus) if task == "auto" else task
        usable, tag_annotation = select_examples(corpus, task_name, annotation or None)
        sample = replace(usable, examples=tuple(sort_by_content(usable.examples)[: sample_size or None]))
        self.split: DataSplit = split_examples(sample, TEST_FRACTION, seed=config.seed)
        self.job = TrainingJob(
            build_task(task_name, self.split.train, tag_annotation),
            self.split.train,
            resolve_config(config, width=encoder.width, device=encoder.device),
            LayerVariant(),
        )
        self.encoder, self.cache, self.n_seeds, self.analysis_name = encoder, cache, n_seeds, analysis_name
        self.train_set, self.test_set = (
            self.job.encode(encoder, examples) for examples in (self.split.train, self.split.validation)
        )

    def run(self, variants: Sequence[LayerVariant]) -> dict[LayerVariant, list[Counts]]:
        """Test counts of each variant of the model, for every seed."""
        return self.run_jobs({variant: replace(self.job, variant=variant) for variant in variants})

    def run_jobs(self, jobs: Mapping[Key, TrainingJob]) -> dict[Key, list[Counts]]:
        """Test counts of each job, for every seed."""
        runs = [(key, self.job.config.seed + offset) for key in jobs for offset in range(self.n_seeds)]
        meter = self.cache.progress_meter(f"Fine-tuning ({len(runs)} runs)")
        counts: dict[Key, list[Counts]] = {key: [] for key in jobs}
        for step, (key, seed) in enumerate(runs):
            job = replace(jobs[key], config=replace(self.job.config, seed=seed))
            counts[key].append(self._cached_counts(job, step_progress(meter, step, len(runs))))
        return counts

    def baseline_score(self) -> Estimate:
        """The score of the task's first baseline, which needs no model."""
        predictions = self.job.task.baseline_predictions(self.train_set.examples, self.test_set.examples)
        counts = self.job.task.count_correct(self.test_set.examples, next(iter(predictions.values())))
        return bootstrap_runs([counts], self.job.config.seed)

    def _cached_counts(self, job: TrainingJob, progress: ProgressCallback) -> Counts:
        key = {
            "analysis": self.analysis_name,
            "format": 2,
            "model": self.encoder.fingerprint,
            "task": [job.task.name, list(job.task.labels), job.task.metric],
            "train": content_hash(job.examples),
            "test": content_hash(self.split.validation),
            "config": asdict(job.config),
            "variant": asdict(job.variant),
        }
        counts = self.cache.get_or_compute(key, lambda: self._train(job, progress))
        return Counts(np.array(counts["correct"]), np.array(counts["total"]))

    def _train(self, job: TrainingJob, progress: ProgressCallback) -> dict[str, list[float]]:
        model = build_model(self.encoder, job)
        is_unchanged = job.examples is self.split.train
        train_set = self.train_set if is_unchanged else job.encode(self.encoder, job.examples)
        train_model(model, job, train_set, None, progress=progress)
        counts = job.task.count_correct(self.test_set.examples, job.task.predict(model, self.test_set))
        return {"correct": counts.correct.tolist(), "total": counts.total.tolist()}
