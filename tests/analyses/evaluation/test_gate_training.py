"""Retraining without heads, against a plain PyTorch loop over a transformers model with hooks of its own."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import tiny_models
from bertology.analyses.evaluation.evaluation import Evaluation, prepare_evaluation
from bertology.analyses.evaluation.gate_training import GateTrainingConfig, retrain_model, train_gates
from bertology.arrays import BoolArray
from bertology.corpus.corpus import Corpus
from bertology.corpus.read import as_corpus
from bertology.encoder.encoder import TaskEncoder
from bertology.training.loop import TrainingConfig, resolve_config

OUTPUT = {"bert": "attention.output.dense", "distilbert": "attention.out_lin"}
SIZE = tiny_models.WIDTH // tiny_models.HEADS


def classifier(name: str) -> TaskEncoder:
    """A tiny classifier without dropout, so that nothing but data and weights decides its training."""
    model = tiny_models.model(name, "ForSequenceClassification")
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    for option in ("attention_probs_dropout_prob", "hidden_dropout_prob", "attention_dropout", "dropout"):
        if hasattr(model.config, option):
            setattr(model.config, option, 0.0)
    return tiny_models.wrap_model(model, name)


def evaluate(encoder: TaskEncoder) -> Evaluation:
    corpus = as_corpus(tiny_models.TEXTS)
    examples = (replace(example, label=encoder.labels[index % 3]) for index, example in enumerate(corpus))
    return prepare_evaluation(encoder, Corpus(tuple(examples), name="texts"))


def logits(model: Any, evaluation: Evaluation) -> Tensor:
    (batch,) = evaluation.batches
    arguments = {"input_ids": batch.inputs.input_ids, "attention_mask": batch.inputs.attention_mask}
    if getattr(model.config, "type_vocab_size", 0) > 1:
        arguments["token_type_ids"] = batch.inputs.token_type_ids
    return model(**arguments).logits


def keep_columns(columns: Tensor, module: Any, inputs: tuple[Tensor, ...]) -> tuple[Tensor]:
    return (inputs[0] * columns,)


def retrain_by_hand(name: str, encoder: TaskEncoder, evaluation: Evaluation, kept: BoolArray, steps: int) -> Tensor:
    """Logits after so many steps of AdamW on all examples, with the output of the other heads zero throughout."""
    model: Any = tiny_models.reference(encoder)
    projections = [module for path, module in model.named_modules() if path.endswith(OUTPUT[name])]
    for projection, heads in zip(projections, kept, strict=True):
        columns = torch.tensor(heads).repeat_interleave(SIZE).float()
        projection.register_forward_pre_hook(partial(keep_columns, columns))
    (batch,) = evaluation.batches
    gold = torch.tensor([encoder.labels.index(str(evaluation.examples[index].label)) for index in batch.examples])
    matrices = [weights for weights in model.parameters() if weights.ndim > 1]
    vectors = [weights for weights in model.parameters() if weights.ndim == 1]
    optimiser = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.01}, {"params": vectors, "weight_decay": 0}])
    peak = 5e-5 * 768 / tiny_models.WIDTH
    for step in range(steps):
        # One step of warm-up, then down to 0 behind the last step.
        rate = min(1e-3, peak) * (1.0 if step == 0 else (steps - step) / (steps - 1))
        for group in optimiser.param_groups:
            group["lr"] = rate
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(logits(model, evaluation), gold).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
    return logits(model, evaluation).detach()


@pytest.mark.parametrize("name", OUTPUT)
def test_retraining_equals_a_plain_loop_from_the_first_weights(name: str) -> None:
    encoder = classifier(name)
    evaluation = evaluate(encoder)
    assert resolve_config(TrainingConfig(), width=encoder.width, device="cpu").learning_rate == 1e-3
    before = encoder.fingerprint
    every_head = np.ones((encoder.layers, encoder.heads), np.bool_)
    some_heads = np.array([[True, False, True, False], [False, True, True, False]])
    for kept in (some_heads, every_head, some_heads):  # each from the first weights, not from those of the last
        retrained = retrain_model(
            encoder, evaluation, kept, steps=5, batch_size=8, seed=0, progress=lambda done, total: None
        )
        with torch.no_grad():
            actual = retrained.forward(evaluation.batches[0].inputs).logits["label"]
        expected = retrain_by_hand(name, encoder, evaluation, kept, 5)
        torch.testing.assert_close(actual, expected, atol=2e-4, rtol=1e-3)
        untrained = retrain_by_hand(name, encoder, evaluation, kept, 0)
        assert float((actual - untrained).abs().max()) > 0.05, "training changes the logits by far more"
    assert encoder.fingerprint == before


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 7])
def test_training_takes_exactly_as_many_steps_as_asked_for(steps: int) -> None:
    """Six examples in three batches: an epoch has three steps, and training may end within one."""
    encoder = classifier("bert")
    evaluation = evaluate(encoder)
    reports: list[tuple[int, int]] = []

    def progress(done: int, total: int) -> None:
        reports.append((done, total))

    kept = np.ones((encoder.layers, encoder.heads), np.bool_)
    retrained = retrain_model(encoder, evaluation, kept, steps=steps, batch_size=2, seed=0, progress=progress)
    assert reports == [(step, steps) for step in range(1, steps + 1)]
    assert not torch.equal(retrained.model.classifier.weight, encoder.model.classifier.weight)
    reports.clear()
    train_gates(encoder, evaluation, GateTrainingConfig(0.1, steps, 2, 2.0, 0.2, False, 0), progress)
    assert reports == [(step, steps) for step in range(1, steps + 1)]


def test_the_last_steps_of_an_unfinished_epoch_count() -> None:
    """The trained weights are those after the last step, not of the last full epoch."""
    encoder = classifier("bert")
    evaluation = evaluate(encoder)
    config = GateTrainingConfig(1.0, 4, 2, 2.0, 0.2, False, 0)
    log_alpha = [
        train_gates(encoder, evaluation, replace(config, steps=steps), lambda done, total: None).log_alpha
        for steps in (3, 4)
    ]
    assert (log_alpha[1] != log_alpha[0]).all()
