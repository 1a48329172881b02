"""Peak memory while reduced sites are recorded to disk, one process per corpus size.

As in the command line, oneDNN does not cache kernels by shape; `--keep-kernels` of `record.py` turns the cache on.
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
from recording_cost.setup import load_sentences, prepare_setup

SIZES = (1000, 4000, 12000)
ANALYSES = ("attention/targets", "attention/entropy")
MAX_WORDS = 60
"""Longer inputs are skipped: the longest one determines the memory of a pass, and larger corpora have longer ones."""


def print_memory(
    model: str, analyses: Sequence[str] = ANALYSES, sizes: Sequence[int] = SIZES, *, keep_kernels: bool = False
) -> None:
    """Print a table of peaks; the memory of the passes must not grow with the corpus."""
    environment = dict(os.environ) if keep_kernels else {**os.environ, "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "0"}
    print(f"{'sentences':>9}{'seconds':>9}{'peak MiB':>10}{'model':>9}{'corpus':>9}{'tokens':>9}{'passes':>9}")
    for size in sizes:
        command = [sys.executable, "-m", "recording_cost.memory", str(size), model, *analyses]
        process = subprocess.run(
            command, stdout=subprocess.PIPE, text=True, check=True, cwd=Path(__file__).parents[1], env=environment
        )
        memory: dict[str, float] = json.loads(process.stdout)
        cells = "".join(f"{memory[name]:>9.0f}" for name in ("model", "corpus", "tokens", "passes"))
        print(f"{size:>9}{memory['seconds']:>9.0f}{memory['peak']:>10.0f}{cells}", flush=True)
    print(
        "\npeak = interpreter, torch and model + corpus + its tokens and recording plan"
        "\n       + forward passes, which must not grow"
    )


def _shorter_sentences(corpus: Corpus, max_words: int) -> Corpus:
    return replace(corpus, examples=tuple(example for example in corpus if len(example.segments[0]) <= max_words))


def _resident() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


def measure(size: int, model: str, analyses: Sequence[str]) -> dict[str, float]:
    """Memory of this process after each step in MiB, and the seconds of recording."""
    declared = [registry.get(name) for name in analyses]
    sites = [site for analysis in declared for site in analysis.sites(analysis.resolve_options({}))]
    encoder = prepare_setup(model, load_sentences(8)).encoder
    record(encoder, load_sentences(8), sites)
    resident = [_resident()]
    corpus = _shorter_sentences(load_sentences(size), MAX_WORDS)
    resident.append(_resident())

    def after_planning(done: int, total: int) -> None:
        if not done:
            resident.append(_resident())

    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as directory:
        recording = record(encoder, corpus, sites, folder=Path(directory), progress=after_planning)
        assert len(recording) == len(corpus), "every sentence is recorded"
    with_model, with_corpus, with_plan = resident
    return {
        "seconds": time.perf_counter() - start,
        "peak": _peak(),
        "model": with_model,
        "corpus": with_corpus - with_model,
        "tokens": with_plan - with_corpus,
        "passes": _peak() - with_plan,
    }


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]), sys.argv[2], sys.argv[3:])))
