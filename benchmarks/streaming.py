"""Peak memory of recording a corpus as a stream, by the number of its sentences; each size in a process of its own.

    python benchmarks/streaming.py              # 10 thousand and 100 thousand sentences
    python benchmarks/streaming.py --million    # and 1 million
    python benchmarks/streaming.py --whole      # beside it, the same sentences read at once

The limit is the peak of the smallest size: a stream must not need more than that for any size.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bertology.encoder.builtin import TINY_WORDS

SIZES = (10_000, 100_000)
MODEL = "random:tiny"


def write_sentences(file: Path, n_sentences: int) -> None:
    rng, words = random.Random(0), TINY_WORDS.split()
    with file.open("w", encoding="utf-8") as stream:
        for _ in range(n_sentences):
            stream.write(" ".join(rng.choices(words, k=rng.randint(3, 8))) + "\n")


def peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(file: Path, folder: Path, *, whole: bool) -> dict[str, float]:
    """Record the sentences, then read all inputs and arrays again; peaks in MB after each."""
    import bertology
    from bertology.analyses.attention.entropy import entropy_site

    encoder = bertology.load(MODEL)
    imported = peak_megabytes()
    start = time.perf_counter()
    corpus = bertology.read(file) if whole else bertology.stream_corpus(file)
    recording = bertology.record(encoder, corpus, [entropy_site], folder=folder)
    seconds, recorded = time.perf_counter() - start, peak_megabytes()
    n_tokens = sum(len(recorded_input.tokens) for recorded_input in recording.inputs)
    mean = sum(float(array.mean()) for array in recording[entropy_site]) / len(recording)
    return {
        "sentences": len(recording),
        "tokens": n_tokens,
        "imported": imported,
        "recorded": recorded,
        "read": peak_megabytes(),
        "seconds": seconds,
        "mean entropy": mean,
    }


def measure_in_process(n_sentences: int, *, whole: bool) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "sentences.txt"
        write_sentences(file, n_sentences)
        command = [sys.executable, __file__, "--measure", str(file), *(["--whole"] if whole else [])]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--million", action="store_true")
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--sizes", type=int, nargs="+", default=None)
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure is not None:
        folder = arguments.measure.parent / "recording"
        print(json.dumps(measure(arguments.measure, folder, whole=arguments.whole)))
        return
    sizes = arguments.sizes or [*SIZES, *([1_000_000] if arguments.million else [])]
    print("| sentences | read | tokens | seconds | peak, imported | peak, recorded | peak, read again | mean entropy |")
    print("|---|---|---|---|---|---|---|---|")
    for n_sentences in sizes:
        for whole in (False, True) if arguments.whole else (False,):
            row = measure_in_process(n_sentences, whole=whole)
            print(
                f"| {row['sentences']:,.0f} | {'at once' if whole else 'as a stream'} | {row['tokens']:,.0f} | "
                f"{row['seconds']:.0f} | {row['imported']:.0f} MB | {row['recorded']:.0f} MB | {row['read']:.0f} MB | "
                f"{row['mean entropy']:.6f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
