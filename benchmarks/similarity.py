"""Speed of RSA over all pairs of stimuli, compared with scipy's pdist and pearsonr.

    python benchmarks/similarity.py          # 1,000 stimuli, 3 layers: some seconds
    python benchmarks/similarity.py --full   # 5,000 stimuli, 13 layers, minutes, nearly all of them in scipy
    python benchmarks/similarity.py --memory # peak memory for two numbers of stimuli, one process each

States are synthetic: those of the second model are those of the first, rotated and with noise. `intervals` are the
analysis's jackknife over 20 groups of sentences; `blockwise` computes kernels that are not inner products. The target
is in processor time, on one thread by default.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist
from scipy.stats import pearsonr

from bertology.analyses.geometry.representation_similarity import kernel_similarity
from bertology.analyses.geometry.representation_similarity.kernel_similarity import pearson
from bertology.estimates.jackknife import assign_groups

TARGET = 5
GROUPS, STIMULI_PER_SENTENCE = 20, 20
MEMORY_SIZES = (2000, 8000)

States = NDArray[np.float32]


def synthetic_layer(number: int, stimuli: int, width: int) -> tuple[States, States]:
    """States of one layer in two models, anisotropic like those of trained encoders."""
    generator = np.random.default_rng(number)
    first = generator.normal(size=(stimuli, width)) + 1
    rotated = first @ np.linalg.qr(generator.normal(size=(width, width)))[0]
    return first.astype(np.float32), (rotated + 0.5 * generator.normal(size=(stimuli, width))).astype(np.float32)


def with_scipy(first: States, second: States) -> float:
    correlation = pearsonr(pdist(first, "cosine"), pdist(second, "cosine"))
    return float(correlation[0])  # pyright: ignore[reportArgumentType]  # scipy types it as any object


def without_intervals(first: States, second: States) -> float:
    rows = kernel_similarity.unit_rows(first), kernel_similarity.unit_rows(second)
    return float(pearson(kernel_similarity.feature_kernel_sums(*rows, np.zeros(len(first), np.intp)))[0])


def with_intervals(first: States, second: States) -> float:
    groups = assign_groups(np.arange(len(first)) // STIMULI_PER_SENTENCE, GROUPS, seed=0)
    return float(
        pearson(
            kernel_similarity.feature_kernel_sums(
                kernel_similarity.unit_rows(first), kernel_similarity.unit_rows(second), groups
            )
        )[0]
    )


def blockwise(first: States, second: States) -> float:
    rows = [kernel_similarity.inner_product(kernel_similarity.unit_rows(vectors)) for vectors in (first, second)]
    return float(pearson(kernel_similarity.kernel_sums(rows[0], rows[1], np.zeros(len(first), np.intp)))[0])


METHODS: dict[str, Callable[[States, States], float]] = {
    "scipy: pdist, pearsonr": with_scipy,
    "bertology": without_intervals,
    "bertology, with intervals": with_intervals,
    "bertology, blockwise": blockwise,
}


def main() -> None:
    options = _options()
    if options.memory:
        for stimuli in MEMORY_SIZES:
            print(f"{stimuli:>6} stimuli of width {options.width}: " + ", ".join(_peaks(stimuli, options.width)))
        return
    if options.peak:
        before = _peak()
        METHODS[options.peak](*synthetic_layer(0, options.stimuli, options.width))
        print(_peak() - before)
        return
    stimuli, layers = (5000, 13) if options.full else (options.stimuli, options.layers)
    print(f"{stimuli} stimuli, {layers} layers of width {options.width}")
    seconds_by_method, values = dict.fromkeys(METHODS, 0.0), {name: np.zeros(layers) for name in METHODS}
    for number in range(layers):
        states = synthetic_layer(number, stimuli, options.width)
        for name, method in METHODS.items():
            start = time.process_time()
            values[name][number] = method(*states)
            seconds_by_method[name] += time.process_time() - start
    scipy_seconds = seconds_by_method["scipy: pdist, pearsonr"]
    for name, seconds in seconds_by_method.items():
        difference = np.abs(values[name] - values["scipy: pdist, pearsonr"]).max()
        print(
            f"{name:<28}{seconds:>8.2f} s{scipy_seconds / seconds:>8.1f} x faster, largest difference {difference:.1e}"
        )
    print(f"target: {TARGET} x; with intervals {scipy_seconds / seconds_by_method['bertology, with intervals']:.1f} x")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--full", action="store_true", help="5,000 stimuli and 13 layers")
    parser.add_argument("--stimuli", type=int, default=1000, help="number of stimuli")
    parser.add_argument("--layers", type=int, default=3, help="number of layers")
    parser.add_argument("--width", type=int, default=384, help="size of the hidden states")
    parser.add_argument("--threads", type=int, default=1, help="threads of the linear algebra")
    parser.add_argument("--memory", action="store_true", help="peak memory instead of time")
    parser.add_argument("--peak", choices=list(METHODS), help="peak memory of one method beyond its stimuli, in MB")
    options = parser.parse_args()
    threads = str(options.threads)
    if os.environ.get("OMP_NUM_THREADS") != threads:  # read when NumPy is imported, so start again
        os.environ |= {"OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}
        os.execv(sys.executable, [sys.executable, *sys.argv])
    return options


def _peaks(stimuli: int, width: int) -> list[str]:
    peaks: list[str] = []
    for name in METHODS:
        command = [sys.executable, __file__, "--peak", name, "--stimuli", str(stimuli), "--width", str(width)]
        process = subprocess.run(command, capture_output=True, text=True, check=True)
        peaks.append(f"{name} {float(process.stdout):.0f} MB")
    return peaks


def _peak() -> float:
    """The peak memory of this process in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
