"""Judge a model in a process of its own: `python -m bertology.atlas.worker`, with the task on stdin.

What a model takes in memory is given back, and one that fails or is killed does not end the others.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from types import MappingProxyType
from typing import Any, cast

from bertology.atlas.judged_model import JudgedModel
from bertology.atlas.judging import JudgingTask, judge_source
from bertology.errors import ExplainedError, MachineError, Refusal
from bertology.machine_errors import find_machine_error
from bertology.progress import ProgressCallback

WORKER = "bertology.atlas.worker"


def read_only_mapping(content: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    """A mapping that cannot be changed, which pickle does not know."""
    return MappingProxyType(content)


class _TaskPickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, MappingProxyType):
            return read_only_mapping, (dict(cast("MappingProxyType[Any, Any]", value)),)
        return NotImplemented


class WorkerProcesses:
    """The processes of one atlas, which end with it; each is started by a thread that waits for its answer."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._is_closed = False

    def start(self, threads: int) -> subprocess.Popen[bytes]:
        """Start a process that waits for a task."""
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
        with self._lock:
            if self._is_closed:
                raise RuntimeError("the atlas has ended")
            process = subprocess.Popen(
                [sys.executable, "-m", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
            )
            self._running.add(process)
        return process

    def forget(self, process: subprocess.Popen[bytes]) -> None:
        """Take out a process that has ended."""
        with self._lock:
            self._running.discard(process)

    def close(self) -> None:
        """End all processes, and start no further one."""
        with self._lock:
            self._is_closed = True
            for process in self._running:
                process.terminate()


def judge_in_process(
    source: str, task: JudgingTask, progress: ProgressCallback, *, processes: WorkerProcesses, threads: int
) -> JudgedModel:
    """Judge a model in a process of its own; its refusal is raised here, and its failure or end as `MachineError`."""
    process = processes.start(threads)
    assert process.stdin is not None and process.stdout is not None
    answer: dict[str, Any] = {}
    with process:  # closes its streams and waits for its end
        try:
            with process.stdin as stream:
                _TaskPickler(stream).dump((source, task))
            for line in process.stdout:
                answer = json.loads(line)
                if "progress" in answer:
                    progress(*answer["progress"])
        except BaseException:
            process.terminate()
            raise
    processes.forget(process)
    status = process.returncode
    if "model" in answer:
        return JudgedModel.model_validate(answer["model"])
    if "problem" in answer:
        kind = Refusal if answer["is_refusal"] else MachineError
        raise kind(answer["problem"], answer["expected"], answer["remedy"])
    raise MachineError(
        f"The process that judged {source} ended with status {status}",
        "a process that ends by itself; a system that is short of memory ends processes",
        "Judge it alone, with fewer sentences (--limit), or with more memory",
    )


def _answer_task(send: Callable[[dict[str, Any]], None]) -> None:
    source, task = pickle.loads(sys.stdin.buffer.read())  # written by `judge_in_process`
    try:
        model = judge_source(source, task, lambda done, total: send({"progress": [done, total]}))
    except Exception as error:  # a model may fail in any way; the others go on
        explained = find_machine_error(error) or (error if isinstance(error, Refusal) else _failure(source, error))
        parts = {"problem": explained.problem, "expected": explained.expected, "remedy": explained.remedy}
        send(parts | {"is_refusal": isinstance(explained, Refusal)})
    else:
        send({"model": model.model_dump(mode="json")})


def _failure(source: str, error: Exception) -> ExplainedError:
    """A mistake of the program, told in one paragraph."""
    message = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    return MachineError(f"{source} failed: {message}", "a model whose forward pass runs", "See `bertology claims`")


def _main() -> None:
    output = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    sys.stdout = sys.stderr  # what libraries print is no answer

    def send(answer: dict[str, Any]) -> None:
        output.write(json.dumps(answer) + "\n")
        output.flush()

    _answer_task(send)


if __name__ == "__main__":
    _main()
