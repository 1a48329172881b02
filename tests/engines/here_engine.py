"""An engine that runs its tasks in this process, from pickled values as workers do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from bertology.engines.engine import Engine, Job, Outcome, TaskProgress, WorkerTask
from bertology.engines.pickling import dump_value, load_value
from bertology.engines.task_runner import TaskRunner, load_error
from bertology.progress import no_progress


class HereEngine(Engine):
    """`before` is called with each task and may raise what the task then ends with; `labels` are those of all tasks."""

    name = "here"

    def __init__(self, before: Callable[[WorkerTask], None] = lambda task: None) -> None:
        self.before = before
        self.labels: list[str] = []

    @property
    def n_workers(self) -> int:
        return 1

    def close(self) -> None:
        pass

    def outcomes(
        self, job: Job, tasks: Sequence[WorkerTask], *, isolated: bool, progress: TaskProgress | None
    ) -> Iterator[Outcome]:
        runner = TaskRunner()
        kind, content = runner.start(job)
        if kind == "error":
            raise load_error(content)
        for task in tasks:
            self.labels.append(task.label)
            try:
                self.before(task)
            except Exception as error:
                yield Outcome(task, error=error, node="here")
                continue
            kind, content = runner.run(dump_value(task.arguments, task.label), no_progress)
            if kind == "error":
                yield Outcome(task, error=load_error(content), node="here")
            else:
                yield Outcome(task, load_value(content), node="here")
