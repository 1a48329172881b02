"""Run as a program by `test_interrupted`: records in child processes, kills them, and prints what it saw as JSON.

Everything is imported once and the children are forks, so that twenty interruptions take seconds.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from tests.recording.material import counting, mixed, shard_of_batch, tiny

from bertology.analyses.attention.targets import TARGETS
from bertology.recording import plan as planning
from bertology.recording.plan import make_plan
from bertology.recording.policy import Policy
from bertology.recording.recorder import record
from bertology.recording.shards import SHARD

CORPUS = mixed(240, longest=24)
SITES = ["attention", "hidden", TARGETS]
POLICY = Policy(batch_pieces=128)
KILLS = 20


def _forked(work: Callable[[], Any]) -> int:
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException as error:
            os.write(2, repr(error).encode())
            os._exit(1)
        os._exit(0)
    return child


def _recording(folder: Path, log: Path, policy: Policy = POLICY) -> Callable[[], Any]:
    def work() -> None:
        with log.open("a", encoding="utf-8") as stream:
            encoder = counting(tiny(), lambda digest: print(digest, file=stream, flush=True))
            record(encoder, CORPUS, SITES, policy=policy, folder=folder)

    return work


def _finished(folder: Path) -> dict[str, int]:
    files = [file for file in folder.glob("*/*") if SHARD.fullmatch(file.name)]
    return {f"{file.parent.name}/{file.name}": file.stat().st_mtime_ns for file in files}


def _whole_shards(folder: Path) -> set[int]:
    """Shards that are there for every site."""
    numbers = [{int(file.name[:5]) for file in (folder / site).glob("*.safetensors")} for site in _folders()]
    return set.intersection(*numbers)


def _folders() -> list[str]:
    return [site if isinstance(site, str) else site.identity for site in SITES]


def interrupted(root: Path) -> dict[str, Any]:
    """Kill a recording twenty times, then let it finish, beside one that was never interrupted."""
    random_ = random.Random()
    log = root / "log"
    start = time.perf_counter()
    os.waitpid(_forked(_recording(root / "whole", log)), 0)
    taken = time.perf_counter() - start
    passes = len(log.read_text().split())
    where = shard_of_batch(make_plan(tiny(), CORPUS, POLICY))
    folder = root / "killed"
    repeated = changed = landed = 0
    for _ in range(KILLS):
        log.unlink()
        done, files = _whole_shards(folder), _finished(folder)
        child = _forked(_recording(folder, log))
        time.sleep(random_.uniform(0, taken / 6))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        landed += os.WIFSIGNALED(status)
        log.touch()
        repeated += sum(where[digest] in done for digest in log.read_text().split())
        changed += len(files.items() - _finished(folder).items())
    log.unlink()
    done, files = _whole_shards(folder), _finished(folder)
    _, status = os.waitpid(_forked(_recording(folder, log)), 0)
    repeated += sum(where[digest] in done for digest in log.read_text().split())
    changed += len(files.items() - _finished(folder).items())
    return {
        "status": status,
        "shards": max(where.values()) + 1,
        "passes": passes,
        "landed": landed,
        "finished_before_the_end": len(done),
        "repeated": repeated,
        "changed": changed,
        "same": sorted(_finished(folder)) == sorted(_finished(root / "whole")),
    }


def together(root: Path) -> dict[str, Any]:
    """Two processes record the same thing into one folder at once, with batches of different sizes."""
    children = [
        _forked(_recording(root / "both", root / f"log{size}", Policy(batch_pieces=size))) for size in (96, 128)
    ]
    return {"status": [os.waitpid(child, 0)[1] for child in children]}


if __name__ == "__main__":
    torch.set_num_threads(1)
    planning.SHARD_BYTES = 128 * 1024
    tiny().fingerprint  # noqa: B018  # computed once, before the forks
    folder = Path(sys.argv[1])
    print(json.dumps({"interrupted": interrupted(folder), "together": together(folder)}))
