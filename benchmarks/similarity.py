"""How fast representations are compared: RSA over all pairs of stimuli, beside scipy's pdist and pearsonr.

    python benchmarks/similarity.py          # 1,000 stimuli, 3 layers: some seconds
    python benchmarks/similarity.py --full   # 5,000 stimuli, 13 layers, as in the issue: minutes, nearly all scipy's
    python benchmarks/similarity.py --memory # peak memory at two numbers of stimuli, each in a process of its own

Stimuli are made: a second model that sees the first one's states turned, with noise. `intervals` leaves out each of 20
groups of sentences as the analysis does; `blockwise` is the way of kernels that are no inner product. The target is
that of processor time, one thread unless --threads says otherwise.
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
GROUPS, SENTENCE = 20, 20
MEMORY_SIZES = (2000, 8000)

States = NDArray[np.float32]


def layer(number: int, stimuli: int, width: int) -> tuple[States, States]:
    """States of one layer in two models, in a narrow cone as those of trained encoders are."""
    generator = np.random.default_rng(number)
    first = generator.normal(size=(stimuli, width)) + 1
    turned = first @ np.linalg.qr(generator.normal(size=(width, width)))[0]
    return first.astype(np.float32), (turned + 0.5 * generator.normal(size=(stimuli, width))).astype(np.float32)


def with_scipy(first: States, second: States) -> float:
    found = pearsonr(pdist(first, "cosine"), pdist(second, "cosine"))
    return float(found[0])  # pyright: ignore[reportArgumentType]  # scipy types it as any object


def without_intervals(first: States, second: States) -> float:
    rows = kernel_similarity.unit_rows(first), kernel_similarity.unit_rows(second)
    return float(pearson(kernel_similarity.feature_kernel_sums(*rows, np.zeros(len(first), np.intp)))[0])


def with_intervals(first: States, second: States) -> float:
    groups = assign_groups(np.arange(len(first)) // SENTENCE, GROUPS, seed=0)
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


WAYS: dict[str, Callable[[States, States], float]] = {
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
        WAYS[options.peak](*layer(0, options.stimuli, options.width))
        print(_peak() - before)
        return
    stimuli, layers = (5000, 13) if options.full else (options.stimuli, options.layers)
    print(f"{stimuli} stimuli, {layers} layers of width {options.width}")
    taken, values = dict.fromkeys(WAYS, 0.0), {name: np.zeros(layers) for name in WAYS}
    for number in range(layers):
        states = layer(number, stimuli, options.width)
        for name, way in WAYS.items():
            start = time.process_time()
            values[name][number] = way(*states)
            taken[name] += time.process_time() - start
    slow = taken["scipy: pdist, pearsonr"]
    for name, seconds in taken.items():
        apart = np.abs(values[name] - values["scipy: pdist, pearsonr"]).max()
        print(f"{name:<28}{seconds:>8.2f} s{slow / seconds:>8.1f} x faster, largest difference {apart:.1e}")
    print(f"target: {TARGET} x; with intervals {slow / taken['bertology, with intervals']:.1f} x")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--full", action="store_true", help="5,000 stimuli and 13 layers")
    parser.add_argument("--stimuli", type=int, default=1000)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--threads", type=int, default=1, help="threads of the linear algebra")
    parser.add_argument("--memory", action="store_true", help="peak memory instead of time")
    parser.add_argument("--peak", choices=list(WAYS), help="what one way takes over its stimuli, in MB")
    options = parser.parse_args()
    wanted = str(options.threads)
    if os.environ.get("OMP_NUM_THREADS") != wanted:  # read when NumPy is imported, so begin again
        os.environ |= {"OMP_NUM_THREADS": wanted, "OPENBLAS_NUM_THREADS": wanted, "MKL_NUM_THREADS": wanted}
        os.execv(sys.executable, [sys.executable, *sys.argv])
    return options


def _peaks(stimuli: int, width: int) -> list[str]:
    found: list[str] = []
    for name in WAYS:
        command = [sys.executable, __file__, "--peak", name, "--stimuli", str(stimuli), "--width", str(width)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found.append(f"{name} {float(done.stdout):.0f} MB")
    return found


def _peak() -> float:
    """The most memory this process has had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
