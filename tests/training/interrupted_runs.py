"""Run in a process of its own by `test_checkpointer`: fine-tunes in child processes and kills them; a JSON summary.

Everything is imported once and the children are forks, so that many interruptions take seconds.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors.torch import load_file

from bertology.encoder.builtin import tiny_encoder
from bertology.encoder.layer_variants import LayerVariant
from bertology.encoder.task_heads import add_task_head
from bertology.training.finetune import finetune
from bertology.training.loop import TrainingConfig
from planted_tasks import planted_corpus

N_KILLS = 8
CONFIG = TrainingConfig(epochs=3, learning_rate=3e-3, batch_size=8)
CORPUS = planted_corpus("sentence", 64)


def fork(work: Callable[[], object]) -> int:
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException as error:
            os.write(2, repr(error).encode())
            os._exit(1)
        os._exit(0)
    return child


def finetuning(folder: Path, kill_at: int | None = None) -> Callable[[], object]:
    def on_step(step: int, n_steps: int) -> None:
        if kill_at is not None and step >= kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    return lambda: finetune(
        "tiny",
        CORPUS,
        "sentence",
        folder,
        config=CONFIG,
        validation_fraction=0.2,
        seconds=0.0,
        progress=lambda _: on_step,
    )


def print_summary(root: Path) -> None:
    """Compare an uninterrupted run with one that is killed at set steps and at random moments."""
    # Files written by a killed process survive it; fsync guards against a crash of the machine only.
    os.fsync = lambda descriptor: None
    # Imports what the children need.
    add_task_head(tiny_encoder(), "label", ("a", "b"), variant=LayerVariant(), seed=0)
    os.waitpid(fork(finetuning(root / "uninterrupted")), 0)
    rng, n_killed, n_finished = random.Random(0), 0, 0
    for number in range(N_KILLS):
        # Every other kill at a set step, among them the first and the last step of an epoch.
        kill_at = (1, 7, 8, 17)[number // 2] if number % 2 == 0 else None
        child = fork(finetuning(root / "killed", kill_at))
        if kill_at is None:
            time.sleep(rng.uniform(0.0, 0.15))
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        n_killed += os.WIFSIGNALED(status)
        n_finished += os.WIFEXITED(status)
    _, status = os.waitpid(fork(finetuning(root / "killed")), 0)
    folders = (root / "uninterrupted", root / "killed")
    first, second = (load_file(folder / "model.safetensors") for folder in folders)
    metadata = [json.loads((folder / "finetuning.json").read_text("utf-8")) for folder in folders]
    logs = [[(log["epoch"], log["loss"], log["score"]) for log in run["epochs"]] for run in metadata]
    summary = {
        "n_killed": n_killed,
        "n_finished": n_finished,
        "status": status,
        "same_logs": logs[0] == logs[1],
        "same_weights": all(torch.equal(first[name], second[name]) for name in first),
        "files": sorted(file.name for file in (root / "killed").iterdir()),
    }
    print(json.dumps(summary))
