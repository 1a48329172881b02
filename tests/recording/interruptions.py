"""Run in a process of its own by `test_recorder_interrupted`: records in child processes, and kills them.

Everything is imported once and the children are forks, so that twenty interruptions take seconds.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.recording.material import counting, mixed, shard_of_batch, tiny

from bertology.analyses.attention.targets.analysis import targets_site
from bertology.recording import plan as planning
from bertology.recording.plan import RecordingConfig, make_plan
from bertology.recording.recorder import record
from bertology.recording.shards import SHARD_NAME

CORPUS = mixed(240, max_words=24)
SITES = ["attention", "hidden", targets_site]
CONFIG = RecordingConfig(tokens_per_batch=128)
KILLS = 20
EXTRA_PASSES, MAX_SECONDS = (-2, 4), 0.005
"""A child is killed so many passes after those of its first shard, and then seconds: most finish a shard or two."""


def _fork(work: Callable[[], Any]) -> int:
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException as error:
            os.write(2, repr(error).encode())
            os._exit(1)
        os._exit(0)
    return child


def _record_into(folder: Path, log: Path, config: RecordingConfig = CONFIG) -> Callable[[], Any]:
    def work() -> None:
        with log.open("a", encoding="utf-8") as stream:
            encoder = counting(tiny(), lambda digest: print(digest, file=stream, flush=True))
            record(encoder, CORPUS, SITES, config=config, folder=folder)

    return work


def _wait_for_passes(child: int, log: Path, n_passes: int) -> None:
    """Wait until a child has made so many forward passes, however slow the machine is, or has ended."""
    while len(log.read_text().split() if log.exists() else ()) < n_passes:
        if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            return
        time.sleep(0.001)


def _finished_files(folder: Path) -> dict[str, int]:
    files = [file for file in folder.glob("*/*") if SHARD_NAME.fullmatch(file.name)]
    return {f"{file.parent.name}/{file.name}": file.stat().st_mtime_ns for file in files}


def _finished_shards(folder: Path) -> set[int]:
    """Shards that exist for every site."""
    keys = [site if isinstance(site, str) else site.storage_key for site in SITES]
    indices = [{int(file.name[:5]) for file in (folder / key).glob("*.safetensors")} for key in keys]
    return set.intersection(*indices)


def kill_repeatedly(root: Path) -> dict[str, Any]:
    """Kill a recording twenty times, then let it finish, and compare it with one that was never interrupted."""
    rng = random.Random()
    log = root / "log"
    os.waitpid(_fork(_record_into(root / "uninterrupted", log)), 0)
    n_passes = len(log.read_text().split())
    plan = make_plan(tiny(), CORPUS, CONFIG)
    shard_index = shard_of_batch(plan)
    folder = root / "killed"
    n_repeated = n_changed = n_killed = 0
    for _ in range(KILLS):
        log.unlink()
        finished, files = _finished_shards(folder), _finished_files(folder)
        child = _fork(_record_into(folder, log))
        first_shard = next((shard for shard in range(len(plan.shards)) if shard not in finished), 0)
        _wait_for_passes(child, log, len(plan.shards[first_shard]) + rng.randint(*EXTRA_PASSES))
        time.sleep(rng.uniform(0, MAX_SECONDS))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        n_killed += os.WIFSIGNALED(status)
        log.touch()
        n_repeated += sum(shard_index[digest] in finished for digest in log.read_text().split())
        n_changed += len(files.items() - _finished_files(folder).items())
    log.unlink()
    finished, files = _finished_shards(folder), _finished_files(folder)
    _, status = os.waitpid(_fork(_record_into(folder, log)), 0)
    n_repeated += sum(shard_index[digest] in finished for digest in log.read_text().split())
    n_changed += len(files.items() - _finished_files(folder).items())
    return {
        "status": status,
        "shards": max(shard_index.values()) + 1,
        "passes": n_passes,
        "killed": n_killed,
        "finished_before_the_end": len(finished),
        "repeated": n_repeated,
        "changed": n_changed,
        "same": sorted(_finished_files(folder)) == sorted(_finished_files(root / "uninterrupted")),
    }


def record_twice_at_once(root: Path) -> dict[str, Any]:
    """Two processes record the same corpus into one folder, with batches of different sizes."""
    children = [
        _fork(_record_into(root / "both", root / f"log{size}", RecordingConfig(tokens_per_batch=size)))
        for size in (96, 128)
    ]
    return {"status": [os.waitpid(child, 0)[1] for child in children]}


def print_outcomes(folder: Path) -> None:
    """Interrupt recordings, and print what came of it."""
    planning.SHARD_BYTES = 128 * 1024
    tiny().fingerprint  # noqa: B018  # computed once, before the forks
    print(json.dumps({"killed": kill_repeatedly(folder), "at_once": record_twice_at_once(folder)}))
