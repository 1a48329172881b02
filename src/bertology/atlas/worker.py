"""Judge a model in a process of its own: `python -m bertology.atlas.worker`, with the task on stdin.

What a model takes in memory is given back, and one that fails or is killed does not end the others.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from types import MappingProxyType
from typing import Any, cast

from bertology.atlas.judged_model import JudgedModel
from bertology.atlas.judging import JudgingTask, judge_source
from bertology.errors import Refusal
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


def judge_in_process(source: str, task: JudgingTask, progress: ProgressCallback, *, threads: int) -> JudgedModel:
    """Judge a model in a process of its own; a refusal of that process, or its end, is refused here."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    process = subprocess.Popen(
        [sys.executable, "-m", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    )
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
    status = process.returncode
    if "model" in answer:
        return JudgedModel.model_validate(answer["model"])
    if "problem" in answer:
        raise Refusal(answer["problem"], answer["expected"], answer["remedy"])
    raise Refusal(
        f"The process that judged {source} ended with status {status}",
        "a process that ends by itself; a system that is short of memory ends processes",
        "Judge it alone, with fewer sentences (--limit), or with more memory",
    )


def _answer_task(send: Callable[[dict[str, Any]], None]) -> None:
    source, task = pickle.loads(sys.stdin.buffer.read())  # written by `judge_in_process`
    try:
        model = judge_source(source, task, lambda done, total: send({"progress": [done, total]}))
    except Refusal as refusal:
        send({"problem": refusal.problem, "expected": refusal.expected, "remedy": refusal.remedy})
    except Exception as error:  # a model may fail in any way; the others go on
        problem = f"{source} failed: {type(error).__name__}: {' '.join(str(error).split())[:300]}"
        send({"problem": problem, "expected": "a model whose forward pass runs", "remedy": "See `bertology claims`"})
    else:
        send({"model": model.model_dump(mode="json")})


def _main() -> None:
    output = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    sys.stdout = sys.stderr  # what libraries print is no answer

    def send(answer: dict[str, Any]) -> None:
        output.write(json.dumps(answer) + "\n")
        output.flush()

    _answer_task(send)


if __name__ == "__main__":
    _main()
