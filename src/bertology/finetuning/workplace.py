"""The folder of a fine-tuning run: what is finished there, what was interrupted, and whose it is."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bertology.errors import Refusal
from bertology.finetuning.learn import save_learner
from bertology.finetuning.learner import Learner

RECORD = "finetuning.json"
TRAINING = "training"
IDENTITY = "run.json"
LAST_GOOD = "last-good"


class Workplace:
    """The folder of a run: what is finished there, what was interrupted, and whose it is."""

    def __init__(self, folder: Path, about: Mapping[str, Any]) -> None:
        self.folder = folder
        self.training = folder / TRAINING
        # As JSON has it, so that what is compared is what was written.
        self.about: dict[str, Any] = json.loads(json.dumps(about))

    def finished(self) -> dict[str, Any] | None:
        """The record of a run like this one that has ended; a folder of another run is refused."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise Refusal(
                f"{self.folder} cannot be made ({error.strerror})", "a folder to write to", "Choose another with -o"
            ) from error
        for file in (self.folder / RECORD, self.training / IDENTITY):
            if file.is_file():
                self._refuse_other(file)
        if (self.folder / RECORD).is_file():
            shutil.rmtree(self.training, ignore_errors=True)
            return json.loads((self.folder / RECORD).read_text("utf-8"))
        if (self.folder / "config.json").is_file() and not self.training.is_dir():
            raise Refusal(f"{self.folder} holds a model already", "a new or empty folder", "Choose another with -o")
        self.training.mkdir(exist_ok=True)
        _write_json(self.training / IDENTITY, self.about)
        return None

    def _refuse_other(self, file: Path) -> None:
        found: dict[str, Any] = json.loads(file.read_text("utf-8"))
        for name, value in self.about.items():
            if name != "versions" and found.get(name) != value:
                raise Refusal(
                    f"{self.folder} holds a run that differs in its {name} ({difference(found.get(name), value)})",
                    "a new folder, or one in which the same run was interrupted",
                    "Choose another with -o, or delete this one",
                )

    def finish(self, learner: Learner, record: Mapping[str, Any]) -> None:
        """Write the model and, when it is all there, the record."""
        save_learner(learner, self.folder)
        _write_json(self.folder / RECORD, record)
        shutil.rmtree(self.training, ignore_errors=True)

    def give_up(self) -> None:
        """Forget a run that there is no going on from."""
        shutil.rmtree(self.training, ignore_errors=True)


def save_whole(learner: Learner, folder: Path) -> None:
    """A model that is there whole or not at all."""
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    save_learner(learner, partial)
    shutil.rmtree(folder, ignore_errors=True)
    partial.rename(folder)


def difference(found: Any, given: Any) -> str:
    """What differs between two values, as short as can be."""
    if isinstance(found, dict) and isinstance(given, dict):
        names = [name for name in {**found, **given} if found.get(name) != given.get(name)]
        return ", ".join(f"{name} {found.get(name)}, now {given.get(name)}" for name in names[:3])
    return f"{found}, now {given}"


def _write_json(file: Path, value: Mapping[str, Any]) -> None:
    partial = file.with_name(f".{file.name}.partial")
    partial.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    partial.replace(file)
