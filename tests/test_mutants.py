"""Mutants change one piece each, leave messages and types alone, and a run tells noticed mistakes from the others."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import mutation
from mutants import mutants
from mutation import Outcome

SOURCE = '''"""A module of 3 lines."""
LIMIT: "int" = 10


def over(values: list[int], scale: float = 0.5) -> bool:
    """Whether a value is over the limit of 10."""
    if not values:
        raise ValueError(f"{len(values)} values, 1 expected")
    values.sort()
    total = scale * (max(values) - 1)
    pairs = list(zip(values, values, strict=True))
    return total > LIMIT and values is not None
'''
EXPECTED = {
    'LIMIT: "int" = 11',
    "def over(values: list[int], scale: float = 1.0) -> bool:",
    "if (not (not values)):",
    "if values:",
    "pass",
    "total = scale / (max(values) - 1)",
    "total = scale * (min(values) - 1)",
    "total = scale * (max(values) + 1)",
    "total = scale * (max(values) - 2)",
    "return total >= LIMIT and values is not None",
    "return total > LIMIT or values is not None",
    "return total > LIMIT and values is None",
}


def test_a_mutant_changes_one_piece_and_no_message_or_type(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text(SOURCE, "utf-8")
    found = mutants(file)
    assert {mutant.lines(SOURCE)[1].replace("  ", " ") for mutant in found} == EXPECTED
    for mutant in found:
        ast.parse(mutant.apply(SOURCE))
        changed = [a for a, b in zip(SOURCE.split("\n"), mutant.apply(SOURCE).split("\n"), strict=True) if a != b]
        assert len(changed) == 1 and " ".join(changed[0].split()) == mutant.lines(SOURCE)[0]


def test_a_sample_depends_on_its_seed_and_has_one_mutant_a_line() -> None:
    chosen = mutation.sample(["numerics"], 40, 0)
    assert chosen == mutation.sample(["numerics"], 40, 0) != mutation.sample(["numerics"], 40, 1)
    assert len({(mutant.file, mutant.line) for mutant in chosen}) == len(chosen) == 40
    for mutant in chosen:
        ast.parse(mutant.apply(mutant.file.read_text("utf-8")))


def test_a_mutant_is_tried_by_the_tests_that_execute_its_line() -> None:
    file = mutation.SOURCE / "numerics" / "kmeans.py"
    coverage = mutation.Coverage({"numerics/kmeans.py": {"7": ["a::x", "b::y"], "9": ["a::z"]}}, {})
    assert coverage.tests_of(mutation.Mutant(file, 7, 0, 0, "")) == ["a::x", "b::y"]
    assert coverage.tests_of(mutation.Mutant(file, 8, 0, 0, "")) == ["a::x", "a::z", "b::y"]  # it runs at import
    assert coverage.tests_of(mutation.Mutant(mutation.SOURCE / "numerics" / "lbfgs.py", 7, 0, 0, "")) == []


@pytest.mark.slow
def test_a_mistake_is_noticed_and_an_unchanged_module_survives(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    # In a process of its own: the runner forks, and the tests of a mutant are another run of pytest.
    script = (
        "import mutation, pathlib, mutants;"
        "file = mutation.SOURCE / 'numerics' / 'edit_distance.py';"
        "mistake = mutants.mutants(file)[0];"
        f"log = pathlib.Path({str(log)!r});"
        "mutation.test_files = lambda package: [mutation.TESTS / package / 'test_edit_distance.py'];"
        "coverage = mutation.measure_coverage(['numerics'], log);"
        "mutation.run([*mutation.controls([mistake]), mistake], 1, log, coverage)"
    )
    subprocess.run([sys.executable, "-c", script], cwd=mutation.TESTS, check=True, capture_output=True)
    assert [outcome.status for outcome in mutation.read_log(log)] == ["survived", "killed"]


def test_the_table_counts_by_package_and_names_survivors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutation, "equivalents", lambda: {"a/x.py: 1 -> 2": "it is never read"})
    outcomes = [
        Outcome("a/x.py: 1 -> 2", "survived", 1),
        Outcome("a/x.py: 3 -> 4", "survived", 1),
        Outcome("a/x.py: 5 -> 6", "timed out", 1),
        Outcome("b/y.py: 7 -> 8", "killed", 1),
    ]
    text = mutation.table(outcomes, 0)
    assert "| a | 3 | 1 | 1 | 1 | 0 | 50.0 % |" in text and "| all | 4 | 2 | 1 | 1 | 0 | 66.7 % |" in text
    assert "- `a/x.py: 3 -> 4`" in text and "- `a/x.py: 1 -> 2`: it is never read" in text
