"""A run that is killed at any moment and restarted ends with the weights of an uninterrupted run."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
import torch
from tests.training.interrupted_runs import print_summary

from bertology.checked_files import write_checked_bytes
from bertology.errors import Refusal
from bertology.training.checkpointer import STATE_FILE, STATE_FORMAT, Checkpointer
from bertology.training.loop import TrainingHistory, TrainingState
from warm_processes import WarmProcess


def test_a_killed_run_ends_with_the_same_weights(tmp_path: Path) -> None:
    done = WarmProcess(print_summary, tmp_path).wait()
    assert done.status == 0, done.err
    summary = json.loads(done.out.splitlines()[-1])
    assert summary["status"] == 0, done.err
    assert summary["n_killed"] >= 4, summary
    assert summary["same_logs"], summary
    assert summary["same_weights"], summary
    model_files = {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}
    assert set(summary["files"]) == model_files | {"finetuning.json"}


def test_a_state_is_saved_and_restored(tmp_path: Path) -> None:
    checkpointer = Checkpointer(tmp_path)
    assert checkpointer.latest() is None
    history = TrainingHistory(0.5, 1, [{"epoch": 1, "loss": 0.25}])
    checkpointer.save(lambda: TrainingState(step=3, losses=[1.0], history=history), force=True)
    state = checkpointer.latest()
    assert state is not None and (state.step, state.losses, state.history) == (3, [1.0], history)


def test_unreadable_and_old_states_are_refused(tmp_path: Path) -> None:
    checkpointer = Checkpointer(tmp_path)
    buffer = io.BytesIO()
    torch.save({"step": 3, "progress": {}}, buffer)
    write_checked_bytes(tmp_path / STATE_FILE, buffer.getvalue())
    with pytest.raises(Refusal, match="written by an earlier version of bertology"):
        checkpointer.latest()
    intact = (tmp_path / STATE_FILE).read_bytes()
    for position in range(0, len(intact), len(intact) // 100):
        (tmp_path / STATE_FILE).write_bytes(intact[:position] + bytes([intact[position] ^ 1]) + intact[position + 1 :])
        with pytest.raises(Refusal, match="digest does not match"):
            checkpointer.latest()
    (tmp_path / STATE_FILE).write_bytes(b"no state")
    with pytest.raises(Refusal, match="cannot be read"):
        checkpointer.latest()


@pytest.mark.parametrize(
    "content",
    [
        [1, 2, 3],
        {"format": STATE_FORMAT},
        {"format": STATE_FORMAT, "history": 3},
        {"format": STATE_FORMAT, "history": {}, "x": 1},
    ],
)
def test_other_content_with_the_right_digest_is_refused(content: object, tmp_path: Path) -> None:
    buffer = io.BytesIO()
    torch.save(content, buffer)
    write_checked_bytes(tmp_path / STATE_FILE, buffer.getvalue())
    with pytest.raises(Refusal, match="cannot be read"):
        Checkpointer(tmp_path).latest()
