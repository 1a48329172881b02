"""Kill a worker, a node and the driver of a recording on a real Ray cluster, again and again, at random moments.

    python benchmarks/engine_faults.py --times 10

The cluster has three nodes on the loopback interface of this machine. Each recording must finish, or resume when the
driver is started again, and have the bytes of one that nothing happened to. A fault counts only if it came in the
middle: after the first shard and before the last one; a recording that was too fast for it is repeated, with another
moment. Prints a line for each fault, and a table.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # Ray then uses the loopback interface, on every system
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ["OMP_NUM_THREADS"] = "1"

N_SENTENCES = 356
SHARD_BYTES = 64 * 1024
BATCH_TOKENS = 128
SITES = ["attention", "hidden"]
OBJECT_STORE_BYTES = 80 * 2**20
WAIT_SECONDS = 1800.0
MAX_PAUSE = 0.1
POLL_SECONDS = 0.05
MAX_ATTEMPTS = 5
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
        nodes.append(cluster.add_node(**node))
    cluster.shutdown()


def drive(folder: Path, engine: str | None) -> None:
    """Record as a driver does."""
    import torch

    from bertology.corpus.read import load_corpus
    from bertology.encoder.load import load
    from bertology.recording import plan
    from bertology.recording.recorder import record

    torch.set_num_threads(1)
    plan.SHARD_BYTES = SHARD_BYTES
    config = plan.RecordingConfig(tokens_per_batch=BATCH_TOKENS)
    corpus = load_corpus("english", limit=N_SENTENCES)
    record(load("mini"), corpus, SITES, config=config, folder=folder, engine=engine)


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


def start_driver(folder: Path, address: str) -> subprocess.Popen[bytes]:
    """Start a driver; what it says goes to a log."""
    command = [sys.executable, __file__, "--drive", str(folder), "--address", address]
    with (folder.parent / "driver.log").open("ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log)


def wait_until(condition: Callable[[], bool], driver: subprocess.Popen[bytes]) -> None:
    """Wait for a state of the recording, or for the end of its driver."""
    start = time.monotonic()
    while not condition() and driver.poll() is None:
        if time.monotonic() - start > WAIT_SECONDS:
            raise TimeoutError("the recording does not go on")
        time.sleep(POLL_SECONDS)


def one_fault(kind: str, folder: Path, cluster: subprocess.Popen[bytes], address: str, n_shards: int) -> dict[str, Any]:
    """Record, do harm at a random moment, let the recording finish or resume it; what happened."""
    assert cluster.stdin is not None and cluster.stdout is not None
    start = time.monotonic()
    driver = start_driver(folder, address)
    moment = random.randrange(1, n_shards)
    wait_until(lambda: finished_shards(folder) >= moment, driver)
    time.sleep(random.uniform(0, MAX_PAUSE))
    n_workers = len(workers(cluster.pid))
    before, was_running = finished_shards(folder), driver.poll() is None
    if kind == "worker":
        running = workers(cluster.pid)
        if running:
            os.kill(random.choice(running), signal.SIGKILL)
    elif kind == "node":
        cluster.stdin.write(b"kill\n")
        cluster.stdin.flush()
        cluster.stdout.readline()
    else:
        driver.kill()
    after = finished_shards(folder)
    status = driver.wait(WAIT_SECONDS)
    if kind == "driver":
        status = start_driver(folder, address).wait(WAIT_SECONDS)
    return {
        "fault": kind, "finished before": before, "of": n_shards, "workers": n_workers,
        "in the middle": was_running and bool(n_workers) and 0 < before <= after < n_shards,
        "status": status, "seconds": round(time.monotonic() - start, 1),
    }  # fmt: skip


def run(times: int, kinds: list[str], seed: int) -> list[dict[str, Any]]:
    """All faults; each line is printed as it comes."""
    random.seed(seed)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as root:
        reference = Path(root) / "reference"
        subprocess.run([sys.executable, __file__, "--drive", str(reference)], check=True)
        expected, n_shards = digests(reference), finished_shards(reference)
        command = [sys.executable, __file__, "--cluster"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as cluster:
            assert cluster.stdin is not None and cluster.stdout is not None
            address = cluster.stdout.readline().decode().strip()
            for number in range(times):
                for kind in kinds:
                    for attempt in range(MAX_ATTEMPTS):
                        folder = Path(root) / f"{kind}-{number}-{attempt}"
                        row = one_fault(kind, folder, cluster, address, n_shards)
                        rows.append(row | {"same bytes": digests(folder) == expected})
                        print(json.dumps(rows[-1]), flush=True)
                        if rows[-1]["in the middle"]:
                            break
            cluster.stdin.close()
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--kinds", default="worker,node,driver")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cluster", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--drive", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--address", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.cluster:
        serve_cluster()
    elif given.drive is not None:
        drive(given.drive, f"ray:{given.address}" if given.address else None)
    else:
        rows = run(given.times, given.kinds.split(","), given.seed)
        print("fault   recordings  in the middle  of these: finished or resumed  same bytes")
        for kind in given.kinds.split(","):
            own = [row for row in rows if row["fault"] == kind]
            middle = [row for row in own if row["in the middle"]]
            n_finished, n_same = sum(row["status"] == 0 for row in middle), sum(row["same bytes"] for row in middle)
            print(f"{kind:7} {len(own):10} {len(middle):14} {n_finished:30} {n_same:11}")
        if not all(row["status"] == 0 and row["same bytes"] for row in rows):
            raise SystemExit(1)


if __name__ == "__main__":
    main()
