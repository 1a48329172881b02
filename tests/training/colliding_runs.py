"""Run as a program by `test_run_directory`: pairs of processes fine-tune into one directory at the same moment."""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import torch
from interrupted_runs import CONFIG, CORPUS
from safetensors.torch import load_file

from bertology.encoder.builtin import tiny_encoder
from bertology.encoder.layer_variants import LayerVariant
from bertology.encoder.task_heads import add_task_head
from bertology.errors import Refusal
from bertology.training.finetune import finetune

N_RUNS = 10
SHORT_CONFIG = replace(CONFIG, epochs=2)
REFUSED = 2
START_SECONDS = 0.02


def start_run(folder: Path, seed: int, start: float) -> int:
    """Start a process that fine-tunes from this moment on."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        while time.monotonic() < start:
            pass
        finetune("tiny", CORPUS, "sentence", folder, config=replace(SHORT_CONFIG, seed=seed), seconds=0.0)
        status = 0
    except Refusal as refusal:
        status = REFUSED if "contains a run with another config" in str(refusal) else 1
    except BaseException as error:
        os.write(2, repr(error).encode())
    finally:
        os._exit(status)


def collide(root: Path, seeds: tuple[int, int], expected: dict[int, Path]) -> dict[str, int]:
    """How the pairs ended, and whether the weights are those of the run that won."""
    counts: Counter[str] = Counter()
    for number in range(N_RUNS):
        folder, start = root / f"{seeds}-{number}", time.monotonic() + START_SECONDS
        children = [start_run(folder, seed, start) for seed in seeds]
        statuses = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        winner = seeds[statuses.index(0)] if 0 in statuses else seeds[0]
        found, right = (load_file(each / "model.safetensors") for each in (folder, expected[winner]))
        is_right = all(torch.equal(found[name], right[name]) for name in right)
        counts[f"{sorted(statuses)} {'right' if is_right else 'wrong'}"] += 1
    return dict(counts)


if __name__ == "__main__":
    torch.set_num_threads(1)
    os.fsync = lambda descriptor: None  # guards against a crash of the machine only
    add_task_head(tiny_encoder(), "label", ("a", "b"), variant=LayerVariant(), seed=0)
    root = Path(sys.argv[1])
    alone = {seed: root / f"alone-{seed}" for seed in (0, 1)}
    for seed, folder in alone.items():
        finetune("tiny", CORPUS, "sentence", folder, config=replace(SHORT_CONFIG, seed=seed))
    print(json.dumps({"other": collide(root, (0, 1), alone), "same": collide(root, (0, 0), alone)}))
