"""Put mistakes into the code, one at a time, and count those that the tests notice: `make mutate`.

    python tests/mutation.py --count 300 --seed 0 --jobs 2 --log FILE
    python tests/mutation.py --count 300 --seed 0 --log FILE --write docs/mutation.md   # the table of a finished log

The mutants are a random sample over PACKAGES, at most one a line. First the quick tests of these packages run once,
without a mistake, to see which of them execute which line. Then each mutant is tried in a process of its own on a copy
of the package that differs in one file: first by the tests that execute its line, then by the others of their files,
which may share what was computed. The log has one line a mutant, so that an interrupted run goes on. Survivors that
change nothing a user could see are listed with the reason in `equivalent_mutants.toml`.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import tomllib
import traceback
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from mutants import Mutant, mutants

ROOT = Path(__file__).parents[1]
SOURCE, TESTS = ROOT / "src" / "bertology", ROOT / "tests"
PACKAGES = ("estimates", "claims", "recording", "statistics", "numerics", "server")
LEFT_OUT = SOURCE / "statistics" / "triton"
"""Kernels for GPUs: their tests need Triton, which torch's builds for processors do not have."""
EQUIVALENT = TESTS / "equivalent_mutants.toml"
PRELOADED = ("numpy", "scipy.stats", "scipy.special", "sklearn.linear_model", "torch", "transformers", "pydantic",
             "pytest", "starlette.testclient")  # fmt: skip
SURVIVED, KILLED, BROKEN, NOT_TESTED = range(4)
"""Exit statuses of the process of a mutant."""
SECONDS = 600
"""A mutant that takes longer is counted as noticed: it never ends."""
OPTIONS = [
    "-W", "ignore::pytest.PytestAssertRewriteWarning", "-q", "-m", "not slow", "--no-header", "-p", "no:cacheprovider",
    "-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT),
]  # fmt: skip
"""Arguments of pytest."""
BROWSER = ("browser", "opened", "real_server")
"""Tests with these fixtures are left out: they take minutes for each mutant."""


@dataclass(frozen=True)
class Outcome:
    """What happened to one mutant: killed, timed out, survived, or not tested."""

    name: str
    status: str
    seconds: float


def sample(packages: Sequence[str], count: int, seed: int) -> list[Mutant]:
    """A random sample of the mutants of these packages, at most one a line.

    Whether a mutant is chosen depends on the seed and on its text, so that a change elsewhere leaves the others chosen.
    """
    files = [file for package in packages for file in sorted((SOURCE / package).rglob("*.py"))]
    files = [file for file in files if LEFT_OUT not in file.parents]
    every = [mutant for file in files for mutant in mutants(file)]
    every.sort(key=lambda mutant: hashlib.sha256(f"{seed} {name_of(mutant)}".encode()).digest())
    first = {(mutant.file, mutant.line): mutant for mutant in reversed(every)}
    chosen = [mutant for mutant in every if first[mutant.file, mutant.line] is mutant]
    return chosen[:count]


def name_of(mutant: Mutant) -> str:
    """File, line before and after: it stays the same when lines move."""
    before, after = mutant.lines(mutant.file.read_text("utf-8"))
    return f"{mutant.file.relative_to(SOURCE)}: {before} -> {after}"


def test_files(package: str) -> list[Path]:
    """The tests of a package: those in its folder, without those in a browser."""
    return [test for test in sorted((TESTS / package).rglob("test_*.py")) if not _uses_browser(test)]


def _uses_browser(test: Path) -> bool:
    text = test.read_text("utf-8")
    return any(f"{name}:" in text or f"import {name}" in text for name in BROWSER)


