"""The directory of a fine-tuning run: finished, interrupted, or of another run."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bertology.atomic_files import atomic_directory, digest_file, is_partial, remove_stale_partials
from bertology.checked_files import DamagedFileError, read_checked_json, write_checked_json
from bertology.errors import Refusal
from bertology.estimates.estimate import Interval
from bertology.folder_lock import folder_lock
from bertology.input_files import describe_error
from bertology.training.job import save_model
from bertology.training.trainable_model import TrainableModel

METADATA_FILE = "finetuning.json"
TRAINING_FOLDER = "training"
KEY_FILE = "run.json"
LAST_GOOD_FOLDER = "last-good"


class RunDirectory:
    """The directory of a run; `key` holds everything the weights and scores depend on.

    It is locked (`locked`) while it is read and written: two runs would mix their states.
    """

    def __init__(self, folder: Path, key: Mapping[str, Any]) -> None:
        self.folder = folder
        self.training = folder / TRAINING_FOLDER
        # As read back from JSON, for comparison with a stored key.
        self.key: dict[str, Any] = json.loads(json.dumps(key))

    @contextmanager
    def locked(self, notify: Callable[[str], None]) -> Generator[None]:
        """Hold the lock of the directory; wait for a process that writes the same run, and refuse another run."""
        has_notified = False

        def on_wait() -> None:
            nonlocal has_notified
            self._refuse_other_runs()
            if not has_notified:
                notify(f"Another process writes the same run to {self.folder}; waiting until it ends")
                has_notified = True

        with folder_lock(self.folder, on_wait=on_wait):
            yield

    def finished_metadata(self) -> dict[str, Any] | None:
        """The metadata of a finished run with the same key, else None; a directory of another run is refused."""
        remove_stale_partials(self.folder)
        self._refuse_other_runs()
        if (self.folder / METADATA_FILE).is_file():
            shutil.rmtree(self.training, ignore_errors=True)
            metadata = _read_metadata(self.folder / METADATA_FILE)
            self._refuse_damaged_model(metadata["files"])
            return metadata
        if (self.folder / "config.json").is_file() and not self.training.is_dir():
            raise Refusal(
                f"{self.folder} already contains a model", "a new or empty directory", "Choose another with -o"
            )
        self.training.mkdir(exist_ok=True)
        write_checked_json(self.training / KEY_FILE, self.key, indent=1)
        return None

    def _refuse_other_runs(self) -> None:
        for file in (self.folder / METADATA_FILE, self.training / KEY_FILE):
            if file.is_file():
                self._refuse_other_run(file)

    def _refuse_other_run(self, file: Path) -> None:
        stored = _read_json(file)
        if stored.get("format") != self.key.get("format"):
            raise Refusal(
                f"{file} was written by another version of bertology (format {stored.get('format')})",
                f"a new directory, or a run of format {self.key.get('format')}",
                "Choose another directory with -o, or delete this one",
            )
        for name, value in self.key.items():
            if name != "versions" and stored.get(name) != value:
                difference = describe_difference(stored.get(name), value)
                raise Refusal(
                    f"{self.folder} contains a run with another {name} ({difference})",
                    "a new directory, or one with an interrupted run of the same configuration",
                    "Choose another directory with -o, or delete this one",
                )

    def _refuse_damaged_model(self, digests: Mapping[str, str]) -> None:
        for name, digest in digests.items():
            file = self.folder / name
            if not file.is_file() or digest_file(file) != digest:
                raise Refusal(
                    f"{file} is {'damaged' if file.is_file() else 'missing'}: it is not what fine-tuning wrote",
                    f"the model whose files {METADATA_FILE} lists",
                    f"Delete the directory {self.folder} and run the same command again",
                )

    def finish(self, model: TrainableModel, metadata: Mapping[str, Any]) -> dict[str, Any]:
        """Write the model, then the metadata with a digest of each file, which mark the run as finished."""
        save_model(model, self.folder)
        files = sorted(file for file in self.folder.iterdir() if file.is_file() and not is_partial(file))
        finished = {**metadata, "files": {file.name: digest_file(file) for file in files}}
        write_checked_json(self.folder / METADATA_FILE, finished, indent=1)
        self.discard_training()
        return finished

    def discard_training(self) -> None:
        """Delete the training state."""
        shutil.rmtree(self.training, ignore_errors=True)


def save_atomically(model: TrainableModel, folder: Path) -> None:
    """Write a model such that the directory is complete or absent."""
    with atomic_directory(folder) as partial:
        save_model(model, partial)


def describe_difference(previous: Any, current: Any) -> str:
    """The first differences between two values of a key."""
    if isinstance(previous, dict) and isinstance(current, dict):
        names = [name for name in {**previous, **current} if previous.get(name) != current.get(name)]
        return ", ".join(f"{name} {previous.get(name)}, now {current.get(name)}" for name in names[:3])
    return f"{previous}, now {current}"


class _StoredScore(BaseModel):
    """A metric with its interval; numbers that are missing are null."""

    model_config = ConfigDict(extra="forbid")

    value: float | None
    low: float | None
    high: float | None
    n: int
    interval: Interval


class _StoredMetadata(BaseModel):
    """What is read of finetuning.json: the files of the model, and its scores by split and metric."""

    files: dict[Annotated[str, Field(pattern=r"^[^/]+$")], str]
    scores: dict[str, dict[str, _StoredScore]]


def _read_metadata(file: Path) -> dict[str, Any]:
    """The content of finetuning.json; refused if it is not that of a finished run."""
    metadata = _read_json(file)
    try:
        _StoredMetadata.model_validate(metadata)
    except ValidationError as error:
        raise Refusal(
            f"{file} is not what fine-tuning writes ({describe_error(error)})",
            "the files and scores of a finished run",
            f"Choose another directory with -o, or delete {file.parent}",
        ) from error
    return metadata


def _read_json(file: Path) -> dict[str, Any]:
    try:
        return read_checked_json(file)
    except (ValueError, OSError, RecursionError) as error:
        raise Refusal(
            f"{error}" if isinstance(error, DamagedFileError) else f"{file} cannot be read ({error})",
            "a file that fine-tuning wrote",
            f"Choose another directory with -o, or delete {file.parent}",
        ) from error
