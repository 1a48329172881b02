from __future__ import annotations

import dataclasses
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import small_pretraining
import torch
from pretraining.batches import sample_batch
from pretraining.config import PretrainingConfig, learning_rate_at
from pretraining.model import make_model, summed_losses
from pretraining.pairs import NO_PAIR
from pretraining.train import RunOptions, train
from transformers import BertForPreTraining, BertTokenizer


def read_log(directory: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (directory / "log.jsonl").read_text(encoding="utf-8").splitlines()]


def test_the_loss_falls_and_the_exported_model_can_be_loaded(tmp_path: Path) -> None:
    stream = small_pretraining.token_stream(tmp_path / "tokeniser")
    (tmp_path / "tokeniser" / "vocab.txt").unlink()  # the folders of the built-in models have none
    run = RunOptions(directory=tmp_path / "run", tokeniser=tmp_path / "tokeniser", checkpoint_every=50, log_every=5)
    trained = train(stream, small_pretraining.pretraining_config(steps=80, dropout=0.0), run)
    mlm_losses = [line["mlm_loss"] for line in read_log(run.directory)]
    assert mlm_losses[0] > 4.5
    assert mlm_losses[-1] < 3
    model_and_info: Any = BertForPreTraining.from_pretrained(
        run.directory / "at-100", dtype=torch.float32, output_loading_info=True
    )
    loaded, loading_info = model_and_info
    assert not loading_info["missing_keys"]
    assert not loading_info["unexpected_keys"]
    torch.testing.assert_close(
        loaded.bert.embeddings.word_embeddings.weight,
        trained.bert.embeddings.word_embeddings.weight.half().float(),
    )
    assert loaded.cls.predictions.decoder.weight is loaded.bert.embeddings.word_embeddings.weight
    assert BertTokenizer.from_pretrained(run.directory / "at-100").vocab_size <= 200


def test_bfloat16_arithmetic_changes_weights_by_its_rounding_only(tmp_path: Path) -> None:
    stream = small_pretraining.token_stream(tmp_path / "tokeniser")
    config = small_pretraining.pretraining_config(steps=1, dropout=0.0)
    losses: list[float] = []
    for name, bfloat16 in (("float32", False), ("bfloat16", True)):
        run = RunOptions(directory=tmp_path / name, tokeniser=tmp_path / "tokeniser", bfloat16=bfloat16)
        trained = train(stream, config, run)
        assert all(weights.dtype == torch.float32 for weights in trained.parameters())
        losses.append(read_log(run.directory)[-1]["mlm_loss"])
    assert losses[0] != losses[1]
    assert losses[1] == pytest.approx(losses[0], rel=0.01)


def test_a_stopped_run_resumes_to_the_same_weights(tmp_path: Path) -> None:
    stream = small_pretraining.token_stream(tmp_path / "tokeniser")
    config = small_pretraining.pretraining_config(steps=20)
    uninterrupted = train(
        stream, config, RunOptions(directory=tmp_path / "uninterrupted", tokeniser=tmp_path / "tokeniser")
    )
    run = RunOptions(directory=tmp_path / "stopped", tokeniser=tmp_path / "tokeniser", log_every=8, stop_after=0)
    train(stream, config, run)
    assert read_log(run.directory)[-1]["step"] == 8
    resumed = train(stream, config, dataclasses.replace(run, stop_after=float("inf")))
    for (name, expected), weights in zip(uninterrupted.named_parameters(), resumed.parameters(), strict=True):
        torch.testing.assert_close(weights, expected, rtol=0, atol=0, msg=name)


def test_a_run_killed_between_checkpoints_resumes_to_the_same_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = small_pretraining.token_stream(tmp_path / "tokeniser")
    config = small_pretraining.pretraining_config(steps=12)
    uninterrupted = train(
        stream, config, RunOptions(directory=tmp_path / "uninterrupted", tokeniser=tmp_path / "tokeniser")
    )
    run = RunOptions(directory=tmp_path / "killed", tokeniser=tmp_path / "tokeniser", checkpoint_every=5)

    def killed_at_step_8(*arguments: object) -> object:
        if arguments[2] == 8:
            raise KeyboardInterrupt
        return sample_batch(*arguments)  # pyright: ignore[reportArgumentType]

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("pretraining.train.sample_batch", killed_at_step_8)
        train(stream, config, run)
    resumed = train(stream, config, run)
    for expected, weights in zip(uninterrupted.parameters(), resumed.parameters(), strict=True):
        torch.testing.assert_close(weights, expected, rtol=0, atol=0)


def test_a_run_is_not_resumed_with_another_configuration(tmp_path: Path) -> None:
    stream = small_pretraining.token_stream(tmp_path / "tokeniser")
    run = RunOptions(directory=tmp_path / "run", tokeniser=tmp_path / "tokeniser")
    train(stream, small_pretraining.pretraining_config(steps=2), run)
    with pytest.raises(ValueError, match="another configuration"):
        train(stream, small_pretraining.pretraining_config(steps=3), run)


def test_losses_equal_those_of_the_full_model(tmp_path: Path) -> None:
    config = small_pretraining.pretraining_config(dropout=0.0)
    stream = small_pretraining.token_stream(tmp_path)
    model = make_model(config.model, seed=0).eval()
    batch = sample_batch(stream, config, 0)
    losses = summed_losses(model, batch.short, batch.short_masked, has_padding=True)
    labels = torch.full_like(batch.short.ids, -100)
    masked = batch.short_masked
    labels[
        torch.arange(len(labels))[:, None].expand_as(masked.positions)[masked.slot_mask],
        masked.positions[masked.slot_mask],
    ] = masked.labels[masked.slot_mask]
    positions = torch.arange(labels.shape[1])
    output = model(
        input_ids=masked.ids,
        token_type_ids=batch.short.segments,
        attention_mask=(positions[None] < batch.short.lengths[:, None]).long(),
    )
    mlm = torch.nn.functional.cross_entropy(output.prediction_logits.flatten(0, 1), labels.flatten(), reduction="sum")
    torch.testing.assert_close(losses.mlm, mlm, rtol=1e-4, atol=1e-3)
    is_pair = batch.short.nsp_labels != NO_PAIR
    nsp = torch.nn.functional.cross_entropy(
        output.seq_relationship_logits[is_pair], batch.short.nsp_labels[is_pair], reduction="sum"
    )
    torch.testing.assert_close(losses.nsp, nsp, rtol=1e-4, atol=1e-3)


def test_the_learning_rate_warms_up_and_decays_to_zero() -> None:
    config = PretrainingConfig(steps=100, learning_rate=1.0, warmup_steps=10)
    rates = [learning_rate_at(config, step) for step in range(100)]
    assert rates[0] == pytest.approx(0.1)
    assert max(rates) == rates[9] == 1.0
    assert rates[-1] == pytest.approx(1 / 90)
    assert all(earlier > later for earlier, later in pairwise(rates[10:]))