def start(mutant: Mutant, folder: Path, coverage: Coverage) -> int:
    """Run the tests of a mutant in a new process group, and return its process id."""
    process = os.fork()
    if process:
        return process
    os.setsid()
    output = os.open(folder / "output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    try:
        status = _run_tests(mutant, folder, coverage)
    except BaseException:
        traceback.print_exc()
        status = BROKEN
    sys.stdout.flush()
    os._exit(status)


def _copy(source: str, target: str) -> None:
    """A second name of a file where the file system allows it: a folder with symbolic links is refused as a model."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def _run_tests(mutant: Mutant, folder: Path, coverage: Coverage) -> int:
    """The exit status."""
    import pytest

    copied = folder / "bertology"
    shutil.copytree(SOURCE, copied, copy_function=_copy, ignore=shutil.ignore_patterns("__pycache__"))
    target = copied / mutant.file.relative_to(SOURCE)
    target.unlink()
    target.write_text(mutant.apply(mutant.file.read_text("utf-8")), "utf-8")
    sys.path[:0] = [str(folder), str(TESTS)]
    os.environ["PYTHONPATH"] = str(folder)
    covering = coverage.tests_of(mutant)
    if not covering:
        return NOT_TESTED
    files = sorted({ROOT / test.partition("::")[0] for test in covering})
    order = {test: coverage.seconds.get(test, 0.0) for test in covering}
    plugins = [_CoveringFirst(order)]
    status = pytest.main([*OPTIONS, "-x", f"--basetemp={folder / 'temporary'}", *map(str, files)], plugins=plugins)
    # A module that cannot be imported interrupts the collection.
    if status in (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED):
        return KILLED
    return SURVIVED if status == pytest.ExitCode.OK else BROKEN


class _CoveringFirst:
    """Runs the tests that execute the line first, the fastest of them at the very first."""

    def __init__(self, order: Mapping[str, float]) -> None:
        self.order = order

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items.sort(key=lambda item: self.order.get(item.nodeid, float("inf")))


@dataclass(frozen=True)
class Coverage:
    """The tests that execute each line of each file, and the seconds that every test takes."""

    lines: Mapping[str, Mapping[str, Sequence[str]]]
    seconds: Mapping[str, float]

    def tests_of(self, mutant: Mutant) -> list[str]:
        """The tests that execute a mutant's line; for lines that run at import, all that execute its file."""
        of_file = self.lines.get(str(mutant.file.relative_to(SOURCE)), {})
        covering = of_file.get(str(mutant.line), [])
        return list(covering) or sorted({test for tests in of_file.values() for test in tests})


def measure_coverage(packages: Sequence[str], file: Path) -> Coverage:
    """Run the tests of each package without a mistake, in a process of its own; read if it was measured before."""
    for package in packages:
        part = file.with_name(f"{file.name}.{package}.json")
        if not part.exists():
            process = os.fork()
            if not process:
                _cover(package, part)
            _, status = os.waitpid(process, 0)
            if os.waitstatus_to_exitcode(status):
                sys.exit(f"The tests of {package} fail without a mistake: mend them first")
    parts = [json.loads(file.with_name(f"{file.name}.{package}.json").read_text("utf-8")) for package in packages]
    return Coverage(
        {name: lines for part in parts for name, lines in part["lines"].items()},
        {test: seconds for part in parts for test, seconds in part["seconds"].items()},
    )


def _cover(package: str, output: Path) -> NoReturn:
    """Write which tests of a package execute which lines, and end this process."""
    import coverage
    import pytest

    seconds: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="coverage") as folder:
        measured = coverage.Coverage(
            data_file=str(Path(folder) / "data"), source=[str(SOURCE / package)], config_file=False, messages=False
        )

        class Contexts:
            def pytest_runtest_logstart(self, nodeid: str) -> None:
                measured.switch_context(nodeid)

            def pytest_runtest_logreport(self, report: Any) -> None:
                seconds[report.nodeid] += report.duration

        sys.path[:0] = [str(SOURCE.parent), str(TESTS)]
        measured.start()
        files = map(str, test_files(package))
        status = pytest.main([*OPTIONS, f"--basetemp={folder}/temporary", *files], plugins=[Contexts()])
        measured.stop()
        data = measured.get_data()
        lines = {
            str(Path(name).relative_to(SOURCE)): {
                str(line): sorted(filter(None, contexts)) for line, contexts in data.contexts_by_lineno(name).items()
            }
            for name in data.measured_files()
        }
    if status == pytest.ExitCode.OK:
        output.write_text(json.dumps({"lines": lines, "seconds": seconds}), "utf-8")
    sys.stdout.flush()
    os._exit(int(status))


def controls(chosen: Sequence[Mutant]) -> list[Mutant]:
    """For the first mutant of each package one that changes nothing: it must survive, or a test fails by itself."""
    first = {mutant.file.relative_to(SOURCE).parts[0]: mutant for mutant in reversed(chosen)}
    return [Mutant(mutant.file, mutant.line, 0, 0, "") for mutant in first.values()]


def run(chosen: Sequence[Mutant], jobs: int, log: Path, coverage: Coverage) -> None:
    """Try every mutant that the log does not have yet."""
    done = {outcome.name for outcome in read_log(log)}
    pending = [mutant for mutant in chosen if name_of(mutant) not in done]
    running: dict[int, tuple[Mutant, Path, float]] = {}
    with tempfile.TemporaryDirectory(prefix="mutants") as scratch:
        while pending or running:
            while pending and len(running) < jobs:
                mutant, folder = pending.pop(0), Path(tempfile.mkdtemp(dir=scratch))
                running[start(mutant, folder, coverage)] = mutant, folder, time.monotonic()
            time.sleep(0.2)
            for process, (mutant, folder, began) in list(running.items()):
                seconds = time.monotonic() - began
                status = _status(process, seconds)
                if status is not None:
                    del running[process]
                    shutil.rmtree(folder, ignore_errors=True)
                    _append(log, Outcome(name_of(mutant), status, round(seconds, 1)))


