"""Every planted task is learnt, shuffled labels are not, and any tool can load the result."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

import bertology
from bertology.checked_files import write_checked_json
from bertology.corpus.corpus import Corpus
from bertology.encoder.encoder import TaskEncoder
from bertology.errors import Refusal
from bertology.training.biaffine_parser import BiaffineParser
from bertology.training.finetune import FineTunedModel
from bertology.training.loop import TrainingConfig, resolve_config
from bertology.training.run_directory import TRAINING_FOLDER
from bertology.training.task_selection import TASKS, TaskName
from bertology.training.tasks.text_classification import TextClassification
from command import bertology as command
from planted_tasks import planted_corpus

CONFIG = TrainingConfig(epochs=8, learning_rate=3e-3, batch_size=8, patience=2)
SHORT_CONFIG = replace(CONFIG, epochs=2)
AUTO_CLASSES: dict[str, Any] = {
    "sentence": transformers.AutoModelForSequenceClassification,
    "pair": transformers.AutoModelForSequenceClassification,
    "token": transformers.AutoModelForTokenClassification,
    "dependency": transformers.AutoModel,
    "qa": transformers.AutoModelForQuestionAnswering,
    "choice": transformers.AutoModelForMultipleChoice,
}


def run_finetuning(task: TaskName, folder: Path, *, corpus: Corpus | None = None, **options: Any) -> FineTunedModel:
    options = {"config": CONFIG, "validation_fraction": 0.25} | options
    return bertology.finetune("tiny", corpus or planted_corpus(task), task, folder, **options)


def load_weights(folder: Path) -> dict[str, torch.Tensor]:
    loaded = bertology.load(str(folder))
    assert isinstance(loaded, TaskEncoder)
    return loaded.model.state_dict()


@pytest.mark.parametrize("task", TASKS)
def test_a_planted_task_is_learnt_and_saved_for_transformers(task: TaskName, tmp_path: Path) -> None:
    finetuned = run_finetuning(task, tmp_path / "model", config=replace(CONFIG, patience=4))
    metric = finetuned.metadata["metric"]
    assert finetuned.scores()[metric].value >= 0.95
    baseline = next(iter(finetuned.metadata["baselines"]["validation"].values()))[metric]
    assert baseline["high"] < finetuned.scores()[metric].low
    metadata = json.loads((finetuned.directory / "finetuning.json").read_text("utf-8"))
    assert len(metadata.pop("digest")) == 32 and metadata == json.loads(json.dumps(finetuned.metadata))
    assert not (finetuned.directory / TRAINING_FOLDER).exists()
    model: Any = AUTO_CLASSES[task].from_pretrained(finetuned.directory)
    torch.testing.assert_close(model.state_dict(), load_weights(finetuned.directory), rtol=0, atol=0)
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(finetuned.directory)
    assert tokenizer("a cat").input_ids[0] == tokenizer.cls_token_id
    if finetuned.metadata["labels"]:
        assert model.config.id2label == dict(enumerate(finetuned.metadata["labels"]))


def test_a_transformers_pipeline_predicts_the_planted_labels(tmp_path: Path) -> None:
    finetuned = run_finetuning("sentence", tmp_path / "model", config=replace(CONFIG, patience=4))
    pipeline: Any = transformers.pipeline("text-classification", model=str(finetuned.directory), device="cpu")
    assert [prediction["label"] for prediction in pipeline(["he was happy", "he was sad"])] == ["good", "bad"]


def test_a_parser_is_saved_with_its_encoder(tmp_path: Path) -> None:
    finetuned = run_finetuning("dependency", tmp_path / "model", config=SHORT_CONFIG)
    parser = BiaffineParser.load(finetuned.directory)
    states = torch.randn(1, 4, finetuned.encoder.width)
    is_candidate = torch.ones(1, 4, dtype=torch.bool)
    assert parser.score_arcs(states, is_candidate).argmax(-1).shape == (1, 4)
    assert parser.relation.shape[1] == len(finetuned.metadata["labels"])


def test_shuffled_labels_are_not_learnt(tmp_path: Path) -> None:
    corpus = planted_corpus("sentence", 200, shuffled=True)
    test = planted_corpus("sentence", 200, seed=1, shuffled=True)
    finetuned = run_finetuning("sentence", tmp_path / "model", corpus=corpus, config=SHORT_CONFIG, test=test)
    accuracy, correlation = (finetuned.scores("test")[name] for name in ("accuracy", "MCC"))
    assert accuracy.low < 0.5 < accuracy.high
    assert correlation.low <= 0 <= correlation.high


def test_the_weights_depend_on_the_seed_but_not_on_the_order_of_the_data(tmp_path: Path) -> None:
    corpus = planted_corpus("sentence", 40)
    reversed_corpus = replace(corpus, examples=corpus.examples[::-1])
    for name, data, seed in (("first", corpus, 1), ("same", reversed_corpus, 1), ("other", corpus, 2)):
        run_finetuning("sentence", tmp_path / name, corpus=data, config=replace(SHORT_CONFIG, seed=seed))
    first, same, other = (load_weights(tmp_path / name) for name in ("first", "same", "other"))
    torch.testing.assert_close(first, same, rtol=0, atol=0)
    assert not torch.equal(first["classifier.weight"], other["classifier.weight"])


def test_training_stops_without_improvement(tmp_path: Path) -> None:
    finetuned = run_finetuning("token", tmp_path / "model", config=replace(CONFIG, epochs=20, patience=2))
    assert finetuned.metadata["best_epoch"] == len(finetuned.metadata["epochs"]) - 2 < 18


def test_checkpoints_are_saved_on_request(tmp_path: Path) -> None:
    finetuned = run_finetuning(
        "sentence",
        tmp_path / "model",
        corpus=planted_corpus("sentence", 40),
        config=SHORT_CONFIG,
        keep_checkpoints=True,
    )
    checkpoints = sorted(path.name for path in finetuned.directory.glob("checkpoint-*"))
    assert checkpoints == ["checkpoint-4", "checkpoint-8"]
    best = finetuned.directory / f"checkpoint-{4 * finetuned.metadata['best_epoch']}"
    torch.testing.assert_close(load_weights(best), load_weights(finetuned.directory), rtol=0, atol=0)


def test_a_finished_run_is_not_repeated_and_another_run_is_refused(tmp_path: Path) -> None:
    corpus = planted_corpus("sentence", 40)
    first = run_finetuning("sentence", tmp_path / "model", corpus=corpus, config=SHORT_CONFIG)
    before = (first.directory / "model.safetensors").stat().st_mtime_ns
    messages: list[str] = []
    second = run_finetuning("sentence", tmp_path / "model", corpus=corpus, config=SHORT_CONFIG, notify=messages.append)
    assert (second.directory / "model.safetensors").stat().st_mtime_ns == before
    assert "already finished" in messages[0]
    with pytest.raises(Refusal, match=r"another config \(learning_rate 0\.003, now 0\.1\)"):
        run_finetuning("sentence", tmp_path / "model", corpus=corpus, config=replace(SHORT_CONFIG, learning_rate=0.1))


def test_a_diverging_run_stops_and_keeps_the_last_good_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original: Any = TextClassification.loss
    calls = iter(range(1_000))

    def failing(*args: Any) -> torch.Tensor:
        return original(*args) * (float("nan") if next(calls) > 5 else 1.0)

    monkeypatch.setattr(TextClassification, "loss", failing)
    corpus = planted_corpus("sentence", 40)
    with pytest.raises(Refusal, match=r"the loss became nan at step 7 \(epoch 2\).*step 4 are in") as caught:
        run_finetuning("sentence", tmp_path / "model", corpus=corpus, config=SHORT_CONFIG)
    assert "--learning-rate below 0.003" in str(caught.value)
    last_good = load_weights(tmp_path / "model" / "last-good")
    assert all(bool(torch.isfinite(tensor).all()) for tensor in last_good.values())
    monkeypatch.setattr(TextClassification, "loss", original)
    config = replace(SHORT_CONFIG, learning_rate=1e-3)
    assert run_finetuning("sentence", tmp_path / "model", corpus=corpus, config=config).metadata["epochs"]


def test_a_learning_rate_far_too_high_diverges_on_the_command_line(tmp_path: Path) -> None:
    data = tmp_path / "data.tsv"
    rows = [f"{example.label}\t{example.segments[0].text}" for example in planted_corpus("sentence", 40)]
    data.write_text("\n".join(["label\ttext", *rows]) + "\n", "utf-8")
    arguments = ("finetune", "tiny", str(data), "--task", "sentence", "-o", str(tmp_path / "model"))
    finished = command(*arguments, "--learning-rate", "1e20", "--batch-size", "8", "--epochs", "3")
    assert finished.status == 2
    assert "diverged" in finished.err and "--learning-rate" in finished.err
    finished = command(*arguments, "--epochs", "1")
    assert (finished.status, finished.out.strip()) == (0, str(tmp_path / "model"))
    assert "majority class" in finished.err
    assert json.loads(command(*arguments, "--epochs", "1", "--json").out)["task"] == "sentence"


@pytest.mark.parametrize(
    ("task", "data", "reason"),
    [
        ("sentence", "token", "no examples for the task sentence"),
        ("token", "sentence", "has label"),
        ("qa", "pair", "no examples for the task qa"),
    ],
)
def test_data_of_another_task_is_refused(task: TaskName, data: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(Refusal, match=reason):
        run_finetuning(task, tmp_path / "model", corpus=planted_corpus(data, 20))


def test_scores_are_refused_as_classes(tmp_path: Path) -> None:
    corpus = planted_corpus("sentence", 20)
    examples = tuple(replace(example, label=f"{index}.5") for index, example in enumerate(corpus))
    with pytest.raises(Refusal, match="are scores"):
        run_finetuning("sentence", tmp_path / "model", corpus=replace(corpus, examples=examples))


def test_the_annotation_can_be_chosen(tmp_path: Path) -> None:
    corpus = planted_corpus("token", 40)
    for annotation, metric, labels in (("pos", "accuracy", ["NOUN", "X"]), ("entities", "span F1", ["O", "B-PER"])):
        finetuned = run_finetuning("token", tmp_path / annotation, corpus=corpus, config=SHORT_CONFIG, label=annotation)
        assert (finetuned.metadata["metric"], finetuned.metadata["labels"]) == (metric, labels)


def test_a_task_is_learnt_in_half_precision(tmp_path: Path) -> None:
    finetuned = run_finetuning("sentence", tmp_path / "model", config=replace(CONFIG, patience=4, dtype="bfloat16"))
    assert finetuned.scores()["accuracy"].value >= 0.95
    assert {tensor.dtype for tensor in load_weights(finetuned.directory).values() if tensor.is_floating_point()} == {
        torch.float32
    }


def test_a_parser_is_learnt_in_half_precision(tmp_path: Path) -> None:
    corpus = planted_corpus("dependency", 60)
    finetuned = run_finetuning(
        "dependency", tmp_path / "model", corpus=corpus, config=replace(CONFIG, dtype="bfloat16")
    )
    assert finetuned.scores()["LAS"].value >= 0.95


def test_defaults_are_resolved_by_model_width_and_device() -> None:
    assert resolve_config(TrainingConfig(), width=768, device="cpu") == TrainingConfig(
        learning_rate=5e-5, dtype="float32"
    )
    assert resolve_config(TrainingConfig(), width=256, device="cpu").learning_rate == 1.5e-4
    assert resolve_config(TrainingConfig(learning_rate=1.0), width=256, device="cpu").learning_rate == 1.0


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "finetuning.json"])
def test_a_finished_model_that_was_damaged_is_refused(name: str, tmp_path: Path) -> None:
    corpus = planted_corpus("sentence", 40)
    finetuned = run_finetuning("sentence", tmp_path / "model", corpus=corpus, config=SHORT_CONFIG)
    file = finetuned.directory / name
    intact = file.read_bytes()
    for position in range(0, len(intact), len(intact) // 20):
        file.write_bytes(intact[:position] + bytes([intact[position] ^ 1]) + intact[position + 1 :])
        with pytest.raises(Refusal, match=f"{name} is damaged"):
            run_finetuning("sentence", finetuned.directory, corpus=corpus, config=SHORT_CONFIG)
    file.write_bytes(intact)
    again = run_finetuning("sentence", finetuned.directory, corpus=corpus, config=SHORT_CONFIG)
    assert again.metadata == json.loads(json.dumps(finetuned.metadata))


def test_a_run_of_an_older_format_is_refused(tmp_path: Path) -> None:
    corpus = planted_corpus("sentence", 40)
    finetuned = run_finetuning("sentence", tmp_path / "model", corpus=corpus, config=SHORT_CONFIG)
    file = finetuned.directory / "finetuning.json"
    write_checked_json(file, {"format": 1, "recipe": {}})
    with pytest.raises(Refusal, match=r"written by another version of bertology \(format 1\)"):
        run_finetuning("sentence", tmp_path / "model", corpus=corpus, config=SHORT_CONFIG)
