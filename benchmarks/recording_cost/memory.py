"""Peak memory while reduced sites are recorded into a folder, each size in a process of its own."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

SIZES = (1000, 4000, 12000)


def print_memory(model: str) -> None:
    """A table of peaks; flat means that recording needs no more for more sentences."""
    print(f"{'sentences':>9}{'seconds':>9}{'peak MiB':>10}{'model':>9}{'corpus':>9}{'recording':>11}")
    for size in SIZES:
        command = [sys.executable, "-m", "recording_cost.memory", str(size), model]
        ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=Path(__file__).parents[1])
        found = json.loads(ran.stdout)
        print(
            f"{size:>9}{found['seconds']:>9.0f}{found['peak']:>10.0f}{found['model']:>9.0f}{found['corpus']:>9.0f}"
            f"{found['recording']:>11.0f}",
            flush=True,
        )
    print("\npeak = interpreter, torch and model (model) + the corpus as read (corpus) + all that recording adds")


def _resident() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


def measure(size: int, model: str) -> dict[str, Any]:
    """MiB of this process at each step, and the seconds recording took."""
    import time

    import torch

    from bertology.analyses.attention.entropy import ENTROPY
    from bertology.analyses.attention.targets import TARGETS
    from bertology.recording.policy import Policy
    from bertology.recording.recorder import record
    from recording_cost.material import corpus_of, setting

    encoder = setting(model, corpus_of(8), Policy()).encoder
    with torch.inference_mode():
        record(encoder, corpus_of(8), [TARGETS])
    loaded = _resident()
    corpus = corpus_of(size)
    read = _resident()
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        recording = record(encoder, corpus, [TARGETS, ENTROPY], folder=Path(folder))
        assert len(recording) == size, "every sentence is recorded"
    peak = _peak()
    return {
        "seconds": time.perf_counter() - start,
        "peak": peak,
        "model": loaded,
        "corpus": read - loaded,
        "recording": peak - read,
    }


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]), sys.argv[2])))
