"""Checkpoints of a run that may be interrupted at any moment: its last state and its best weights, in a directory.

Files are written atomically and carry a digest of their content. Best weights are written before the state that refers
to them, and older ones removed after it, so that the best weights of any state exist.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bertology.atomic_files import remove_stale_partials
from bertology.checked_files import read_checked_bytes, write_checked_bytes
from bertology.errors import Refusal
from bertology.lazy import torch
from bertology.machine_errors import raise_machine_error
from bertology.training.loop import StateDict, TrainingHistory, TrainingState

if TYPE_CHECKING:
    from torch import Tensor

STATE_FILE = "state.pt"
STATE_FORMAT = 3
SAVE_SECONDS = 60.0
MAX_TIME_FRACTION = 0.05
"""Maximum fraction of the time spent on saving states within an epoch."""


class Checkpointer:
    """Saves states in a directory: at the end of every epoch, and within one every `seconds`."""

    def __init__(self, folder: Path, seconds: float = SAVE_SECONDS) -> None:
        self.folder = folder
        self.seconds = seconds
        self._wait = seconds
        self._last_saved = time.monotonic()

    def latest(self) -> TrainingState | None:
        """The last saved state, if there is one."""
        file = self.folder / STATE_FILE
        if not file.is_file():
            return None
        remove_stale_partials(self.folder)
        state: Any = _read(file)
        if not isinstance(state, dict):
            raise _unreadable(file, f"it holds a {type(state).__name__}")
        if state.pop("format", None) != STATE_FORMAT:
            raise Refusal(
                f"{file} was written by an earlier version of bertology",
                "a training state of this version",
                f"Delete the directory {self.folder} to start again",
            )
        try:
            state["history"] = TrainingHistory(**state["history"])
            return TrainingState(**state)
        except (TypeError, KeyError) as error:
            raise _unreadable(file, str(error)) from error

    def save(self, state: Callable[[], TrainingState], *, force: bool) -> None:
        """Save the state if it is due, or in any case with `force`."""
        started = time.monotonic()
        if not force and started - self._last_saved < self._wait:
            return
        current = state()
        content = {**vars(current), "history": asdict(current.history), "format": STATE_FORMAT}
        _write(content, self.folder / STATE_FILE)
        for file in self.folder.glob("best-*.pt"):
            if file.name != _best_file(current.history.best_epoch):
                with suppress(OSError):
                    file.unlink()
        self._last_saved = time.monotonic()
        self._wait = max(self.seconds, (self._last_saved - started) / MAX_TIME_FRACTION)

    def save_best(self, epoch: int, weights: Mapping[str, Tensor]) -> None:
        """Save the weights of the best epoch so far."""
        _write(dict(weights), self.folder / _best_file(epoch))

    def load_best(self, epoch: int) -> StateDict:
        """The saved weights of the best epoch."""
        return _read(self.folder / _best_file(epoch))


def _best_file(epoch: int) -> str:
    return f"best-{epoch}.pt"


def _write(content: dict[str, Any], file: Path) -> None:
    buffer = io.BytesIO()
    torch.save(content, buffer)
    write_checked_bytes(file, buffer.getvalue())


def _read(file: Path) -> Any:
    try:
        return torch.load(io.BytesIO(read_checked_bytes(file)), map_location="cpu", weights_only=True)
    except Exception as error:  # whatever else is wrong with it, training cannot resume from it
        raise_machine_error(error)
        raise _unreadable(file, str(error)) from error


def _unreadable(file: Path, reason: str) -> Refusal:
    return Refusal(
        f"{file} cannot be read ({' '.join(reason.split())[:200]})",
        "the checkpoint of an interrupted fine-tuning run",
        f"Delete the directory {file.parent} to start again",
    )
