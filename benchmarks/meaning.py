"""What a data-size curve on frozen features costs: features recorded once, beside encoding anew for each size and seed.

    python benchmarks/meaning.py                     # 240 sentences, 7 sizes x 5 seeds x 4 features
    python benchmarks/meaning.py --items 60          # a quick look
    python benchmarks/meaning.py --no-peer           # without encoding anew
    python benchmarks/meaning.py --store FOLDER      # finished cells are kept there: run it again to go on

The curve is that of `meaning/curves` (parts of speech, linear models) for the model's last layer, its input embeddings,
random vectors and the model with random weights. `anew` encodes what each size and seed needs, just then, and fits one
seed at a time by the same method. Both must score alike. Processor time of one thread; the mark is 5 x.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bertology.corpus.builtin import corpus_named
from bertology.encoder.load import load
from bertology.measures.meaning.cells import Cells, share
from bertology.measures.meaning.features import Feature, features_named
from bertology.measures.meaning.frozen_vectors import Meter
from bertology.measures.meaning.lessons import Choice, Lesson, lesson_of
from bertology.measures.work import Work

MARK = 5
FEATURES = "model,static,random,untrained"


def once(
    lesson: Lesson, features: Sequence[Feature], sizes: Sequence[int], work: Work
) -> tuple[NDArray[np.float64], float, float]:
    """(feature, size) scores, and the seconds of recording and of learning."""
    cells = Cells(lesson, work)
    start = time.process_time()
    vectors = cells.vectors(features)
    recorded = time.process_time()
    sums = cells.run(vectors, ["linear"], sizes)
    return share(sums.sum((0, 1)))[:, 0], recorded - start, time.process_time() - recorded


def anew(lesson: Lesson, features: Sequence[Feature], sizes: Sequence[int]) -> tuple[NDArray[np.float64], float]:
    """The same by encoding the items of each size and seed when they are needed, one seed after the other."""
    start = time.process_time()
    sums = np.zeros((len(features), len(sizes), 2))
    for place, feature in enumerate(features):
        for column, size in enumerate(sizes):
            for draw in lesson.draws:
                kept = [*draw.trained[:size], *draw.held]
                seen = draw._replace(trained=tuple(range(size)), held=tuple(range(size, len(kept))))
                own = replace(lesson, learnt=tuple(lesson.learnt[item] for item in kept), draws=(seen,))
                cells = Cells(own, Work())
                sums[place, column] += cells.run(cells.vectors([feature]), ["linear"], [size])[..., 0, 0, 0, :].sum(
                    (0, 1)
                )
    return share(sums), time.process_time() - start


def main() -> None:
    """Print what each way takes."""
    options = _options()
    work = Work(options.store, _told)
    choice = Choice("token", "pos", options.items, "", 0, options.seeds, 0)
    lesson = lesson_of(corpus_named(options.corpus), choice, purpose="benchmarks/meaning")
    encoder, sizes = load(options.model), lesson.sizes(options.sizes, 0.01)
    features = features_named(FEATURES, encoder)
    print(f"{options.model} on {options.corpus}: {lesson.said}; sizes {', '.join(map(str, sizes))}")
    scores, recording, learning = once(lesson, features, sizes, work)
    print(f"{'recorded once':<24}{recording + learning:>8.1f} s: {recording:.1f} recording, {learning:.1f} learning")
    if options.no_peer:
        return
    again, seconds = anew(lesson, features, sizes)
    print(f"{'anew for each':<24}{seconds:>8.1f} s")
    print(f"largest difference of a score {np.abs(scores - again).max():.3f}")
    print(f"mark: {MARK} x; {seconds / (recording + learning):.1f} x")


def _told(title: str) -> Meter:
    def tell(done: int, total: int) -> None:
        if done == total:
            print(f"  {title}: done", file=sys.stderr, flush=True)

    return tell


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", default="mini")
    parser.add_argument("--corpus", default="english")
    parser.add_argument("--items", type=int, default=240)
    parser.add_argument("--sizes", type=int, default=7)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--store", type=Path, help="keep features and finished cells here")
    parser.add_argument("--no-peer", action="store_true", help="leave out encoding anew")
    parser.add_argument("--threads", type=int, default=1, help="threads of the linear algebra")
    options = parser.parse_args()
    wanted = str(options.threads)
    if os.environ.get("OMP_NUM_THREADS") != wanted:  # read when NumPy is imported, so begin again
        os.environ |= {"OMP_NUM_THREADS": wanted, "OPENBLAS_NUM_THREADS": wanted, "MKL_NUM_THREADS": wanted}
        os.execv(sys.executable, [sys.executable, *sys.argv])
    return options


if __name__ == "__main__":
    main()
