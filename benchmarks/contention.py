"""Cost of other busy processes: a command beside endless loops, relative to the same command alone and to its share.

    python benchmarks/contention.py                          # claims of mini on 20 sentences beside 4 loops
    python benchmarks/contention.py --loops 8 --limit 50

Rows are ways to use threads. `share` is what a fair system would cost: with t threads beside n loops on c cores, the
command gets t / (t + n) of c cores instead of min(t, c). A row with a ratio far above its share wastes time waiting.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WAYS = {
    "the command as it is": {},
    "threads that spin": {"OMP_WAIT_POLICY": "active"},
    "libgomp's own choice": {"OMP_WAIT_POLICY": ""},
    "one thread": {"OMP_NUM_THREADS": "1"},
}


def main() -> None:
    """Time every way alone and beside the loops."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="mini")
    parser.add_argument("--limit", type=int, default=20)
    parser.add_argument("--loops", type=int, default=4)
    parser.add_argument("--paper", default="clark2019")
    given = parser.parse_args()
    command = ["claims", given.model, "--limit", str(given.limit), "--paper", given.paper, "--no-store"]
    cores = len(os.sched_getaffinity(0))
    print(
        f"bertology {' '.join(command)}: {cores} cores, {given.loops} loops, load {os.getloadavg()[0]:.1f} at the start"
    )
    print(f"{'':<24}{'alone':>9}{'beside':>10}{'ratio':>8}{'share':>8}")
    for way, environment in WAYS.items():
        alone = seconds(command, environment)
        loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(given.loops)]
        try:
            beside = seconds(command, environment)
        finally:
            for loop in loops:
                loop.kill()
                loop.wait()
        threads = int(environment.get("OMP_NUM_THREADS", cores))
        share = min(threads, cores) / (cores * threads / (threads + given.loops))
        print(f"{way:<24}{alone:>7.1f} s{beside:>8.1f} s{beside / alone:>8.2f}{max(1.0, share):>8.2f}", flush=True)


def seconds(command: list[str], environment: dict[str, str]) -> float:
    """Wall-clock seconds of the command."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("OMP_")}
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "bertology", *command],
            env=inherited | environment | {"BERTOLOGY_HOME": str(Path(folder))},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=True,
        )
        return time.perf_counter() - start


if __name__ == "__main__":
    main()
