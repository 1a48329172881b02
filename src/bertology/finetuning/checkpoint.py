"""What is kept of a run that may be interrupted at any moment: its last state and its best weights, in a folder.

Each file is there whole or not at all. Best weights are written before the state that speaks of them and older ones
removed after it, so that whatever state is found, its best weights are there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bertology.errors import Refusal
from bertology.finetuning.loop import Progress, State, Weights
from bertology.recording.files import finish, remove_abandoned, writing

STATE = "state.pt"
SECONDS = 60.0
SHARE = 0.05
"""Of all time, at most this share goes into keeping states within an epoch."""


class FolderKeeper:
    """Keeps states in a folder: at the end of every epoch, and within one every `seconds`."""

    def __init__(self, folder: Path, seconds: float = SECONDS) -> None:
        self.folder = folder
        self.seconds = seconds
        self._wait = seconds
        self._kept = time.monotonic()

    def last(self) -> State | None:
        """The state that was kept last; None where there is none."""
        if not (self.folder / STATE).is_file():
            return None
        remove_abandoned(self.folder)
        found: dict[str, Any] = _read(self.folder / STATE)
        found["progress"] = Progress(**found["progress"])
        return State(**found)

    def keep(self, state: Callable[[], State], *, now: bool) -> None:
        """Keep the state, `now` or if it is time to."""
        begin = time.monotonic()
        if not now and begin - self._kept < self._wait:
            return
        kept = state()
        _write({**vars(kept), "progress": asdict(kept.progress)}, self.folder, STATE)
        for file in self.folder.glob("best-*.pt"):
            if file.name != _best(kept.progress.best_epoch):
                with suppress(OSError):
                    file.unlink()
        self._kept = time.monotonic()
        self._wait = max(self.seconds, (self._kept - begin) / SHARE)

    def keep_best(self, epoch: int, weights: Mapping[str, Tensor]) -> None:
        """Keep the weights that have the best score so far."""
        _write(dict(weights), self.folder, _best(epoch))

    def best(self, epoch: int) -> Weights:
        """The weights that were kept as the best."""
        return _read(self.folder / _best(epoch))


def _best(epoch: int) -> str:
    return f"best-{epoch}.pt"


def _write(content: dict[str, Any], folder: Path, name: str) -> None:
    with writing(folder, name) as (stream, partial):
        torch.save(content, stream)
        finish(stream, partial, folder / name)


def _read(file: Path) -> Any:
    try:
        return torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:  # whatever is wrong with it, it cannot be gone on from
        raise Refusal(
            f"{file} cannot be read ({' '.join(str(error).split())[:200]})",
            "what an interrupted fine-tuning kept",
            f"Delete the folder {file.parent} to begin again",
        ) from error
