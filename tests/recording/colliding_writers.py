"""Run as a program by `test_recorder_collisions`: pairs of processes record into one folder at the same moment.

Everything is imported once and the processes are forks, so that forty collisions take seconds.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from pathlib import Path

import torch
from tests.recording.material import mixed, tiny

from bertology.encoder.encoder import Encoder
from bertology.encoder.load import load
from bertology.errors import Refusal
from bertology.recording.manifest import open_recording
from bertology.recording.plan import RecordingConfig
from bertology.recording.recorder import record

N_RUNS = 40
CORPUS = mixed(12)
SITES = ["attention", "hidden"]
START_SECONDS = 0.02
"""Both processes of a pair wait for the same moment, so long after the second was started."""
REFUSED = 2


def _start_writer(encoder: Encoder, folder: Path, tokens_per_batch: int, start: float) -> int:
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        while time.monotonic() < start:
            pass
        record(encoder, CORPUS, SITES, config=RecordingConfig(tokens_per_batch=tokens_per_batch), folder=folder)
        status = 0
    except Refusal as refusal:
        status = REFUSED if "another model, corpus or configuration" in str(refusal) else 1
    except BaseException as error:
        os.write(2, repr(error).encode())
    finally:
        os._exit(status)


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
        folder, start = root / str(number), time.monotonic() + START_SECONDS
        children = [_start_writer(encoder, folder, 48 + 16 * i, start) for i, encoder in enumerate(encoders)]
        statuses = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        winner = encoders[statuses.index(0)] if 0 in statuses else encoders[0]
        try:
            is_right = _is_right(folder, winner)
        except Refusal:
            is_right = False
        counts[f"{sorted(statuses)} {'right' if is_right else 'wrong'}"] += 1
    return dict(counts)


if __name__ == "__main__":
    torch.set_num_threads(1)
    first, second = tiny(), load("random:tiny@1")
    for each in (first, second):
        each.fingerprint  # noqa: B018  # computed once, before the forks
        record(each, CORPUS[:1], SITES)
    root = Path(sys.argv[1])
    outcomes = {"other": collide(root / "other", (first, second)), "same": collide(root / "same", (first, first))}
    print(json.dumps(outcomes))
