"""Engines by name, failures of tasks in words, and what a worker must share with its driver."""

from __future__ import annotations

import errno
import platform
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from bertology.engines import ray_cluster
from bertology.engines.engine import EngineError, Job, Outcome, WorkerTask, open_engine, parse_engine, raise_failures
from bertology.engines.local import LocalEngine
from bertology.engines.pickling import dump_value, load_value
from bertology.engines.runtime import runtime_versions
from bertology.engines.task_runner import TaskRunner, load_error
from bertology.errors import MachineError, Refusal
from bertology.progress import no_progress
from bertology.store_paths import StoreError


@pytest.mark.parametrize(
    "text", ["", "local:", "local:0", "local:-1", "local:1025", "local:two", "ray:", "dask", "Local:2", "ray :x"]
)
def test_nonsense_is_refused(text: str) -> None:
    with pytest.raises(Refusal, match="engine"):
        parse_engine(text)


def test_local_is_this_process_and_a_given_engine_stays_open() -> None:
    assert parse_engine("local") is None
    engine = parse_engine("local:3")
    assert isinstance(engine, LocalEngine) and engine.n_workers == 3 and engine.name == "local:3"
    closed: list[str] = []
    engine.close = lambda: closed.append("closed")
    with open_engine(engine) as opened:
        assert opened is engine
    assert closed == []


@pytest.mark.parametrize("address", ["nowhere", "host:", "host:x", "127.0.0.1:99999", ":1"])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(Refusal, match="The address of the Ray cluster"):
        parse_engine(f"ray:{address}")


def test_an_address_that_nobody_answers_is_refused_within_seconds() -> None:
    with pytest.raises(Refusal, match=r"No Ray cluster answers at 127.0.0.1:9 \(Connection refused\)"):
        parse_engine("ray:127.0.0.1:9")


def test_ray_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(Refusal, match=r"Ray is not installed.*bertology\[ray\]"):
        parse_engine("ray")


class CountingActor:
    """What `ray.remote` returns, as far as an actor is made by it; keeps the threads that the actor may use."""

    def __init__(self) -> None:
        self.threads: list[int] = []

    def remote(self, *threads: int, **resources: float) -> CountingActor:
        self.threads += threads
        return self

    def __call__(self, _worker: type) -> CountingActor:
        return self


@pytest.mark.parametrize(("given", "threads"), [("", 4), ("0", 4), ("1", 1), ("3", 3), ("8", 4)])
def test_actors_use_no_more_threads_than_the_driver_may(
    given: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", given)
    ray = CountingActor()
    vars(ray_cluster)["_Actor"](ray, {"num_cpus": 4.0})
    assert ray.threads == [threads]


def make_job(folder: Path, value: Any = 7) -> Job:
    (folder / "token").write_text("secret")
    payload = dump_value((add, value), "a test")
    return Job("key", payload, str(folder), "token", "secret", runtime_versions())


def add(shared: int, number: int) -> int:
    if number < 0:
        raise Refusal("a negative number", "a positive one", "Change it")
    return shared + number


def start_error(job: Job) -> Exception:
    kind, content = TaskRunner().start(job)
    assert kind == "error"
    return load_error(content)


def test_a_worker_checks_versions_and_folder_before_it_loads_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = make_job(tmp_path)
    runner = TaskRunner()
    assert runner.start(job) == ("value", b"")
    kind, content = runner.run(dump_value((3,), "arguments"), no_progress)
    assert (kind, load_value(content)) == ("value", 10)
    kind, content = runner.run(dump_value((-3,), "arguments"), no_progress)
    error = load_error(content)
    assert kind == "error" and isinstance(error, Refusal) and error.problem == "a negative number"

    broken = replace(job, payload=b"not a pickle")  # never read
    older = start_error(replace(broken, versions={**job.versions, "torch": "2.0.0"}))
    assert isinstance(older, EngineError) and older.status == 2
    assert f"on {platform.node()}" in str(older) and "instead of 2.0.0" in str(older) and "torch" in str(older)
    for other in (replace(broken, folder=str(tmp_path / "elsewhere")), replace(broken, token="another")):
        unseen = start_error(other)
        assert isinstance(unseen, EngineError) and f"does not see the folder {other.folder}" in str(unseen)

    def read_token(_path: Path, _encoding: str) -> str:
        return "secret"

    def deny(_path: Path, _mode: str) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", deny)
        patch.setattr(Path, "read_text", read_token)
        denied = start_error(broken)
    assert isinstance(denied, EngineError) and denied.status == 2
    assert f"on {platform.node()} cannot use the folder of this run: Cannot write to {tmp_path}: " in str(denied)


class Elsewhere:
    """A value whose module only the driver has."""

    def __reduce__(self) -> Any:
        return import_module, ("a_module_of_the_driver",)


def test_a_worker_that_cannot_import_what_the_tasks_need_is_told(tmp_path: Path) -> None:
    missing = start_error(make_job(tmp_path, Elsewhere()))
    assert isinstance(missing, EngineError) and "No module named 'a_module_of_the_driver'" in str(missing)


def test_failures_are_one_error_that_names_them() -> None:
    raise_failures([])
    failed = [
        Outcome(WorkerTask(f"shard {number}", ()), error=ValueError("odd\nlength"), node="a") for number in range(5)
    ]
    with pytest.raises(MachineError) as caught:
        raise_failures(failed)
    assert caught.value.status == 1
    assert caught.value.problem == (
        "shard 0 failed on a: ValueError: odd length (4 further tasks failed too or had no worker: shard 1; "
        "shard 2 ...)"
    )
    full = OSError(28, "No space left on device", "/store/x")
    with pytest.raises(EngineError, match=r"shard 1 failed on b: There is no space left on the disk \(/store/x\)"):
        raise_failures([Outcome(WorkerTask("shard 1", ()), error=full, node="b")])
    denied = StoreError("No permission to write s3://bucket/x", "a bucket that you may use", "Set the credentials")
    with pytest.raises(EngineError, match=r"shard 1 failed on b: No permission to write .* Set the credentials"):
        raise_failures([Outcome(WorkerTask("shard 1", ()), error=denied, node="b")])
    with pytest.raises(Refusal, match="a negative number"):
        raise_failures([Outcome(WorkerTask("shard 1", ()), error=Refusal("a negative number", "x", "y"))])
