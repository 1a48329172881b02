"""A short run of every fuzzer, and every failure of the past: refused or accepted, never a traceback or a hang."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzz.all_kinds import KINDS
from fuzz.kind import Files, Kind
from fuzz.run_cases import FAILURES, read_failure, run_case, run_kind

CASES = {"model folders": 12, "options": 12, "recordings": 40}
DEFAULT_CASES = 60
BY_FOLDER = {name.replace(" ", "-"): name for name in KINDS}
PAST_FAILURES = sorted(FAILURES.rglob("*.json"))


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Kind]:
    """The kinds that have been used, by name."""
    return {}


def _kind(kinds: dict[str, Kind], name: str, tmp_path_factory: pytest.TempPathFactory) -> Kind:
    if name not in kinds:
        kinds[name] = KINDS[name](tmp_path_factory.mktemp("shared"))
    return kinds[name]


@pytest.mark.parametrize("name", KINDS)
def test_damaged_input_is_refused_or_accepted(
    name: str, kinds: dict[str, Kind], tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fuzz.run_cases.MAX_KEPT", 0)  # only `make fuzz` writes into the source tree
    tally = run_kind(_kind(kinds, name, tmp_path_factory), seed=1, cases=CASES.get(name, DEFAULT_CASES))
    assert not tally.problems, "\n".join(tally.problems.values())
    assert tally.outcomes["refused"] and tally.cases == CASES.get(name, DEFAULT_CASES)


@pytest.mark.parametrize("file", PAST_FAILURES, ids=lambda file: f"{file.parent.name} {file.stem}")
def test_failures_of_the_past_stay_mended(
    file: Path, kinds: dict[str, Kind], tmp_path_factory: pytest.TempPathFactory
) -> None:
    outcome, problem = run_case(_kind(kinds, BY_FOLDER[file.parent.name], tmp_path_factory), read_failure(file))
    assert outcome in {"refused", "accepted"}, problem


class Broken(Kind):
    """A reader with a mistake."""

    name = "broken"
    seconds_per_case = 0.2

    def make(self, rng: object) -> Files:
        """Always the same."""
        return {"file": b"x"}

    def consume(self, folder: Path) -> None:
        """A traceback, or a hang."""
        if (folder / "file").read_bytes() == b"x":
            raise KeyError("x")
        while True:
            pass


def test_the_fuzzer_tells_tracebacks_and_hangs(tmp_path: Path) -> None:
    broken = Broken(tmp_path)
    assert run_case(broken, {"file": b"x"})[0] == "traceback"
    assert run_case(broken, {"file": b"y"})[0] == "hang"
