"""The local engine: worker processes that fail, end and are replaced."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertology.engines.engine import WorkerTask
from bertology.engines.local import LocalEngine, worker_threads
from bertology.errors import MachineError, Refusal
from engines.engine_tasks import describe_call, return_lock


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


def test_workers_share_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    def sixteen_cores(_process: int) -> set[int]:
        return set(range(16))

    monkeypatch.setattr("os.sched_getaffinity", sixteen_cores)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert [worker_threads(n) for n in (1, 4, 5, 32)] == [16, 4, 3, 1]
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert [worker_threads(n) for n in (1, 4, 32)] == [2, 2, 1]
