"""Run in a process of its own by `test_run_directory`: pairs of processes fine-tune into one directory at once."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
from safetensors.torch import load_file
from tests.training.interrupted_runs import CONFIG, CORPUS

from bertology.encoder.builtin import tiny_encoder
from bertology.encoder.layer_variants import LayerVariant
from bertology.encoder.task_heads import add_task_head
from bertology.errors import Refusal
from bertology.training.finetune import finetune
from forks import REFUSED, run_together

N_RUNS = 10
SHORT_CONFIG = replace(CONFIG, epochs=2)


def fine_tune(folder: Path, seed: int) -> int:
    """Fine-tune into a folder; the exit status."""
    try:
        finetune("tiny", CORPUS, "sentence", folder, config=replace(SHORT_CONFIG, seed=seed), seconds=0.0)
    except Refusal as refusal:
        return REFUSED if "contains a run with another config" in str(refusal) else 1
    return 0


def collide(root: Path, seeds: tuple[int, int], expected: dict[int, Path]) -> dict[str, int]:
    """How the pairs ended, and whether the weights are those of the run that won."""
    counts: Counter[str] = Counter()
    for number in range(N_RUNS):
        folder = root / f"{seeds}-{number}"
        statuses = run_together([partial(fine_tune, folder, seed) for seed in seeds])
        winner = seeds[statuses.index(0)] if 0 in statuses else seeds[0]
        found, right = (load_file(each / "model.safetensors") for each in (folder, expected[winner]))
        is_right = all(torch.equal(found[name], right[name]) for name in right)
        counts[f"{sorted(statuses)} {'right' if is_right else 'wrong'}"] += 1
    return dict(counts)


def print_outcomes(root: Path) -> None:
    """Let pairs of runs collide, and print what came of it."""
    os.fsync = lambda descriptor: None  # guards against a crash of the machine only
    add_task_head(tiny_encoder(), "label", ("a", "b"), variant=LayerVariant(), seed=0)
    alone = {seed: root / f"alone-{seed}" for seed in (0, 1)}
    for seed, folder in alone.items():
        finetune("tiny", CORPUS, "sentence", folder, config=replace(SHORT_CONFIG, seed=seed))
    print(json.dumps({"other": collide(root, (0, 1), alone), "same": collide(root, (0, 0), alone)}))
