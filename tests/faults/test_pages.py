"""A page depends on its inputs alone: killed and resumed, from a warm store, or with other threads, it is the same."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import pytest
from tests.faults.commands import command, write_inputs

from warm_processes import ENVIRONMENT, run_command, start_command

SECONDS = 300


def run(line: list[str], threads: int) -> str:
    """What a command prints on stdout; its page is compared apart."""
    if threads == 1:
        done = run_command(line)
        assert done.status == 0, done.err
        return done.out
    environment = ENVIRONMENT | {"OMP_NUM_THREADS": str(threads)}  # read when libraries are loaded
    return subprocess.run(line, env=environment, capture_output=True, text=True, timeout=SECONDS, check=True).stdout


def is_at_work(kept: Path) -> bool:
    """Whether the command has written the first of what it keeps."""
    return any(file.is_file() for file in kept.rglob("*"))


def kill_at_work(line: list[str], kept: Path) -> None:
    """Start a command, and kill it when it has written the first of what it keeps."""
    process = start_command(line)
    while not is_at_work(kept) and process.is_alive:
        time.sleep(0.002)
    process.kill()
    assert process.wait().status == -signal.SIGKILL, "it was killed before the end"


@pytest.mark.slow
def test_a_report_is_the_same_with_one_thread_and_with_two(tmp_path: Path) -> None:
    """With a model whose short texts are added up in another order by two threads."""
    write_inputs(tmp_path)
    pages: dict[int, list[bytes]] = {}
    for threads in (1, 2):
        pages[threads] = []
        for extra in ([], ["--json"]):
            output = tmp_path / f"{threads}{len(extra)}"
            output.mkdir()
            line = command("report", tmp_path, tmp_path / f"store-{threads}", output, model="mini")
            run([*line, *extra], threads)
            pages[threads] += [file.read_bytes() for file in output.iterdir()]
    assert len(pages[1]) == 2 and pages[1] == pages[2]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "extra"), [("report", []), ("report", ["--json"]), ("claims", ["--json"]), ("atlas", [])]
)
def test_a_page_is_the_same_however_it_was_computed(name: str, extra: list[str], tmp_path: Path) -> None:
    write_inputs(tmp_path)
    pages: dict[str, bytes] = {}
    for case, store, threads in (
        ("uninterrupted", "first", 1), ("warm store", "first", 1), ("two threads", "second", 2), ("killed", "third", 1),
    ):  # fmt: skip
        output = tmp_path / case
        output.mkdir()
        line = [*command(name, tmp_path, tmp_path / store, output), *extra]
        if case == "killed":
            kill_at_work(line, tmp_path / store)
            assert not list(output.iterdir()), "it was killed before the end"
        printed = run(line, threads)
        [*files] = output.iterdir()
        pages[case] = files[0].read_bytes() if files else printed.encode()
    assert [case for case, page in pages.items() if page != pages["uninterrupted"]] == []
