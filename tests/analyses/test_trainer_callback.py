"""Analyses while transformers trains: real Trainers, their loggers, and a training that does not notice."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

import bertology
import tiny_models
from bertology.analyses.trainer_callback import AnalysisCallback, summary_scalars
from bertology.errors import Refusal
from bertology.estimates.estimate import Estimates
from bertology.results.result import Result
from bertology.results.shapes import HeadGrid, Table

TEXTS = ["The cat sat on the mat.", "A dog ran home.", "We saw the lights of the town.", "It rains."]
SAMPLE = ["The keys to the cabinet are on the table.", "We walked along the river."]
ENTROPY = "attention/entropy"


def make_trainer(directory: Path, **arguments: Any) -> transformers.Trainer:
    """A Trainer of a tiny BERT classifier with dropout, on eight examples."""
    transformers.set_seed(0)
    tokenizer = tiny_models.hf_tokenizer("bert")
    model = tiny_models.model("bert", "ForSequenceClassification")
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.2
    data = [{**tokenizer(text), "labels": i % 2} for i, text in enumerate(TEXTS * 2)]
    settings: dict[str, Any] = {
        "output_dir": str(directory), "max_steps": 6, "per_device_train_batch_size": 2, "logging_steps": 2,
        "learning_rate": 1e-2, "use_cpu": True, "report_to": [], "disable_tqdm": True, "save_strategy": "no",
    }  # fmt: skip
    return transformers.Trainer(
        model,
        transformers.TrainingArguments(**(settings | arguments)),
        train_dataset=data,  # pyright: ignore[reportArgumentType]
        processing_class=tokenizer,
    )


def train(trainer: transformers.Trainer) -> list[float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer.train()
    return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]


def weights(trainer: transformers.Trainer) -> np.ndarray[Any, Any]:
    model: Any = trainer.model
    return torch.cat([p.detach().flatten() for p in model.parameters()]).numpy()


def test_training_is_the_same_with_and_without_the_callback(tmp_path: Path) -> None:
    plain = make_trainer(tmp_path / "plain")
    losses = train(plain)
    analysed = make_trainer(tmp_path / "analysed")
    names = [ENTROPY, "attention/targets"]
    callback = AnalysisCallback(analysed, names, SAMPLE, every=1, random_baseline=True)
    analysed.add_callback(callback)
    assert train(analysed) == losses and len(losses) == 3
    np.testing.assert_array_equal(weights(analysed), weights(plain))
    assert list(callback.results) == [0, 1, 2, 3, 4, 5, 6]
    assert all(list(results) == names for results in callback.results.values())


def test_gradients_and_the_mode_of_the_model_stay_as_they_are(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path)
    callback = AnalysisCallback(trainer, ["attention/attribution_agreement"], SAMPLE, every=1)
    model: Any = trainer.model
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    model.train()
    attention, state = model.config._attn_implementation, torch.get_rng_state()
    callback.on_train_begin(trainer.args, trainer.state, trainer.control)
    assert torch.equal(torch.get_rng_state(), state)
    assert model.training and all(module.training for module in model.modules())
    assert all((parameter.grad == 1).all() and parameter.requires_grad for parameter in model.parameters())
    assert model.config._attn_implementation == attention


def test_the_results_are_those_of_the_model_at_that_step(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, max_steps=3)
    callback = AnalysisCallback(trainer, ENTROPY, SAMPLE, every=2)
    trainer.add_callback(callback)
    start = bertology.run(ENTROPY, (trainer.model, trainer.processing_class), SAMPLE, random_baseline=False)
    train(trainer)
    end = bertology.run(ENTROPY, (trainer.model, trainer.processing_class), SAMPLE, random_baseline=False)
    assert list(callback.results) == [0, 2, 3]
    assert callback.results[0][ENTROPY].to_json()["data"] == start.to_json()["data"]
    assert callback.results[3][ENTROPY].to_json()["data"] == end.to_json()["data"]
    assert start.to_json()["data"] != end.to_json()["data"]
    frame = callback.to_pandas()
    assert set(frame["step"]) == {0, 2, 3} and len(frame) == 3 * len(start.to_pandas())


def test_numbers_reach_the_log_of_the_trainer_and_tensorboard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSORBOARD_LOGGING_DIR", str(tmp_path / "events"))
    trainer = make_trainer(tmp_path, report_to=["tensorboard"])
    callback = AnalysisCallback(trainer, ENTROPY, SAMPLE, every=2, scalars="layers", directory=tmp_path / "results")
    trainer.add_callback(callback)
    losses = train(trainer)
    grid = callback.results[4][ENTROPY].data
    assert isinstance(grid, HeadGrid)
    measure = next(iter(grid.measures))
    key, mean = f"bertology/{ENTROPY}/{measure}", float(np.nanmean(grid.measures[measure].value))
    history = [entry for entry in trainer.state.log_history if key in entry]
    assert [entry["step"] for entry in history] == [0, 2, 4, 6] and len(losses) == 3
    assert history[2][key] == pytest.approx(mean)
    assert history[2][f"{key}/layer 2"] == pytest.approx(float(np.nanmean(grid.measures[measure].value[1])))
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        events: Any = EventAccumulator(str(next((tmp_path).rglob("events.out.tfevents*")).parent))
        events.Reload()
    points = {event.step: event.value for event in events.Scalars(f"train/{key}")}
    assert points.keys() == {0, 2, 4, 6} and points[4] == pytest.approx(mean, rel=1e-5)
    assert [event.step for event in events.Scalars("train/loss")] == [2, 4, 6]
    saved = json.loads((tmp_path / "results" / "step-4.json").read_text("utf-8"))
    assert saved["step"] == 4 and Result.from_json(saved["results"][0]).analysis == ENTROPY


def test_mixed_precision_is_analysed_without_touching_the_model(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, bf16=True, max_steps=2)
    callback = AnalysisCallback(trainer, ENTROPY, SAMPLE, every=1)
    trainer.add_callback(callback)
    train(trainer)
    plain = make_trainer(tmp_path, bf16=True, max_steps=2)
    train(plain)
    np.testing.assert_array_equal(weights(trainer), weights(plain))
    assert list(callback.results) == [0, 1, 2]


def test_scalars_leave_out_missing_values_and_name_the_rows_of_tables() -> None:
    grid = HeadGrid(
        measures={"m": Estimates.exact(np.array([[1.0, np.nan], [4.0, 6.0]]))},
        baselines={"zero": {"m": Estimates.exact(np.zeros((2, 2)))}},
    )
    assert summary_scalars(grid, "mean") == {"m": pytest.approx(11 / 3)}
    assert summary_scalars(grid, "layers") == {"m": pytest.approx(11 / 3), "m/layer 1": 1.0, "m/layer 2": 5.0}
    table = Table(
        row_names=("a", "b"),
        measures={"m": Estimates.exact(np.array([1.0, np.nan]))},
        baselines={"zero": {"m": Estimates.exact(np.zeros(2))}},
    )
    assert summary_scalars(table, "mean") == {"m/a": 1.0}


def test_what_cannot_run_is_refused_before_training(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="A Trainer was given as str"):
        AnalysisCallback("trainer", ENTROPY, SAMPLE)
    trainer = make_trainer(tmp_path)
    with pytest.raises(Refusal, match="every of AnalysisCallback was given 0"):
        AnalysisCallback(trainer, ENTROPY, SAMPLE, every=0)
    with pytest.raises(Refusal, match="There is no analysis called 'attention/entropie'"):
        AnalysisCallback(trainer, "attention/entropie", SAMPLE)
    with pytest.raises(Refusal, match="There is no option"):
        AnalysisCallback(trainer, ENTROPY, SAMPLE, colour="red")
    callback = AnalysisCallback(trainer, "heads/dependency", SAMPLE)
    trainer.add_callback(callback)
    with pytest.raises(Refusal, match="governors"):
        train(trainer)
    assert trainer.state.global_step == 0
    trainer = make_trainer(tmp_path)
    trainer.processing_class = None
    trainer.add_callback(AnalysisCallback(trainer, ENTROPY, SAMPLE))
    with pytest.raises(Refusal, match="has no tokenizer"):
        train(trainer)
