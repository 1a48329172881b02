"""Each task is learnt where it is planted and not where its labels are shuffled; what is written, any tool loads."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from planted_tasks import planted

import bertology
from bertology.corpus.corpus import Corpus
from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.errors import Refusal
from bertology.finetuning.choose import TASKS, TaskName
from bertology.finetuning.finetune import FineTuned
from bertology.finetuning.loop import Recipe, settled
from bertology.finetuning.parser import Parser
from bertology.finetuning.tasks.classes import Classes
from command import bertology as command

RECIPE = Recipe(epochs=8, rate=3e-3, size=8, patience=2)
SHORT = replace(RECIPE, epochs=2)
AUTO: dict[str, Any] = {
    "sentence": transformers.AutoModelForSequenceClassification,
    "pair": transformers.AutoModelForSequenceClassification,
    "token": transformers.AutoModelForTokenClassification,
    "dependency": transformers.AutoModel,
    "qa": transformers.AutoModelForQuestionAnswering,
    "choice": transformers.AutoModelForMultipleChoice,
}


def taught(task: TaskName, folder: Path, *, corpus: Corpus | None = None, **options: Any) -> FineTuned:
    options = {"recipe": RECIPE, "dev_share": 0.25} | options
    return bertology.finetune("tiny", corpus or planted(task), task, folder, **options)


def weights_of(folder: Path) -> dict[str, torch.Tensor]:
    loaded = bertology.load(str(folder))
    assert isinstance(loaded, HuggingFaceEncoder)
    return loaded.model.state_dict()


@pytest.mark.parametrize("task", TASKS)
def test_what_is_planted_is_learnt_and_saved_for_any_tool(task: TaskName, tmp_path: Path) -> None:
    patient = replace(RECIPE, patience=4)
    made = taught(task, tmp_path / "model", recipe=patient)
    measure = made.record["measure"]
    assert made.scores()[measure].value >= 0.95
    guess = next(iter(made.record["baselines"]["dev"].values()))[measure]
    assert guess["high"] < made.scores()[measure].low
    assert json.loads((made.folder / "finetuning.json").read_text("utf-8")) == json.loads(json.dumps(made.record))
    assert not (made.folder / "training").exists()
    theirs: Any = AUTO[task].from_pretrained(made.folder)
    torch.testing.assert_close(theirs.state_dict(), weights_of(made.folder), rtol=0, atol=0)
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(made.folder)
    assert tokenizer("a cat").input_ids[0] == tokenizer.cls_token_id
    if made.record["labels"]:
        assert theirs.config.id2label == dict(enumerate(made.record["labels"]))


def test_the_model_on_disk_answers_as_it_was_judged(tmp_path: Path) -> None:
    made = taught("sentence", tmp_path / "model", recipe=replace(RECIPE, patience=4))
    ask: Any = transformers.pipeline("text-classification", model=str(made.folder), device="cpu")
    assert [answer["label"] for answer in ask(["he was happy", "he was sad"])] == ["good", "bad"]


def test_a_parser_is_kept_beside_its_encoder(tmp_path: Path) -> None:
    made = taught("dependency", tmp_path / "model", recipe=SHORT)
    parser = Parser.load(made.folder)
    states = torch.randn(1, 4, made.encoder.width)
    allowed = torch.ones(1, 4, dtype=torch.bool)
    assert parser.arcs(states, allowed).argmax(-1).shape == (1, 4)
    assert parser.relation.shape[1] == len(made.record["labels"])


def test_shuffled_labels_give_chance(tmp_path: Path) -> None:
    corpus = planted("sentence", 200, shuffled=True)
    judged = planted("sentence", 200, seed=1, shuffled=True)
    made = taught("sentence", tmp_path / "model", corpus=corpus, recipe=SHORT, test=judged)
    accuracy, correlation = (made.scores("test")[name] for name in ("accuracy", "MCC"))
    assert accuracy.low < 0.5 < accuracy.high
    assert correlation.low <= 0 <= correlation.high


def test_the_same_seed_gives_the_same_weights_whatever_the_order_of_the_data(tmp_path: Path) -> None:
    corpus = planted("sentence", 40)
    turned = replace(corpus, items=corpus.items[::-1])
    for name, data, seed in (("one", corpus, 1), ("same", turned, 1), ("other", corpus, 2)):
        taught("sentence", tmp_path / name, corpus=data, recipe=replace(SHORT, seed=seed))
    one, same, other = (weights_of(tmp_path / name) for name in ("one", "same", "other"))
    torch.testing.assert_close(one, same, rtol=0, atol=0)
    assert not torch.equal(one["classifier.weight"], other["classifier.weight"])


def test_training_stops_when_it_gets_no_better(tmp_path: Path) -> None:
    made = taught("token", tmp_path / "model", recipe=replace(RECIPE, epochs=20, patience=2))
    assert made.record["best_epoch"] == len(made.record["log"]) - 2 < 18


def test_checkpoints_are_kept_on_request(tmp_path: Path) -> None:
    made = taught("sentence", tmp_path / "model", corpus=planted("sentence", 40), recipe=SHORT, keep_checkpoints=True)
    kept = sorted(path.name for path in made.folder.glob("checkpoint-*"))
    assert kept == ["checkpoint-4", "checkpoint-8"]
    best = made.folder / f"checkpoint-{4 * made.record['best_epoch']}"
    torch.testing.assert_close(weights_of(best), weights_of(made.folder), rtol=0, atol=0)


def test_a_finished_folder_is_left_alone_and_another_run_refused(tmp_path: Path) -> None:
    corpus = planted("sentence", 40)
    first = taught("sentence", tmp_path / "model", corpus=corpus, recipe=SHORT)
    before = (first.folder / "model.safetensors").stat().st_mtime_ns
    said: list[str] = []
    again = taught("sentence", tmp_path / "model", corpus=corpus, recipe=SHORT, notify=said.append)
    assert (again.folder / "model.safetensors").stat().st_mtime_ns == before
    assert "finished already" in said[0]
    with pytest.raises(Refusal, match=r"rate 0\.003, now 0\.1"):
        taught("sentence", tmp_path / "model", corpus=corpus, recipe=replace(SHORT, rate=0.1))


def test_a_diverging_run_stops_and_keeps_what_was_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole: Any = Classes.loss
    calls = iter(range(1_000))

    def failing(*given: Any) -> torch.Tensor:
        return whole(*given) * (float("nan") if next(calls) > 5 else 1.0)

    monkeypatch.setattr(Classes, "loss", failing)
    corpus = planted("sentence", 40)
    with pytest.raises(Refusal, match=r"the loss became nan at step 7 \(epoch 2\).*step 4 are kept") as refused:
        taught("sentence", tmp_path / "model", corpus=corpus, recipe=SHORT)
    assert "smaller --rate than 0.003" in str(refused.value)
    kept = weights_of(tmp_path / "model" / "last-good")
    assert all(bool(torch.isfinite(tensor).all()) for tensor in kept.values())
    monkeypatch.setattr(Classes, "loss", whole)
    assert taught("sentence", tmp_path / "model", corpus=corpus, recipe=replace(SHORT, rate=1e-3)).record["log"]


def test_a_rate_far_too_high_diverges_on_the_command_line(tmp_path: Path) -> None:
    data = tmp_path / "data.tsv"
    rows = [f"{item.label}\t{item.parts[0].text}" for item in planted("sentence", 40)]
    data.write_text("\n".join(["label\ttext", *rows]) + "\n", "utf-8")
    words = ("finetune", "tiny", str(data), "--task", "sentence", "-o", str(tmp_path / "model"))
    ended = command(*words, "--rate", "1e30", "--size", "8", "--epochs", "3")
    assert ended.status == 2
    assert "diverged" in ended.err and "--rate" in ended.err
    ended = command(*words, "--epochs", "1")
    assert (ended.status, ended.out.strip()) == (0, str(tmp_path / "model"))
    assert "majority" in ended.err
    assert json.loads(command(*words, "--epochs", "1", "--json").out)["task"] == "sentence"


@pytest.mark.parametrize(
    ("task", "data", "why"),
    [
        ("sentence", "token", "nothing for the task sentence"),
        ("token", "sentence", "carries label"),
        ("qa", "pair", "nothing for the task qa"),
    ],
)
def test_data_of_another_task_is_refused(task: TaskName, data: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(Refusal, match=why):
        taught(task, tmp_path / "model", corpus=planted(data, 20))


def test_scores_are_no_classes(tmp_path: Path) -> None:
    corpus = planted("sentence", 20)
    items = tuple(replace(item, label=f"{place}.5") for place, item in enumerate(corpus))
    with pytest.raises(Refusal, match="are scores"):
        taught("sentence", tmp_path / "model", corpus=replace(corpus, items=items))


def test_a_layer_can_be_named(tmp_path: Path) -> None:
    made = taught("token", tmp_path / "pos", corpus=planted("token", 40), recipe=SHORT, layer="pos")
    assert (made.record["measure"], made.record["labels"]) == ("accuracy", ["NOUN", "X"])
    named = taught("token", tmp_path / "names", corpus=planted("token", 40), recipe=SHORT, layer="entities")
    assert (named.record["measure"], named.record["labels"]) == ("span F1", ["O", "B-PER"])


def test_half_precision_learns_as_well(tmp_path: Path) -> None:
    made = taught("sentence", tmp_path / "model", recipe=replace(RECIPE, patience=4, precision="bfloat16"))
    assert made.scores()["accuracy"].value >= 0.95
    assert {tensor.dtype for tensor in weights_of(made.folder).values() if tensor.is_floating_point()} == {
        torch.float32
    }


def test_a_parser_learns_in_half_precision(tmp_path: Path) -> None:
    corpus = planted("dependency", 60)
    made = taught("dependency", tmp_path / "model", corpus=corpus, recipe=replace(RECIPE, precision="bfloat16"))
    assert made.scores()["LAS"].value >= 0.95


def test_a_recipe_is_settled_by_model_and_device() -> None:
    assert settled(Recipe(), width=768, device="cpu") == Recipe(rate=5e-5, precision="float32")
    assert settled(Recipe(), width=256, device="cpu").rate == 1.5e-4
    assert settled(Recipe(rate=1.0), width=256, device="cpu").rate == 1.0
