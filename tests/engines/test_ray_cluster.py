"""The engine on a real Ray cluster of this machine: faults, failing tasks, late workers and interruptions.

Scenarios run in processes of their own, as Ray changes the process that connects to it.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from engines.ray_nodes import ENVIRONMENT, ROOT, Nodes, ray_nodes
from recording.test_engine_shards import digests

FAULTS = ROOT / "benchmarks" / "engine_faults.py"
SECONDS = 900
BERTOLOGY = [sys.executable, "-m", "bertology"]
RECORD = [*BERTOLOGY, "record", "tiny", "english", "--sites", "attention,hidden"]
SMALL_SHARDS = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs of a shell in the background ignore it
from bertology.recording import plan
plan.SHARD_BYTES = 64 * 1024
from bertology.cli.main import main
main()
"""


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=SECONDS, check=False)


def run_program(program: str, *arguments: str) -> object:
    done = run(sys.executable, "-c", program, *arguments)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def nodes() -> Generator[Nodes]:
    with ray_nodes() as started:
        yield started


@pytest.mark.slow
def test_a_recording_survives_a_killed_worker_node_and_driver() -> None:
    done = run(sys.executable, str(FAULTS), "--times", "1")
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    in_the_middle = [row["fault"] for row in rows if row["in the middle"]]
    assert in_the_middle == ["worker", "node", "driver"], (rows, done.stderr[-2000:])
    assert all(row["finished"] and row["same bytes"] for row in rows), rows


TASKS = """
import json, sys
from pathlib import Path
from bertology.engines import ray_cluster
from bertology.engines.engine import WorkerTask
from bertology.engines.ray_cluster import RayEngine
from engines.engine_tasks import EndsItsProcess, describe_call, process_after
import ray

address, folder = sys.argv[1], Path(sys.argv[2])
found = {}
with RayEngine(address) as engine:
    # A core that is taken: the actor of a second node starts when the first job has ended.
    taken = ray.remote(num_cpus=1)(type("Taken", (), {"here": lambda self: 1})).remote()
    ray.get(taken.here.remote())
    found["workers"] = engine.n_workers
    tasks = [WorkerTask(f"task {number}", (number,)) for number in range(8)]
    shared = {"word": "shared", "folder": str(folder)}
    outcomes = {each.task.label: each for each in engine.run(describe_call, shared, tasks, folder=folder)}
    found["values"] = sum(each.error is None for each in outcomes.values())
    found["failed"] = str(outcomes["task 3"].error)
    found["lost"] = outcomes["task 5"].error.problem
    found["tries"] = [len((folder / f"tries-{number}").read_text()) for number in range(8)]
    ray.kill(taken)
    many, processes = [WorkerTask(f"task {number}", (number,)) for number in range(3000)], set()
    for outcome in engine.run(process_after, 0.2, many, folder=folder):
        processes.add(outcome.value[1])
        if len(processes) == 2:
            break
    found["processes"] = len(processes)
    ray_cluster.MAX_TRIES = 1
    try:
        list(engine.run(process_after, EndsItsProcess(), tasks, folder=folder))
    except Exception as error:
        found["unstartable"] = str(error)
print(json.dumps(found))
"""


@pytest.mark.slow
def test_failing_tasks_lost_workers_and_workers_that_start_late(nodes: Nodes, tmp_path: Path) -> None:
    second = nodes.add()
    found = run_program(TASKS, nodes.address, str(tmp_path))
    assert isinstance(found, dict)
    assert found["workers"] == 2 and found["values"] == 6
    assert found["failed"] == "three is never right"
    assert "The worker of task 5 ended 3 times before the task did" in found["lost"]
    assert found["tries"] == [1, 1, 1, 1, 2, 3, 1, 1]
    assert found["processes"] == 2, "the late worker is used, and its late answer to the first job is no error"
    assert "ended 3 times while they started" in found["unstartable"]
    assert not list(tmp_path.glob(".*")), "the tokens of runs are removed"
    nodes.end(second)


@pytest.mark.slow
def test_a_terminated_command_ends_its_workers_and_resumes(
    nodes: Nodes, tmp_path: Path, of_one_process: dict[str, str]
) -> None:
    """Both signals take the same way through the engines: test_local.py sends both to processes."""
    folder = tmp_path / "recording"
    words = ["record", "mini", "english", "--limit", "300", "--sites", "attention,hidden", "-o", str(folder)]
    command = [sys.executable, "-c", SMALL_SHARDS, *words, "--engine", f"ray:{nodes.address}"]
    process = subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + SECONDS
    while process.poll() is None and not list(folder.glob("hidden/*.safetensors")):
        assert time.monotonic() < end
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    _, told = process.communicate(timeout=SECONDS)
    assert process.returncode == 128 + signal.SIGTERM, told
    assert "finished parts are kept, and the same command resumes" in told.splitlines()[-1]
    assert "Traceback" not in told and not list(folder.rglob("*.partial"))
    again = run(*command)
    assert again.returncode == 0 and "Resuming the recording" in again.stderr, again.stderr
    assert digests(folder) == of_one_process


@pytest.fixture(scope="module")
def of_one_process(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The digests of the recording that is interrupted, made without an interruption by one process."""
    folder = tmp_path_factory.mktemp("one") / "recording"
    words = ["record", "mini", "english", "--limit", "300", "--sites", "attention,hidden", "-o", str(folder)]
    done = run(sys.executable, "-c", SMALL_SHARDS, *words)
    assert done.returncode == 0, done.stderr
    return digests(folder)


@pytest.mark.slow
def test_a_port_that_is_no_cluster_is_refused(tmp_path: Path) -> None:
    """A web server answers there: Ray itself would try to talk to it for a quarter of an hour."""
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        address = f"127.0.0.1:{server.server_port}"
        done = run(*RECORD, "--limit", "12", "-o", str(tmp_path / "r"), "--engine", f"ray:{address}")
        server.shutdown()
        thread.join()
    assert done.returncode == 2, done.stderr
    assert f"No Ray cluster answers at {address}" in done.stderr.splitlines()[-1]
