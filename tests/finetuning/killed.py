"""Run as a program by `test_interrupted`: fine-tunes in child processes, kills them, and prints what it saw as JSON.

Everything is imported once and the children are forks, so that many interruptions take seconds.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from planted_tasks import planted
from safetensors.torch import load_file

from bertology.encoder import tiny
from bertology.encoder.task_heads import with_head
from bertology.encoder.variant import Variant
from bertology.finetuning.finetune import finetune
from bertology.finetuning.loop import Recipe

KILLS = 8
RECIPE = Recipe(epochs=3, rate=3e-3, size=8)
CORPUS = planted("sentence", 64)


def _forked(work: Callable[[], object]) -> int:
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException as error:
            os.write(2, repr(error).encode())
            os._exit(1)
        os._exit(0)
    return child


def _teach(folder: Path, stop_at: int | None = None) -> Callable[[], object]:
    def meter(done: int, total: int) -> None:
        if stop_at is not None and done >= stop_at:
            os.kill(os.getpid(), signal.SIGKILL)

    return lambda: finetune(
        "tiny", CORPUS, "sentence", folder, recipe=RECIPE, dev_share=0.2, seconds=0.0, progress=lambda _: meter
    )


def main(root: Path) -> None:
    """Compare one run that was never interrupted with one that was, at set steps and at moments nobody chose."""
    torch.set_num_threads(1)
    # What a killed process has written stays without it; only a crash of the machine does not leave that.
    os.fsync = lambda descriptor: None
    with_head(tiny.untrained(), "label", ("a", "b"), variant=Variant(), seed=0)  # imports what the children need
    os.waitpid(_forked(_teach(root / "whole")), 0)
    draw, killed, ended = random.Random(0), 0, 0
    for number in range(KILLS):
        # Every other one at a set step, among them the first and the last of an epoch.
        stop_at = (1, 7, 8, 17)[number // 2] if number % 2 == 0 else None
        child = _forked(_teach(root / "killed", stop_at))
        if stop_at is None:
            time.sleep(draw.uniform(0.0, 0.15))
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        killed += os.WIFSIGNALED(status)
        ended += os.WIFEXITED(status)
    _, status = os.waitpid(_forked(_teach(root / "killed")), 0)
    one, other = (load_file(root / name / "model.safetensors") for name in ("whole", "killed"))
    logs = [json.loads((root / name / "finetuning.json").read_text("utf-8"))["log"] for name in ("whole", "killed")]
    same_log = [[(line["epoch"], line["loss"], line["score"]) for line in log] for log in logs]
    print(json.dumps({
        "killed": killed,
        "ended": ended,
        "status": status,
        "same_log": same_log[0] == same_log[1],
        "same": all(torch.equal(one[name], other[name]) for name in one),
        "left": sorted(file.name for file in (root / "killed").iterdir()),
    }))  # fmt: skip


if __name__ == "__main__":
    main(Path(sys.argv[1]))
