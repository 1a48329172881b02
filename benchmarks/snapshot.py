"""Do two versions of the code give the same numbers? Write every analysis's numbers to a file, and compare two files.

    python benchmarks/snapshot.py write before.json [--only REGEX]
    python benchmarks/snapshot.py compare before.json after.json

Every analysis runs on `mini` with its defaults and with every value of its literal and boolean options. Names of
analyses, options and measures may differ between the files if a table of renamed keys is given with --renamed; arrays
are compared by their values, so renamed measures match, and a difference above 1e-6 is reported.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from bertology.analyses import registry
from bertology.analyses.declaration import Analysis
from bertology.analyses.run import RunInputs, run_analysis
from bertology.corpus.read import load_corpus
from bertology.encoder.load import load
from bertology.errors import Refusal

LIMIT, TOLERANCE = 40, 1e-6


def variants(analysis: Analysis) -> list[dict[str, Any]]:
    """The default options, and each literal or boolean option changed alone."""
    combinations: list[dict[str, Any]] = [{}]
    for name, option in analysis.options.items():
        if option.choices:
            combinations += [{name: value} for value in option.choices if value != option.default]
        elif isinstance(option.default, bool):
            combinations.append({name: not option.default})
    return combinations


def write(path: Path, only: str) -> None:
    model, finetuned = load("mini"), load("mini-pairs")
    snapshot: dict[str, Any] = {}
    for analysis in registry.load_all():
        corpus = load_corpus((analysis.test_corpus or "english").partition("+")[0], limit=LIMIT)
        inputs = RunInputs(corpus, model, against=finetuned if "against" in analysis.inputs else None)
        for options in variants(analysis):
            key = f"{analysis.name} {json.dumps(options)}"
            if not re.search(only, key):
                continue
            start = time.perf_counter()
            try:
                result = run_analysis(analysis, inputs, options).to_json()
                snapshot[key] = {"data": result["data"], "baselines": result["baselines"]}
            except Refusal as refusal:
                snapshot[key] = {"refused": str(refusal)}
            print(f"{time.perf_counter() - start:6.1f} s  {key}", file=sys.stderr, flush=True)
    path.write_text(json.dumps(snapshot), "utf-8")


def estimate_arrays(snapshot_result: dict[str, Any]) -> dict[str, Any]:
    """(value, low, high) of every measure and baseline."""
    series = {"": snapshot_result["data"].get("measures", {}), **snapshot_result.get("baselines", {})}
    return {
        f"{baseline} {measure}".strip(): np.array([estimates[key] for key in ("value", "low", "high")], float)
        for baseline, measures in series.items()
        for measure, estimates in measures.items()
    }


def compare(before: Path, after: Path, renamed: Path | None) -> int:
    old, new = (json.loads(path.read_text("utf-8")) for path in (before, after))
    names: dict[str, str] = json.loads(renamed.read_text("utf-8")) if renamed else {}
    differences = 0
    for key, before_result in old.items():
        after_result = new.get(names.get(key, key))
        if after_result is None or ("refused" in before_result) != ("refused" in after_result):
            print(f"missing or refused in one of the files: {key}")
            differences += 1
            continue
        if "refused" in before_result:
            continue
        candidates = list(estimate_arrays(after_result).values())
        for name, values in estimate_arrays(before_result).items():
            if not any(_same(values, candidate) for candidate in candidates):
                print(f"differs: {key}: {name}")
                differences += 1
    print(f"{len(old)} runs compared, {differences} differences above {TOLERANCE:g}")
    return 1 if differences else 0


def _same(values: Any, candidate: Any) -> bool:
    return values.shape == candidate.shape and np.allclose(values, candidate, atol=TOLERANCE, rtol=0, equal_nan=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    commands = parser.add_subparsers(dest="command")
    writing = commands.add_parser("write")
    writing.add_argument("file", type=Path)
    writing.add_argument("--only", default="", help="only runs that match this regular expression")
    comparing = commands.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    comparing.add_argument(
        "--renamed", type=Path, help="JSON object from keys of the first file to those of the second"
    )
    options = parser.parse_args()
    if options.command is None:
        print("snapshot.py needs a command: write FILE, or compare BEFORE AFTER")
    elif options.command == "write":
        write(options.file, options.only)
    else:
        raise SystemExit(compare(options.before, options.after, options.renamed))


if __name__ == "__main__":
    main()
