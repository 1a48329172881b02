"""`python -m fuzz`: run every kind for some time, each in a process of its own, and print one table.

The exit status is 1 if any case ended in a traceback or a hang; such cases are written to tests/fuzz/failures, which
the ordinary tests replay.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

COLUMNS = ("kind", "cases", "refused", "accepted", "tracebacks", "hangs", "peak memory (MB)", "seconds")
MAX_BYTES = 12 * 2**30
GRACE_SECONDS = 300
SHARES = {"options": 3.0, "recordings": 3.0}
"""Kinds whose cases are slow have more of the time; the others have a share of 1."""


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0, help="in all; slow kinds have a larger share")
    parser.add_argument("--cases", type=int, default=sys.maxsize, help="at most so many of each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", nargs="*", help="only these")
    parser.add_argument("--one", help="run this kind here and print its counts as JSON")
    options = parser.parse_args()
    if options.one:
        return _run_here(options)
    from fuzz.all_kinds import KINDS

    names = options.kinds or list(KINDS)
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}", flush=True)
    shares = {name: SHARES.get(name, 1.0) for name in names}
    rows = [_run_process(name, options, options.seconds * shares[name] / sum(shares.values())) for name in names]
    total = {column: sum(row.get(column, 0) for row in rows) for column in COLUMNS[1:]}
    total["peak memory (MB)"] = max(row.get("peak memory (MB)", 0) for row in rows)
    _print_row({"kind": "all", **total})
    for row in rows:
        for problem in row["problems"]:
            print(f"\n{row['kind']}: {problem}")
    return 1 if total["tracebacks"] or total["hangs"] else 0


def _run_here(options: argparse.Namespace) -> int:
    resource.setrlimit(resource.RLIMIT_AS, (MAX_BYTES, MAX_BYTES))
    from fuzz.all_kinds import KINDS
    from fuzz.run_cases import run_kind

    with tempfile.TemporaryDirectory(prefix="fuzz-kind-") as folder:
        os.environ["BERTOLOGY_HOME"] = f"{folder}/home"
        shared = Path(folder) / "shared"
        shared.mkdir()
        tally = run_kind(KINDS[options.one](shared), seed=options.seed, seconds=options.seconds, cases=options.cases)
    row = {
        "kind": tally.kind,
        "cases": tally.cases,
        "refused": tally.outcomes["refused"],
        "accepted": tally.outcomes["accepted"],
        "tracebacks": tally.outcomes["traceback"],
        "hangs": tally.outcomes["hang"],
        "peak memory (MB)": round(tally.peak_megabytes),
        "seconds": round(tally.seconds),
        "problems": list(tally.problems.values()),
    }
    print(json.dumps(row), flush=True)
    os._exit(0)  # threads of a server need not end


def _run_process(name: str, options: argparse.Namespace, seconds: float) -> dict[str, Any]:
    command = [sys.executable, "-m", "fuzz", "--one", name, "--seconds", str(seconds)]
    command += ["--cases", str(options.cases), "--seed", str(options.seed)]
    try:
        ended = subprocess.run(command, stdout=subprocess.PIPE, timeout=seconds + GRACE_SECONDS, check=False)
        row = json.loads(ended.stdout.splitlines()[-1])
    except (subprocess.TimeoutExpired, IndexError, ValueError) as error:
        row = {"kind": name, "cases": 0, "tracebacks": 1, "problems": [f"the process ended: {error!r}"]}
    _print_row(row)
    return row


def _print_row(row: dict[str, Any]) -> None:
    cells = (row.get(column, 0) for column in COLUMNS)
    print(f"| {' | '.join(f'{cell:,}' if isinstance(cell, int) else str(cell) for cell in cells)} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
