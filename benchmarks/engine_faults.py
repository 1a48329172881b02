"""Kill a worker, a node and the driver of a recording on a real Ray cluster, again and again, at random moments.

    python benchmarks/engine_faults.py --times 10

The cluster has three nodes on the loopback interface of this machine. Each recording must finish, or resume when the
driver is started again, and have the bytes of one that nothing happened to. A fault counts only if it came in the
middle: after the first shard and before the last one; a recording that was too fast for it is repeated, with another
moment. One driver records again and again until it is killed: starting drivers and workers takes most of the time.
Prints a line for each fault, and a table.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import queue
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # Ray then uses the loopback interface, on every system
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ["OMP_NUM_THREADS"] = "1"
# Ray gives its workers a low priority: beside other processes they would hardly run.
os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112 - Ray's spelling

N_SENTENCES = 180
SHARD_BYTES = 64 * 1024
BATCH_TOKENS = 128
SITES = ["attention", "hidden"]
OBJECT_STORE_BYTES = 80 * 2**20
WAIT_SECONDS = 1800.0
MAX_PAUSE = 0.1
POLL_SECONDS = 0.05
MAX_ATTEMPTS = 10
FINISHED = "finished"
WORKER_TITLE = b"ray::RayWorker"


def serve_cluster() -> None:
    """A cluster of three nodes in a process of its own: prints its address, and replaces a node for each line read."""
    from ray.cluster_utils import Cluster

    node: dict[str, Any] = {"num_cpus": 1, "object_store_memory": OBJECT_STORE_BYTES, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=node)
    nodes = [cluster.add_node(**node) for _ in range(2)]
    print(cluster.address, flush=True)
    for _ in sys.stdin:
        cluster.remove_node(nodes.pop(random.randrange(2)), allow_graceful=False)
        print("killed", flush=True)
        nodes.append(_add_node(cluster, node))
    cluster.shutdown()


def _add_node(cluster: Any, node: dict[str, Any]) -> Any:
    """A further node; Ray gives one that takes longer than half a minute up, on a busy machine too."""
    for _ in range(MAX_ATTEMPTS):
        try:
            return cluster.add_node(**node)
        except Exception as error:  # Ray raises a bare one
            print(f"a node has not started, and is started again: {error}", file=sys.stderr, flush=True)
    raise TimeoutError("no node starts")


def drive(engine: str | None) -> None:
    """Record as a driver does, into each folder that is read from stdin; prints a line when it has finished."""
    import torch

    from bertology.corpus.read import load_corpus
    from bertology.encoder.load import load
    from bertology.engines.engine import open_engine
    from bertology.recording import plan
    from bertology.recording.recorder import record

    torch.set_num_threads(1)
    plan.SHARD_BYTES = SHARD_BYTES
    config = plan.RecordingConfig(tokens_per_batch=BATCH_TOKENS)
    encoder, corpus = load("mini"), load_corpus("english", limit=N_SENTENCES)
    with open_engine(engine) as opened:
        for line in sys.stdin:
            record(encoder, corpus, SITES, config=config, folder=line.strip(), engine=opened)
            print(FINISHED, flush=True)


class Driver:
    """A driver in a process of its own, started again when it was killed; what it says goes to a log."""

    def __init__(self, address: str | None, log: Path) -> None:
        self._options = ["--address", address] if address else []
        self._log = log
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._process: subprocess.Popen[str] | None = None

    def start_recording(self, folder: Path) -> None:
        """Have it record into a folder."""
        if self._process is None or self._process.poll() is not None:
            self._lines = queue.SimpleQueue()
            with self._log.open("ab") as log:
                self._process = subprocess.Popen(
                    [sys.executable, __file__, "--drive", *self._options],
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
                )  # fmt: skip
            threading.Thread(target=self._read, args=(self._process, self._lines), daemon=True).start()
        assert self._process.stdin is not None
        self._process.stdin.write(f"{folder}\n")
        self._process.stdin.flush()

    @staticmethod
    def _read(process: subprocess.Popen[str], lines: queue.SimpleQueue[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            if line.strip() == FINISHED:  # Ray too may print something
                lines.put(FINISHED)
        lines.put("ended")

    def is_busy(self) -> bool:
        """Whether it has neither finished nor ended."""
        return self._lines.empty()

    def has_finished(self) -> bool:
        """Wait for the end of a recording; false if the driver has ended instead."""
        return self._lines.get(timeout=WAIT_SECONDS) == FINISHED

    def kill(self) -> None:
        """Kill it."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """Let it end."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            self._process.wait()


