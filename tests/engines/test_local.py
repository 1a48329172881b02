"""The local engine: worker processes that fail, end and are replaced."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bertology.engines.engine import EngineError, WorkerTask, raise_failures
from bertology.engines.local import LocalEngine, worker_threads
from bertology.errors import MachineError, Refusal
from engines.engine_tasks import describe_call, return_lock, write_until_full
from engines.ray_nodes import ENVIRONMENT
from recording.test_engine_shards import digests

SECONDS = 600
RECORD = ["record", "mini", "english", "--limit", "300", "--sites", "attention,hidden"]
SMALL_SHARDS = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs of a shell in the background ignore it
from bertology.recording import plan
plan.SHARD_BYTES = 64 * 1024
from bertology.cli.main import main
main()
"""


@pytest.mark.slow
def test_tasks_that_fail_or_end_their_worker_do_not_end_the_others(tmp_path: Path) -> None:
    shared = {"word": "shared", "folder": str(tmp_path)}
    tasks = [WorkerTask(f"task {number}", (number,)) for number in range(8)]
    with LocalEngine(2) as engine:
        outcomes = {
            outcome.task.label: outcome for outcome in engine.run(describe_call, shared, tasks, folder=tmp_path)
        }
        assert sorted(outcomes) == [task.label for task in tasks]
        good = [number for number in range(8) if number not in (3, 5)]
        assert [outcomes[f"task {number}"].value for number in good] == [[n, "shared", "1"] for n in good]
        assert isinstance(outcomes["task 3"].error, ValueError)
        lost = outcomes["task 5"].error
        assert isinstance(lost, MachineError) and "The worker of task 5 ended 3 times" in lost.problem
        tries = {n: len((tmp_path / f"tries-{n}").read_text()) for n in range(8)}
        assert tries == {0: 1, 1: 1, 2: 1, 3: 1, 4: 2, 5: 3, 6: 1, 7: 1}
        [unpicklable] = engine.run(return_lock, "x", [WorkerTask("one", ())], folder=tmp_path)
        assert isinstance(unpicklable.error, Refusal)
        workers = [worker.process for worker in vars(engine)["_workers"].values()]
        assert workers and all(process.poll() is None for process in workers)
    assert all(process.poll() is not None for process in workers)
    assert not list(tmp_path.glob(".*")), "the token of a run is removed"


@pytest.mark.slow
def test_when_the_disk_is_full_no_further_task_is_started(tmp_path: Path) -> None:
    tasks = [WorkerTask(f"task {number}", (number,)) for number in range(20)]
    with LocalEngine(1) as engine:
        outcomes = list(engine.run(write_until_full, str(tmp_path), tasks, folder=tmp_path))
    assert [outcome.task.label for outcome in outcomes] == [task.label for task in tasks]
    assert [outcome.value for outcome in outcomes[:2]] == [0, 1]
    assert len({id(outcome.error) for outcome in outcomes[2:]}) == 1, "of the first task that found it full"
    with pytest.raises(EngineError, match=r"task 2 failed on .*no space left on the disk .*\(17 further tasks failed"):
        raise_failures([outcome for outcome in outcomes if outcome.error is not None])


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_command_ends_its_workers_and_resumes(
    number: signal.Signals, tmp_path: Path, of_one_process: dict[str, str]
) -> None:
    folder = tmp_path / "recording"
    words = [
        "record",
        "mini",
        "english",
        "--limit",
        "300",
        "--sites",
        "attention,hidden",
        "-o",
        str(folder),
        "--engine",
        "local:2",
    ]
    command = [sys.executable, "-c", SMALL_SHARDS, *words]
    process = subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + SECONDS
    while process.poll() is None and not list(folder.glob("hidden/*.safetensors")):
        assert time.monotonic() < end
        time.sleep(0.05)
    workers = children(process.pid)
    assert len(workers) == 2
    process.send_signal(number)
    _, told = process.communicate(timeout=SECONDS)
    assert process.returncode == 128 + number, told
    assert "finished parts are kept, and the same command resumes" in told.splitlines()[-1]
    assert "Traceback" not in told and not list(folder.rglob("*.partial"))
    assert not any(Path(f"/proc/{worker}").exists() for worker in workers)
    again = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert again.returncode == 0 and "Resuming the recording" in again.stderr, again.stderr
    assert digests(folder) == of_one_process


@pytest.fixture(scope="module")
def of_one_process(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The digests of the recording that is interrupted, made without an interruption by one process."""
    folder = tmp_path_factory.mktemp("one") / "recording"
    subprocess.run([sys.executable, "-c", SMALL_SHARDS, *RECORD, "-o", str(folder)], env=ENVIRONMENT, check=True)
    return digests(folder)


def children(process: int) -> list[int]:
    """The processes that a process has started and that have not ended."""
    return [int(word) for file in Path(f"/proc/{process}/task").glob("*/children") for word in file.read_text().split()]


def test_workers_share_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    def sixteen_cores(_process: int) -> set[int]:
        return set(range(16))

    monkeypatch.setattr("os.sched_getaffinity", sixteen_cores)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert [worker_threads(n) for n in (1, 4, 5, 32)] == [16, 4, 3, 1]
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert [worker_threads(n) for n in (1, 4, 32)] == [2, 2, 1]
