from __future__ import annotations

import dataclasses
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import small
import torch
from pretraining.batch import draw_batch
from pretraining.model import losses, make_model
from pretraining.recipe import Recipe, learning_rate
from pretraining.train import Run, train
from transformers import BertForPreTraining, BertTokenizer


def log(folder: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()]


def test_loss_falls_and_the_directory_loads(tmp_path: Path) -> None:
    stream = small.stream(tmp_path / "tokeniser")
    run = Run(folder=tmp_path / "run", tokeniser=tmp_path / "tokeniser", every=50, report=5)
    trained = train(stream, small.recipe(steps=80, dropout=0.0), run)
    words = [line["words"] for line in log(run.folder)]
    assert words[0] > 4.5
    assert words[-1] < 3
    both: Any = BertForPreTraining.from_pretrained(run.folder / "at-100", dtype=torch.float32, output_loading_info=True)
    loaded, report = both
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    torch.testing.assert_close(
        loaded.bert.embeddings.word_embeddings.weight,
        trained.bert.embeddings.word_embeddings.weight.half().float(),
    )
    assert loaded.cls.predictions.decoder.weight is loaded.bert.embeddings.word_embeddings.weight
    assert BertTokenizer.from_pretrained(run.folder / "at-100").vocab_size <= 200


def test_a_stopped_run_resumes_to_the_same_weights(tmp_path: Path) -> None:
    stream = small.stream(tmp_path / "tokeniser")
    recipe = small.recipe(steps=20)
    whole = train(stream, recipe, Run(folder=tmp_path / "whole", tokeniser=tmp_path / "tokeniser"))
    run = Run(folder=tmp_path / "broken", tokeniser=tmp_path / "tokeniser", report=8, stop_after=0)
    train(stream, recipe, run)
    assert log(run.folder)[-1]["step"] == 8
    resumed = train(stream, recipe, dataclasses.replace(run, stop_after=float("inf")))
    for (name, one), other in zip(whole.named_parameters(), resumed.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0, msg=name)


def test_a_kill_between_checkpoints_loses_only_the_steps_since(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = small.stream(tmp_path / "tokeniser")
    recipe = small.recipe(steps=12)
    whole = train(stream, recipe, Run(folder=tmp_path / "whole", tokeniser=tmp_path / "tokeniser"))
    run = Run(folder=tmp_path / "killed", tokeniser=tmp_path / "tokeniser", every=5)

    def dying(*arguments: object) -> object:
        if arguments[2] == 8:
            raise KeyboardInterrupt
        return draw_batch(*arguments)  # pyright: ignore[reportArgumentType]

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("pretraining.train.draw_batch", dying)
        train(stream, recipe, run)
    resumed = train(stream, recipe, run)
    for one, other in zip(whole.parameters(), resumed.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


def test_another_recipe_is_refused(tmp_path: Path) -> None:
    stream = small.stream(tmp_path / "tokeniser")
    run = Run(folder=tmp_path / "run", tokeniser=tmp_path / "tokeniser")
    train(stream, small.recipe(steps=2), run)
    with pytest.raises(ValueError, match="another recipe"):
        train(stream, small.recipe(steps=3), run)


def test_losses_are_those_of_the_model_itself(tmp_path: Path) -> None:
    recipe = small.recipe(dropout=0.0)
    stream = small.stream(tmp_path)
    model = make_model(recipe.shape, seed=0).eval()
    batch = draw_batch(stream, recipe, 0)
    ours = losses(model, batch.short, batch.short_hidden, padded=True)
    labels = torch.full_like(batch.short.ids, -100)
    hidden = batch.short_hidden
    labels[torch.arange(len(labels))[:, None].expand_as(hidden.places)[hidden.used], hidden.places[hidden.used]] = (
        hidden.truths[hidden.used]
    )
    places = torch.arange(labels.shape[1])
    out = model(
        input_ids=hidden.ids,
        token_type_ids=batch.short.segments,
        attention_mask=(places[None] < batch.short.lengths[:, None]).long(),
    )
    words = torch.nn.functional.cross_entropy(out.prediction_logits.flatten(0, 1), labels.flatten(), reduction="sum")
    torch.testing.assert_close(ours.words, words, rtol=1e-4, atol=1e-3)
    pairs = batch.short.random >= 0
    sentences = torch.nn.functional.cross_entropy(
        out.seq_relationship_logits[pairs], batch.short.random[pairs], reduction="sum"
    )
    torch.testing.assert_close(ours.sentences, sentences, rtol=1e-4, atol=1e-3)


def test_the_rate_rises_then_falls_to_nothing() -> None:
    recipe = Recipe(steps=100, rate=1.0, warm_up=10)
    rates = [learning_rate(recipe, step) for step in range(100)]
    assert rates[0] == pytest.approx(0.1)
    assert max(rates) == rates[9] == 1.0
    assert rates[-1] == pytest.approx(1 / 90)
    assert all(one > other for one, other in pairwise(rates[10:]))
