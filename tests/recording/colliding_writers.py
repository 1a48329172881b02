"""Run in a process of its own by `test_recorder_collisions`: pairs of processes record into one folder at once.

Everything is imported once and the processes are forks, so that forty collisions take seconds.
"""

from __future__ import annotations

import json
from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np
import torch
from tests.forks import REFUSED, run_together
from tests.recording.material import mixed, tiny

from bertology.encoder.encoder import Encoder
from bertology.encoder.load import load
from bertology.errors import Refusal
from bertology.recording.manifest import open_recording
from bertology.recording.plan import RecordingConfig
from bertology.recording.recorder import record
from bertology.recording.recording import Recording

N_RUNS = 40
CORPUS = mixed(12)
SITES = ["attention", "hidden"]


def _record(encoder: Encoder, folder: Path, tokens_per_batch: int) -> int:
    try:
        record(encoder, CORPUS, SITES, config=RecordingConfig(tokens_per_batch=tokens_per_batch), folder=folder)
    except Refusal as refusal:
        return REFUSED if "another model, corpus or configuration" in str(refusal) else 1
    return 0


def _save(recording: Recording, folder: Path) -> int:
    try:
        recording.save(folder)
    except Refusal as refusal:
        return REFUSED if "is not empty" in str(refusal) else 1
    return 0


def _is_right(folder: Path, encoder: Encoder) -> bool:
    """Whether a folder holds the recording of this encoder and nothing else."""
    expected, opened = record(encoder, CORPUS, SITES), open_recording(folder)
    return opened.encoder == expected.encoder and all(
        torch.allclose(torch.from_numpy(a.copy()), torch.from_numpy(b), atol=1e-5)
        for site in SITES
        for a, b in zip(opened[site], expected[site], strict=True)
    )


def collide(root: Path, encoders: tuple[Encoder, Encoder]) -> dict[str, int]:
    """How the pairs ended: the sorted statuses of both, and whether what lies there is what the winner recorded."""
    counts: Counter[str] = Counter()
    for number in range(N_RUNS):
        folder = root / str(number)
        statuses = run_together([partial(_record, each, folder, 48 + 16 * i) for i, each in enumerate(encoders)])
        winner = encoders[statuses.index(0)] if 0 in statuses else encoders[0]
        try:
            is_right = _is_right(folder, winner)
        except Refusal:
            is_right = False
        counts[f"{sorted(statuses)} {'right' if is_right else 'wrong'}"] += 1
    return dict(counts)


def collide_saved(root: Path, encoders: tuple[Encoder, Encoder]) -> dict[str, int]:
    """How pairs that save recordings of two models as .npz files ended, and whether all files are of the winner."""
    recordings = [record(encoder, CORPUS, ["attention"]) for encoder in encoders]
    counts: Counter[str] = Counter()
    for number in range(N_RUNS):
        folder = root / str(number)
        statuses = run_together([partial(_save, recording, folder) for recording in recordings])
        winner = encoders[statuses.index(0)].name if 0 in statuses else ""
        names = {str(np.load(file)["model"][0]) for file in folder.glob("*.npz")}
        counts[f"{sorted(statuses)} {'right' if names == {winner} else 'wrong'}"] += 1
    return dict(counts)


def print_outcomes(root: Path) -> None:
    """Let pairs of processes collide, and print what came of it."""
    first, second = tiny(), load("random:tiny@1")
    for each in (first, second):
        each.fingerprint  # noqa: B018  # computed once, before the forks
        record(each, CORPUS[:1], SITES)
    outcomes = {
        "other": collide(root / "other", (first, second)),
        "same": collide(root / "same", (first, first)),
        "saved": collide_saved(root / "saved", (first, second)),
    }
    print(json.dumps(outcomes))
