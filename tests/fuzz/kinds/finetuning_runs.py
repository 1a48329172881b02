"""The files of a fine-tuning run: run.json of an interrupted one, finetuning.json of a finished one."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

from bertology.atomic_files import digest_bytes
from bertology.training.finetune import FORMAT, FineTunedModel
from bertology.training.run_directory import RunDirectory
from fuzz.kind import Files, Kind
from fuzz.mutations import deep_json, mutate_bytes, mutate_json

KEY: dict[str, Any] = {
    "format": FORMAT,
    "base": {"name": "tiny", "fingerprint": "a" * 32},
    "task": "token",
    "label": "pos",
    "config": {"seed": 0, "epochs": 3, "learning_rate": 1e-4},
    "versions": {"bertology": "0.1.0"},
}
SCORE = {"value": 0.5, "low": 0.4, "high": 0.6, "n": 10, "interval": "bootstrap"}
FINISHED: dict[str, Any] = {
    **KEY,
    "best_score": 0.5,
    "best_epoch": 2,
    "epochs": [{"epoch": 1, "loss": 1.0, "train_seconds": 1.0}],
    "scores": {"validation": {"accuracy": SCORE}},
    "files": {"config.json": digest_bytes(b"{}")},
}


class FinetuningRuns(Kind):
    """A finished and an interrupted run."""

    name = "fine-tuning runs"

    def make(self, rng: Random) -> Files:
        """One of the two files with its content changed; its digest is right in most cases."""
        finished = rng.random() < 0.6
        name, value = ("finetuning.json", FINISHED) if finished else ("training/run.json", KEY)
        changed = mutate_json(rng, value)
        rest = json.dumps(changed, indent=1).encode()[1:].lstrip() if changed else b"}"
        content = b'{"digest": "' + digest_bytes(rest).encode() + b'", ' + rest
        match rng.randrange(8):
            case 0:
                content = mutate_bytes(rng, content)
            case 1:
                rest = b'"x": ' + deep_json(rng.choice((150, 100_000))) + b"}"
                content = b'{"digest": "' + digest_bytes(rest).encode() + b'", ' + rest
            case _:
                pass
        return {name: content, "config.json": b"{}"}

    def consume(self, folder: Path) -> None:
        """Look whether the run is finished, and read its scores."""
        metadata = RunDirectory(folder, KEY).finished_metadata()
        if metadata is not None:
            model: Any = None
            FineTunedModel(model, folder, metadata).scores()
