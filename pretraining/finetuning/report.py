"""Numbers of the model card of a fine-tuned model, measured on the stored files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from bertology.corpus.read import load_corpus
from bertology.encoder.delta_checkpoint import load_delta
from bertology.encoder.huggingface_loading import load_directory
from bertology.estimates.metrics import Counts, bootstrap_score
from pretraining.finetuning.encoded_task import EncodedTask
from pretraining.finetuning.model import trained_model
from pretraining.finetuning.prediction import Logits, count_correct, predict
from pretraining.finetuning.similarity import layer_similarity
from pretraining.finetuning.training import RUN_FILE


@dataclass(frozen=True)
class StorageEffect:
    """What storing changes on all test sets: logits, and the proportion of unchanged predictions."""

    rank: int
    bytes: int
    n_predictions: int
    max_logit_change: float
    median_logit_change: float
    logit_std: float
    unchanged_predictions: float


def storage_effect(
    directory: Path, rank: int, trained_logits: Sequence[Logits], stored_logits: Sequence[Logits]
) -> StorageEffect:
    """Compare the logits of a stored model with those of the trained one."""
    trained, stored = (
        np.concatenate([logits.reshape(-1, logits.shape[-1]) for logits in model_logits])
        for model_logits in (trained_logits, stored_logits)
    )
    return StorageEffect(
        rank=rank,
        bytes=sum(file.stat().st_size for file in directory.iterdir()),
        n_predictions=len(trained),
        max_logit_change=float(np.abs(trained - stored).max()),
        median_logit_change=float(np.median(np.abs(trained - stored))),
        logit_std=float(trained.std()),
        unchanged_predictions=float((trained.argmax(-1) == stored.argmax(-1)).mean()),
    )


Predictions = dict[str, list[Logits]]
"""The logits of each example, by test set."""


def predict_test_sets(model: nn.Module, dataset: EncodedTask) -> Predictions:
    """The logits of every test set."""
    return {name: predict(model, examples) for name, examples in dataset.test.items()}


def score_test_sets(dataset: EncodedTask, predictions: Predictions) -> dict[str, Any]:
    """The score of each test set, and of each phenomenon in it."""
    scores: dict[str, Any] = {}
    for name, examples in dataset.test.items():
        counts = count_correct(examples, predictions[name], dataset.labels, tags=dataset.tags)
        scores[name] = asdict(bootstrap_score(counts))
        for phenomenon in sorted({example.phenomenon for example in examples} - {""}):
            rows = [index for index, example in enumerate(examples) if example.phenomenon == phenomenon]
            scores[f"{name}: {phenomenon}"] = asdict(bootstrap_score(Counts(counts.correct[rows], counts.total[rows])))
    return scores


def report(
    dataset: EncodedTask, base: Path, model: Path, runs: Sequence[Path], stored_run: Path, *, device: str
) -> dict[str, Any]:
    """All numbers of the model card: the stored model, each run, the baselines and the similarity to the base."""
    encoder = load_delta(base, model)
    similarity = layer_similarity(load_directory(base), encoder, load_corpus("english"))
    stored = predict_test_sets(encoder.model.to(device), dataset)
    trained = {run.name: predict_test_sets(trained_model(dataset, base, run).to(device), dataset) for run in runs}
    rank = int(encoder.model.config.difference["rank"])
    effect = storage_effect(model, rank, _all_logits(trained[stored_run.name]), _all_logits(stored))
    return {
        "sizes": {name: len(examples) for name, examples in dataset.splits.items()},
        "stored": score_test_sets(dataset, stored),
        "storage": asdict(effect),
        "runs": {run: score_test_sets(dataset, predictions) for run, predictions in trained.items()},
        "similarity": similarity,
        "training": {run.name: json.loads((run / RUN_FILE).read_text("utf-8")) for run in runs},
        **dataset.statistics,
    }


def _all_logits(predictions: Predictions) -> list[Logits]:
    return [logits for test_set in predictions.values() for logits in test_set]