def digests(folder: Path) -> dict[str, str]:
    """The digest of every file of a recording."""
    files = [file for file in folder.rglob("*") if file.is_file() and not file.name.startswith(".")]
    return {str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def finished_shards(folder: Path) -> int:
    """The finished shards of the last site, which is written last."""
    return len(list((folder / SITES[-1]).glob("*.safetensors")))


def workers(cluster: int) -> list[int]:
    """The process ids of the actors of a cluster: children of the nodes that the process `cluster` has started."""
    processes: dict[int, int] = {}
    actors: list[int] = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdecimal():
                status = (entry / "stat").read_text()
                processes[int(entry.name)] = int(status.rpartition(")")[2].split()[1])
                if (entry / "cmdline").read_bytes().startswith(WORKER_TITLE):
                    actors.append(int(entry.name))
        except OSError:  # it has ended
            continue
    return [actor for actor in actors if processes.get(processes.get(actor, 0)) == cluster]


def wait_until(condition: Callable[[], bool], driver: Driver) -> None:
    """Wait for a state of the recording, or for the end of it."""
    start = time.monotonic()
    while not condition() and driver.is_busy():
        if time.monotonic() - start > WAIT_SECONDS:
            raise TimeoutError("the recording does not go on")
        time.sleep(POLL_SECONDS)


def one_fault(kind: str, folder: Path, cluster: subprocess.Popen[str], driver: Driver, n_shards: int) -> dict[str, Any]:
    """Record, do harm at a random moment, let the recording finish or resume it; what happened."""
    assert cluster.stdin is not None and cluster.stdout is not None
    start = time.monotonic()
    driver.start_recording(folder)
    moment = random.randrange(1, n_shards)
    wait_until(lambda: finished_shards(folder) >= moment, driver)
    time.sleep(random.uniform(0, MAX_PAUSE))
    running, before, was_busy = workers(cluster.pid), finished_shards(folder), driver.is_busy()
    if kind == "worker" and running:
        os.kill(random.choice(running), signal.SIGKILL)
    elif kind == "node":
        cluster.stdin.write("kill\n")
        cluster.stdin.flush()
        cluster.stdout.readline()
    elif kind == "driver":
        driver.kill()
    after = finished_shards(folder)
    if kind == "driver":
        driver.start_recording(folder)
    return {
        "fault": kind, "finished before": before, "of": n_shards, "workers": len(running),
        "in the middle": was_busy and bool(running) and 0 < before <= after < n_shards,
        "finished": driver.has_finished(), "seconds": round(time.monotonic() - start, 1),
    }  # fmt: skip


def run(times: int, kinds: list[str], seed: int) -> list[dict[str, Any]]:
    """All faults; each line is printed as it comes."""
    random.seed(seed)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as root:
        reference, log = Path(root) / "reference", Path(root) / "drivers.log"
        alone = Driver(None, log)
        alone.start_recording(reference)
        assert alone.has_finished(), log.read_text()
        alone.close()
        expected, n_shards = digests(reference), finished_shards(reference)
        command = [sys.executable, __file__, "--cluster"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as cluster:
            assert cluster.stdin is not None and cluster.stdout is not None
            driver = Driver(cluster.stdout.readline().strip(), log)
            for number in range(times):
                for kind in kinds:
                    for attempt in range(MAX_ATTEMPTS):
                        folder = Path(root) / f"{kind}-{number}-{attempt}"
                        row = one_fault(kind, folder, cluster, driver, n_shards)
                        rows.append(row | {"same bytes": digests(folder) == expected})
                        print(json.dumps(rows[-1]), flush=True)
                        if rows[-1]["in the middle"]:
                            break
            driver.close()
            cluster.stdin.close()
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--kinds", default="worker,node,driver")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cluster", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--drive", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--address", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.cluster:
        serve_cluster()
    elif given.drive:
        drive(f"ray:{given.address}" if given.address else None)
    else:
        rows = run(given.times, given.kinds.split(","), given.seed)
        print("fault   recordings  in the middle  of these: finished or resumed  same bytes")
        for kind in given.kinds.split(","):
            own = [row for row in rows if row["fault"] == kind]
            middle = [row for row in own if row["in the middle"]]
            n_finished, n_same = sum(row["finished"] for row in middle), sum(row["same bytes"] for row in middle)
            print(f"{kind:7} {len(own):10} {len(middle):14} {n_finished:30} {n_same:11}")
        if not all(row["finished"] and row["same bytes"] for row in rows):
            raise SystemExit(1)


if __name__ == "__main__":
    main()
