"""What a worker does, whatever engine started it: check that it fits the run, load the job once, run its tasks."""

from __future__ import annotations

import os
import platform
import secrets
import traceback
from collections.abc import Callable
from typing import Any

from bertology.atomic_files import partial_file
from bertology.engines.engine import EngineError, Job, describe_exception
from bertology.engines.pickling import dump_value, load_value
from bertology.engines.runtime import runtime_versions, version_differences
from bertology.errors import MachineError
from bertology.machine_errors import StorageError
from bertology.progress import ProgressCallback
from bertology.store_paths import RemotePath, StorePath, store_path

Answer = tuple[str, bytes]
"""`value` or `error`, and the pickled value or exception."""


class TaskRunner:
    """The job of a worker: its function, and what all of its tasks share."""

    def __init__(self) -> None:
        self._job: Job | None = None
        self._function: Callable[..., Any] | None = None
        self._shared: Any = None

    def start(self, job: Job) -> Answer:
        """Check versions and folder, and load what the tasks share in place of an earlier job."""
        self._job, self._function, self._shared = None, None, None  # gives the memory of the earlier job back
        try:
            _check_versions(job)
            _check_folder(job)
            self._function, self._shared = load_value(job.payload)
            self._job = job
        except ImportError as error:
            return "error", dump_error(_import_error(error))
        except Exception as error:  # told by the driver, whatever it is
            return "error", dump_error(error)
        return "value", b""

    def run(self, arguments: bytes, progress: ProgressCallback) -> Answer:
        """Run a task of the job."""
        assert self._job is not None and self._function is not None, "a job was started"
        try:
            named = {"progress": progress} if self._job.takes_progress else {}
            value = self._function(self._shared, *load_value(arguments), **named)
            return "value", dump_value(value, "The value of a task")
        except Exception as error:  # the other tasks go on
            return "error", dump_error(error)


def load_error(content: bytes) -> Exception:
    """The exception that a worker raised."""
    error = load_value(content)
    assert isinstance(error, Exception)
    return error


def dump_error(error: Exception) -> bytes:
    """An exception as bytes; one that cannot be pickled becomes a sentence."""
    error.add_note("".join(traceback.format_exception(error)))  # of the worker: a pickled exception has none
    try:
        content = dump_value(error, "An exception")
        load_value(content)
        return content
    except Exception:  # exceptions of libraries often cannot be made again from what they were made of
        substitute = MachineError(describe_exception(error), "a task that runs", "See the message")
        return dump_value(substitute, "An exception")


def _check_versions(job: Job) -> None:
    differences = version_differences(job.versions, runtime_versions())
    if differences:
        raise EngineError(
            f"The worker on {platform.node()} has other versions than the driver: {differences}",
            "the same versions everywhere: results could differ",
            "Install the versions of the driver on all nodes",
        )


def _import_error(error: ImportError) -> EngineError:
    return EngineError(
        f"The worker on {platform.node()} cannot import what the tasks need ({describe_exception(error)})",
        "the packages of the driver, plug-ins too, on all nodes",
        "Install them on all nodes",
    )


def _check_folder(job: Job) -> None:
    folder = store_path(job.folder)
    try:
        is_seen = (folder / job.token_file).read_text("utf-8") == job.token
    except PermissionError as error:
        raise _folder_refusal(folder, "has no permission to read") from error
    except OSError:
        is_seen = False
    except StorageError as error:
        raise _storage_refusal(error) from error
    if not is_seen:
        raise _folder_refusal(folder, "does not see")
    try:
        _write_probe(folder, job.token)
    except StorageError as error:
        raise _storage_refusal(error) from error


def _write_probe(folder: StorePath, token: str) -> None:
    """Write a small file into the folder as results are written, and delete it."""
    with partial_file(folder, "engine-worker") as (stream, partial):
        stream.write(token.encode())
        stream.flush()
        os.fsync(stream.fileno())
        if isinstance(folder, RemotePath):
            probe = folder / f"engine-{secrets.token_hex(4)}.probe"
            probe.upload(partial)
            probe.unlink()


def _storage_refusal(error: StorageError) -> EngineError:
    return EngineError(
        f"The worker on {platform.node()} cannot use the folder of this run: {error.problem}",
        error.expected,
        error.remedy,
    )


def _folder_refusal(folder: StorePath, problem: str) -> EngineError:
    return EngineError(
        f"The worker on {platform.node()} {problem} the folder {folder} of this run",
        "a folder that the driver and all workers share and may write",
        "Choose one on a shared file system, or an address such as s3://bucket/folder, with -o or --store",
    )
