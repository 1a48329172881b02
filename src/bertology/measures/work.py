"""Long work of an analysis: finished parts are kept, so that an interrupted one goes on, and progress is told."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertology.recording.files import finish, writing

FOLDER = "work"


@dataclass(frozen=True)
class Work:
    """Where finished parts are kept (nowhere without a store), and who is told how far it is."""

    store: Path | None = None
    progress: Callable[[str], Callable[[int, int], None]] | None = None

    def meter(self, title: str) -> Callable[[int, int], None]:
        """What to call with how much is done, and of how much."""
        return self.progress(title) if self.progress is not None else _unheard

    def kept(self, about: Mapping[str, Any], make: Callable[[], Any]) -> Any:
        """The part that `about` describes to the last choice: as it was kept, or made now and kept, as JSON."""
        if self.store is None:
            return make()
        told = json.dumps(about, sort_keys=True)
        name = f"{hashlib.sha256(told.encode()).hexdigest()[:24]}.json"
        file = self.store / FOLDER / name
        if file.is_file():
            return json.loads(file.read_text("utf-8"))["part"]
        part = make()
        with writing(file.parent, name) as (stream, partial):
            stream.write(json.dumps({"about": json.loads(told), "part": part}).encode())
            finish(stream, partial, file)
        return part


def _unheard(done: int, total: int) -> None:
    """Nobody is told."""
