"""A recording by workers: the same bytes as in one process, and a shard that fails is named while the others finish."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, cast

import pytest

from bertology.encoder.encoder import Encoder, ModelInputs
from bertology.engines.engine import WorkerTask
from bertology.engines.local import LocalEngine
from bertology.errors import MachineError, Refusal
from bertology.progress import ProgressStep
from bertology.recording import plan
from bertology.recording.plan import RecordingConfig
from bertology.recording.recorder import record
from engines.here_engine import HereEngine
from recording.material import mixed, tiny
from warm_processes import warm_workers

CORPUS, SITES, CONFIG = mixed(80), ["attention", "hidden"], RecordingConfig(tokens_per_batch=64)


def digests(folder: Path) -> dict[str, str]:
    files = [file for file in folder.rglob("*") if file.is_file()]
    return {str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


class FailingEncoder:
    """An encoder that cannot run on batches with the longest inputs."""

    def __init__(self, inner: Encoder) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "inner":
            raise AttributeError(name)
        return getattr(self.inner, name)

    def tokenise(self, inputs: Any) -> Any:
        return self.inner.tokenise(inputs)

    def forward(self, batch: ModelInputs, **options: Any) -> Any:
        if batch.input_ids.shape[1] > 40:
            raise ValueError("too long for this planted model")
        return self.inner.forward(batch, **options)


@pytest.mark.slow
def test_bytes_are_those_of_one_process_and_a_failing_shard_is_named_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "SHARD_BYTES", 32 * 1024)
    record(tiny(), CORPUS, SITES, config=CONFIG, folder=tmp_path / "one")
    messages: list[str] = []
    with warm_workers(), LocalEngine(2) as engine:
        record(tiny(), CORPUS, SITES, config=CONFIG, folder=tmp_path / "two", engine=engine, notify=messages.append)
        assert digests(tmp_path / "two") == digests(tmp_path / "one")
        failing = cast(Encoder, FailingEncoder(tiny()))
        with pytest.raises(MachineError, match=r"first input: .*ValueError: too long for this planted model"):
            record(failing, CORPUS, SITES, config=CONFIG, folder=tmp_path / "three", engine=engine)
    n_shards = len(list((tmp_path / "one" / "hidden").iterdir()))
    assert messages[0] == f"Recording {n_shards} shards of tiny in 2 workers (local:2)."
    assert messages[1].startswith(f"Recorded {n_shards} of {n_shards} shards of tiny in 2 workers (local:2): ")
    kept = digests(tmp_path / "three")
    assert 2 * n_shards > sum(name.endswith(".safetensors") for name in kept) > n_shards
    assert kept.items() <= digests(tmp_path / "one").items()


def test_a_full_disk_of_one_node_is_told_and_what_is_finished_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "SHARD_BYTES", 32 * 1024)

    def fill_disk(task: WorkerTask) -> None:
        if task.arguments[0] == 1:
            raise OSError(28, "No space left on device", "/scratch")

    with pytest.raises(MachineError) as caught:
        record(tiny(), CORPUS, SITES, config=CONFIG, folder=tmp_path / "r", engine=HereEngine(fill_disk))
    assert "shard 2 of" in caught.value.problem and "failed on here: There is no space left" in caught.value.problem
    done = HereEngine(lambda task: tasks.append(task.arguments[0]))
    tasks: list[int] = []
    record(tiny(), CORPUS, SITES, config=CONFIG, folder=tmp_path / "r", engine=done)
    assert tasks == [1]


class FourWorkers(HereEngine):
    @property
    def n_workers(self) -> int:
        return 4


def test_progress_tells_the_workers_that_still_have_shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "SHARD_BYTES", 32 * 1024)
    told: list[str] = []
    step = ProgressStep(lambda done, total, detail: told.append(detail))
    record(tiny(), CORPUS, SITES, config=CONFIG, folder=tmp_path / "r", engine=FourWorkers(), progress=step)
    details = [detail.split(", ") for detail in told if detail]
    n_shards = len(details)
    assert n_shards > 4 and [shards for shards, *_ in details] == [
        f"{n + 1}/{n_shards} shards" for n in range(n_shards)
    ]
    n_workers = [min(4, max(1, n_shards - n - 1)) for n in range(n_shards)]
    assert [detail[-1] for detail in details] == [f"{n} worker{'s' if n > 1 else ''}" for n in n_workers]


def test_no_more_workers_are_told_of_than_there_are_shards(tmp_path: Path) -> None:
    messages: list[str] = []
    record(tiny(), CORPUS, SITES, config=CONFIG, folder=tmp_path / "r", engine=FourWorkers(), notify=messages.append)
    assert messages[0] == "Recording 1 shard of tiny in 1 worker (here)."


def test_an_engine_needs_a_folder() -> None:
    with pytest.raises(Refusal, match="An engine was given, and no store"):
        record(tiny(), CORPUS, SITES, engine="local:2")