def _status(process: int, seconds: float) -> str | None:
    """How a process ended; None while it runs."""
    ended, raw = os.waitpid(process, os.WNOHANG)
    if not ended:
        if seconds < SECONDS:
            return None
        os.killpg(process, signal.SIGKILL)
        os.waitpid(process, 0)
        return "timed out"
    return {SURVIVED: "survived", KILLED: "killed", NOT_TESTED: "not tested"}.get(
        os.waitstatus_to_exitcode(raw), "broken"
    )


def _append(log: Path, outcome: Outcome) -> None:
    print(f"{outcome.status:10} {outcome.seconds:6.1f} s  {outcome.name}", flush=True)
    with log.open("a", encoding="utf-8") as file:
        file.write(json.dumps(outcome.__dict__, ensure_ascii=False) + "\n")


def read_log(log: Path) -> list[Outcome]:
    """The outcomes so far."""
    return [Outcome(**json.loads(line)) for line in log.read_text("utf-8").splitlines()] if log.exists() else []


def equivalents() -> dict[str, str]:
    """Mutants that change nothing a user could see, with the reason."""
    return {entry["mutant"]: entry["reason"] for entry in tomllib.loads(EQUIVALENT.read_text("utf-8"))["equivalent"]}


def table(outcomes: Sequence[Outcome], seed: int) -> str:
    """The outcomes of each package as Markdown, and every survivor."""
    reasons = equivalents()
    counts: Counter[tuple[str, str]] = Counter()
    survivors: list[str] = []
    for outcome in outcomes:
        is_equivalent = outcome.status == "survived" and outcome.name in reasons
        status = "equivalent" if is_equivalent else "killed" if outcome.status == "timed out" else outcome.status
        counts[outcome.name.split("/")[0], status] += 1
        if status in {"survived", "not tested"}:
            survivors.append(f"- `{outcome.name}`")
    names = sorted({package for package, _ in counts})
    rows = [
        f"| {package} | {sum(counts[package, status] for status in STATUSES)} | "
        + " | ".join(str(counts[package, status]) for status in STATUSES)
        + f" | {_rate([counts[package, status] for status in STATUSES])} |"
        for package in names
    ]
    totals = [sum(counts[package, status] for package in names) for status in STATUSES]
    rows.append(f"| all | {sum(totals)} | {' | '.join(map(str, totals))} | {_rate(totals)} |")
    head = f"| package | mutants | {' | '.join(STATUSES)} | killed of those that change something |\n|---|" + "---|" * 6
    reasons_used = [
        f"- `{o.name}`: {reasons[o.name]}" for o in outcomes if o.status == "survived" and o.name in reasons
    ]
    parts = [INTRODUCTION.format(count=len(outcomes), seed=seed), "\n".join([head, *rows])]
    if survivors:
        parts.append("## Survivors\n\n" + "\n".join(survivors))
    if reasons_used:
        parts.append("## Equivalent\n\n" + "\n".join(reasons_used))
    return "\n\n".join(parts) + "\n"


STATUSES = ("killed", "equivalent", "survived", "not tested")
INTRODUCTION = """# Mutation

`make mutate` puts small mistakes into the code, one at a time, and runs the tests on each: a comparison turned round,
a constant changed, a condition negated, a statement left out. A mistake that no test notices is a gap in the tests. The
table is that of {count} mutants sampled with the seed {seed}; `tests/mutation.py` says how they are made. Slow tests
and tests in a browser were not asked.

Survivors are read one by one: they get a test, or are listed below with the reason why they change nothing. So the last
column says how far this sample has been worked through; of mistakes that nobody has looked at yet fewer are noticed."""


def _rate(counts: Sequence[int]) -> str:
    killed, equivalent, *_ = counts
    changing = sum(counts) - equivalent
    return f"{100 * killed / changing:.1f} %" if changing else ""


def main() -> None:
    """Run the sample, or write the table of a finished one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packages", nargs="+", default=PACKAGES)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--log", type=Path, default=ROOT / "mutants.jsonl")
    parser.add_argument("--write", type=Path, help="write the table here and run nothing")
    arguments = parser.parse_args()
    chosen = sample(arguments.packages, arguments.count, arguments.seed)
    if not arguments.write:
        for module in PRELOADED:
            importlib.import_module(module)
        coverage = measure_coverage(arguments.packages, arguments.log)
        run([*controls(chosen), *chosen], arguments.jobs, arguments.log, coverage)
    names = {name_of(mutant) for mutant in chosen}
    outcomes = read_log(arguments.log)
    wrong = [o.name for o in outcomes if o.status == "broken" or (o.name not in names and o.status != "survived")]
    if wrong:
        sys.exit("These did not run, or failed without a mistake:\n" + "\n".join(wrong))
    text = table([outcome for outcome in outcomes if outcome.name in names], arguments.seed)
    if arguments.write:
        arguments.write.write_text(text, "utf-8")
    print(text)


if __name__ == "__main__":
    main()
