"""The cache of finished parts of an analysis, and of whole results: stored under the function and its arguments."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bertology.analyses.cache_key import cache_key
from bertology.analyses.part_labels import part_labels
from bertology.checked_files import DamagedFileError, read_checked_json, write_checked_json
from bertology.engines.engine import Engine, Outcome, WorkerTask, raise_failures
from bertology.errors import DamagedFileWarning, count_noun
from bertology.progress import ProgressCallback, ProgressFactory, describe_step, no_progress
from bertology.store_paths import StorePath, make_folder

FOLDER = "analysis_cache"


@dataclass(frozen=True)
class AnalysisCache:
    """Stores finished parts in a directory (without one, nothing is stored) and reports progress.

    Independent parts (`call_all`) are computed by the workers of the engine, if there is one.

    What is stored is found again only if the function, the content of every argument, the code of bertology and the
    versions of the libraries are the same. Repeated runs that are estimated to take longer than `max_hours` are refused
    (None: no bound).
    """

    directory: StorePath | None = None
    progress: ProgressFactory | None = None
    max_hours: float | None = None
    engine: Engine | None = None

    def progress_meter(self, title: str) -> ProgressCallback:
        """A progress display with this title."""
        return self.progress(title) if self.progress is not None else no_progress

    def call(
        self, function: Callable[..., Any], /, *, progress: ProgressCallback | None = None, **arguments: Any
    ) -> Any:
        """The value of a function for these arguments, stored as JSON; `progress` is handed on and is not in the key.

        The function is one of a module: a nested function could depend on values that are not arguments.
        """
        if "<locals>" in getattr(function, "__qualname__", "<locals>"):
            raise TypeError(f"{function} is not a function of a module, so that its arguments do not tell its value")
        handed_on = {} if progress is None else {"progress": progress}
        return self.get_or_compute(function, arguments, lambda: function(**arguments, **handed_on))

    def call_all(
        self,
        function: Callable[..., Any],
        /,
        arguments: Sequence[Mapping[str, Any]],
        *,
        meter: ProgressCallback,
        hand_on_progress: bool = False,
    ) -> list[Any]:
        """The value of `call` for each of these arguments, with progress over all of them.

        With `hand_on_progress` the function takes `progress` and reports within each call.
        """
        if self.engine is not None and self.directory is not None:
            self._compute_in_workers(function, arguments, meter, hand_on_progress)
        values: list[Any] = []
        step_total = 1

        def report(done: int, total: int) -> None:
            nonlocal step_total
            step_total = total
            meter(len(values) * total + done, len(arguments) * total)

        for each in arguments:
            values.append(self.call(function, progress=report if hand_on_progress else None, **each))
            meter(len(values) * step_total, len(arguments) * step_total)
        return values

    def _compute_in_workers(
        self,
        function: Callable[..., Any],
        arguments: Sequence[Mapping[str, Any]],
        meter: ProgressCallback,
        hand_on_progress: bool,
    ) -> None:
        """Store the values that are missing, if there are several."""
        missing = [step for step, each in enumerate(arguments) if self.lookup(function, each) is None]
        if len(missing) < 2 or self.engine is None or self.directory is None:
            return
        name = getattr(function, "__qualname__", str(function))
        labels = part_labels(name, arguments)
        tasks = [WorkerTask(labels[step], (step,)) for step in missing]
        shared = (self.directory, function, list(arguments), hand_on_progress)
        failures: list[Outcome] = []
        make_folder(self.directory)
        describe_step(meter, count_noun(min(self.engine.n_workers, len(tasks)), "workers"))
        for n_done, outcome in enumerate(self.engine.run(compute_part, shared, tasks, folder=self.directory), 1):
            meter(n_done, len(tasks))
            if outcome.error is not None:
                failures.append(outcome)
        raise_failures(failures)

    def lookup(self, function: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
        """The stored value of a function for these arguments; None if there is none, or if it is damaged."""
        if self.directory is None:
            return None
        stored = self.read(cache_key(function, arguments))
        return None if stored is None else stored["value"]

    def get_or_compute(
        self, function: Callable[..., Any], arguments: Mapping[str, Any], compute: Callable[[], Any]
    ) -> Any:
        """The stored value of a function for these arguments, else what `compute` returns, which is then stored.

        `compute` depends on nothing but the arguments. A damaged file is reported and replaced.
        """
        if self.directory is None:
            return compute()
        key = cache_key(function, arguments)
        stored = self.read(key)
        if stored is not None:
            return stored["value"]
        value = compute()
        self.write(key, value)
        return value

    def read(self, key: Mapping[str, Any]) -> dict[str, Any] | None:
        """The stored object of a key, with its `value`; None if there is none, or if it is damaged, which is told."""
        file = self.file(key, ".json")
        if not file.is_file():
            return None
        try:
            stored = read_checked_json(file)
            if stored["key"] != json.loads(json.dumps(key)):
                raise DamagedFileError(f"{file} holds the value of another key")
            return stored
        except (ValueError, LookupError) as error:
            warn_of_damage(error if isinstance(error, DamagedFileError) else DamagedFileError(f"{file} is damaged"))
            return None

    def write(self, key: Mapping[str, Any], value: Any) -> None:
        """Store the value of a key."""
        write_checked_json(self.file(key, ".json"), {"key": key, "value": value})

    def file(self, key: Mapping[str, Any], suffix: str) -> StorePath:
        """The file of a key."""
        assert self.directory is not None, "called only with a store"
        return self.directory / FOLDER / f"{hashlib.sha256(json.dumps(key).encode()).hexdigest()[:24]}{suffix}"


def compute_part(shared: tuple[StorePath, Callable[..., Any], Sequence[Mapping[str, Any]], bool], step: int) -> None:
    """Compute and store one value of `AnalysisCache.call_all`, in a worker."""
    directory, function, arguments, hand_on_progress = shared
    AnalysisCache(directory).call(function, progress=no_progress if hand_on_progress else None, **arguments[step])


def warn_of_damage(error: DamagedFileError) -> None:
    """Tell of a damaged file whose value is computed again."""
    warnings.warn(f"{error}. Its value is computed again.", DamagedFileWarning, stacklevel=4)


def step_progress(meter: ProgressCallback, step: int, n_steps: int) -> ProgressCallback:
    """Progress of one of several steps of equal length, reported as progress of all of them."""

    def report(done: int, total: int) -> None:
        meter(step * total + done, n_steps * total)

    return report
