"""Cost of learning curves on frozen features: features recorded once, or computed again for each size and seed.

    python benchmarks/learning_curves.py                     # 240 sentences, 7 sizes x 5 seeds x 4 features
    python benchmarks/learning_curves.py --sample-size 60    # a quick look
    python benchmarks/learning_curves.py --no-comparison         # without the comparison
    python benchmarks/learning_curves.py --store DIRECTORY   # stores finished cells: run it again to resume

The curves are those of `features/learning_curves` (parts of speech, linear classifiers) for the model's last layer, its
input embeddings, random vectors and the untrained model. The comparison encodes the examples of each size and seed
when they are needed, and fits one seed at a time by the same method. Both must have the same scores. Processor time of
one thread; the target is 5 x.
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

from bertology.analyses.cache import AnalysisCache
from bertology.analyses.frozen_features.dataset import DatasetOptions, FrozenFeatureDataset, build_dataset
from bertology.analyses.frozen_features.extractors import FeatureExtractor, parse_features
from bertology.analyses.frozen_features.predictions import extract_all
from bertology.analyses.frozen_features.score_grid import ScoreGrid, score_from_counts
from bertology.arrays import FloatArray
from bertology.corpus.read import load_corpus
from bertology.encoder.load import load
from bertology.progress import ProgressCallback

TARGET = 5
FEATURES = "model,static,random,untrained"


def record_once(
    dataset: FrozenFeatureDataset, features: Sequence[FeatureExtractor], sizes: Sequence[int], cache: AnalysisCache
) -> tuple[FloatArray, float, float]:
    """(feature, size) scores, and the seconds of recording and of training."""
    start = time.process_time()
    vectors = extract_all(dataset, features, cache)
    recorded = time.process_time()
    counts = ScoreGrid(dataset, cache).run(vectors, ["linear"], sizes)
    return score_from_counts(counts.sum((0, 1)))[:, 0], recorded - start, time.process_time() - recorded


def encode_each_time(
    dataset: FrozenFeatureDataset, features: Sequence[FeatureExtractor], sizes: Sequence[int]
) -> tuple[FloatArray, float]:
    """(feature, size) scores with the examples of each size and seed encoded when needed, and the seconds."""
    start = time.process_time()
    counts = np.zeros((len(features), len(sizes), 2))
    for row, feature in enumerate(features):
        for column, size in enumerate(sizes):
            for split in dataset.seed_splits:
                used = [*split.train[:size], *split.validation]
                seed_split = split._replace(train=tuple(range(size)), validation=tuple(range(size, len(used))))
                train = tuple(dataset.train[index] for index in used)
                part = replace(dataset, train=train, seed_splits=(seed_split,))
                cache = AnalysisCache()
                cell = ScoreGrid(part, cache).run(extract_all(part, [feature], cache), ["linear"], [size])
                counts[row, column] += cell[..., 0, 0, 0, :].sum((0, 1))
    return score_from_counts(counts), time.process_time() - start


def main() -> None:
    """Print the time of both methods."""
    options = _options()
    cache = AnalysisCache(options.store, _print_progress)
    dataset_options = DatasetOptions("token", "pos", options.sample_size, n_seeds=options.n_seeds)
    dataset = build_dataset(load_corpus(options.corpus), dataset_options, analysis_name="benchmarks/learning_curves")
    encoder, sizes = load(options.model), dataset.train_sizes(options.n_train_sizes, 0.01)
    features = parse_features(FEATURES, encoder)
    print(f"{options.model} on {options.corpus}: {dataset.sample}; sizes {', '.join(map(str, sizes))}")
    scores, recording, training = record_once(dataset, features, sizes, cache)
    print(f"{'recorded once':<24}{recording + training:>8.1f} s: {recording:.1f} recording, {training:.1f} training")
    if options.no_comparison:
        return
    repeated_scores, seconds = encode_each_time(dataset, features, sizes)
    print(f"{'encoded each time':<24}{seconds:>8.1f} s")
    print(f"largest difference of a score {np.abs(scores - repeated_scores).max():.3f}")
    print(f"target: {TARGET} x; {seconds / (recording + training):.1f} x")


def _print_progress(title: str) -> ProgressCallback:
    def progress(done: int, total: int) -> None:
        if done == total:
            print(f"  {title}: done", file=sys.stderr, flush=True)

    return progress


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", default="mini", help="model, as for `bertology run --model`")
    parser.add_argument("--corpus", default="english", help="corpus with parts of speech")
    parser.add_argument("--sample-size", type=int, default=240, help="number of sentences")
    parser.add_argument("--n-train-sizes", type=int, default=7, help="number of training sizes")
    parser.add_argument("--n-seeds", type=int, default=5, help="number of repetitions")
    parser.add_argument("--store", type=Path, help="directory for features and finished cells")
    parser.add_argument("--no-comparison", action="store_true", help="skip the comparison")
    parser.add_argument("--threads", type=int, default=1, help="threads of the linear algebra")
    options = parser.parse_args()
    threads = str(options.threads)
    if os.environ.get("OMP_NUM_THREADS") != threads:  # read when NumPy is imported, so start again
        os.environ |= {"OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}
        os.execv(sys.executable, [sys.executable, *sys.argv])
    return options


if __name__ == "__main__":
    main()
