"""Peak memory while reduced sites are recorded into a folder, each size in a process of its own.

As in the command line, torch keeps no kernels of shapes it has seen (`--keep-kernels` of `record.py` lets it, and shows
what that costs).
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bertology.analyses import registry
from bertology.corpus.corpus import Corpus
from bertology.recording.recorder import record
from recording_cost.material import load_sentences, setting

SIZES = (1000, 4000, 12000)
ANALYSES = ("attention/targets", "attention/entropy")
LONGEST = 60
"""A pass needs memory by its longest input, and more sentences have longer ones: the few above this are left out."""


def print_memory(
    model: str, analyses: Sequence[str] = ANALYSES, sizes: Sequence[int] = SIZES, *, keep_kernels: bool = False
) -> None:
    """A table of peaks; the passes must not need more for more sentences."""
    environment = dict(os.environ) if keep_kernels else {**os.environ, "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "0"}
    print(f"{'sentences':>9}{'seconds':>9}{'peak MiB':>10}{'model':>9}{'corpus':>9}{'tokens':>9}{'passes':>9}")
    for size in sizes:
        command = [sys.executable, "-m", "recording_cost.memory", str(size), model, *analyses]
        ran = subprocess.run(
            command, stdout=subprocess.PIPE, text=True, check=True, cwd=Path(__file__).parents[1], env=environment
        )
        found: dict[str, float] = json.loads(ran.stdout)
        cells = "".join(f"{found[name]:>9.0f}" for name in ("model", "corpus", "tokens", "passes"))
        print(f"{size:>9}{found['seconds']:>9.0f}{found['peak']:>10.0f}{cells}", flush=True)
    print(
        "\npeak = interpreter, torch and model + the corpus as read + its tokens and their description on disk"
        "\n       + what the forward passes add, which must be flat"
    )


def _no_longer_than(words: int, corpus: Corpus) -> Corpus:
    return replace(corpus, examples=tuple(example for example in corpus if len(example.segments[0]) <= words))


def _resident() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


def measure(size: int, model: str, analyses: Sequence[str]) -> dict[str, float]:
    """MiB of this process at each step, and the seconds recording took."""
    declared = [registry.get(name) for name in analyses]
    sites = [site for analysis in declared for site in analysis.sites(analysis.resolve_options({}))]
    encoder = setting(model, load_sentences(8)).encoder
    record(encoder, load_sentences(8), sites)
    steps = [_resident()]
    corpus = _no_longer_than(LONGEST, load_sentences(size))
    steps.append(_resident())

    def note(done: int, total: int) -> None:
        if not done:
            steps.append(_resident())

    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        recording = record(encoder, corpus, sites, folder=Path(folder), progress=note)
        assert len(recording) == len(corpus), "every sentence is recorded"
    loaded, read, planned = steps
    return {
        "seconds": time.perf_counter() - start,
        "peak": _peak(),
        "model": loaded,
        "corpus": read - loaded,
        "tokens": planned - read,
        "passes": _peak() - planned,
    }


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]), sys.argv[2], sys.argv[3:])))
