"""The engine on a real Ray cluster of this machine: faults, nodes that join, and nodes that do not fit.

Scenarios run in processes of their own, as Ray changes the process that connects to it.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Generator
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
UNSHARE = ("unshare", "--user", "--map-root-user", "--mount")


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


def skip_without_mounts(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    mount = [*UNSHARE, "mount", "-t", "tmpfs", "tmpfs", str(folder)]
    if shutil.which("unshare") is None or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this machine lets nobody mount a disk (no user namespaces)")


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


JOINING = """
import json, sys
from pathlib import Path
from bertology.engines.engine import WorkerTask
from bertology.engines.ray_cluster import RayEngine
from engines.engine_tasks import process_after

folder = Path(sys.argv[2])
tasks = [WorkerTask(f"task {number}", (number,)) for number in range(3000)]
with RayEngine(sys.argv[1]) as engine:
    before, processes = engine.n_workers, set()
    for n_done, outcome in enumerate(engine.run(process_after, 0.2, tasks, folder=folder), 1):
        processes.add(outcome.value[1])
        if n_done == 1:
            (folder / "started").touch()
        if len(processes) > 1:
            break
print(json.dumps([before, len(processes), n_done < len(tasks)]))
"""


@pytest.mark.slow
def test_a_node_that_joins_is_used_for_the_tasks_that_are_left(nodes: Nodes, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", JOINING, nodes.address, str(tmp_path)],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        text=True,
    )
    wait_for(tmp_path / "started", process)
    joined = nodes.add()
    out, _ = process.communicate(timeout=SECONDS)
    assert json.loads(out.splitlines()[-1]) == [1, 2, True]
    nodes.end(joined)


def wait_for(file: Path, process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + SECONDS
    while not file.exists():
        assert process.poll() is None and time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.slow
def test_a_node_with_other_code_is_refused_and_no_claim_is_judged(nodes: Nodes, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(ROOT / "src", other, ignore=shutil.ignore_patterns("__pycache__"))
    with (other / "bertology" / "citations.py").open("a") as stream:
        stream.write("\n# another version\n")
    node = nodes.add(PYTHONPATH=os.pathsep.join([str(other), str(ROOT / "tests")]))
    store = tmp_path / "store"
    words = ["claims", "tiny", "--limit", "12", "--paper", "clark2019", "--max-unknown-tokens", "1"]
    done = run(*BERTOLOGY, *words, "--store", str(store), "--engine", f"ray:{nodes.address}")
    nodes.end(node)
    assert done.returncode == 2, done.stderr
    assert "has other versions than the driver: bertology" in done.stderr.splitlines()[-1]
    assert done.stdout == "" and "Traceback" not in done.stderr


MOUNT = """
set -eu
folder=$1 kind=$2; shift 2
if [ $kind = full ]; then mount -t tmpfs -o size=4k tmpfs "$folder"; else
  mount --bind "$folder" "$folder"; mount -o remount,bind,ro "$folder"; fi
exec "$@"
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["full", "read-only"])
def test_a_node_that_cannot_write_ends_the_command_and_the_rest_is_kept(
    kind: str, nodes: Nodes, tmp_path: Path
) -> None:
    """The disk of one node is full, or its folder read-only: both are mounted in a namespace of this node alone."""
    skip_without_mounts(tmp_path / "mount")
    one, folder = tmp_path / "one", tmp_path / "recording"
    record = [sys.executable, "-c", SMALL_SHARDS, *RECORD[3:], "--limit", "120"]
    assert run(*record, "-o", str(one)).returncode == 0
    assert run(*record, "-o", str(folder), "--slice", "1/8").returncode == 0
    mounted = folder / "hidden" if kind == "full" else folder
    node = nodes.add(prefix=[*UNSHARE, "sh", "-c", MOUNT, "sh", str(mounted), kind])
    engine = ["-o", str(folder), "--engine", f"ray:{nodes.address}"]
    before = len(digests(folder))
    failed = run(*record, *engine)
    nodes.end(node)
    assert failed.returncode == 2, failed.stderr
    told = failed.stderr.splitlines()[-1]
    assert "Traceback" not in failed.stderr
    if kind == "full":
        assert "first input: " in told and "There is no space left on the disk" in told
        assert len(digests(folder)) > before, "the other node has gone on"
    else:
        assert "has no permission to write into the folder" in told
    again = run(*record, *engine)
    assert again.returncode == 0 and digests(folder) == digests(one), again.stderr


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_command_ends_its_workers_and_resumes(
    number: signal.Signals, nodes: Nodes, tmp_path: Path
) -> None:
    folder = tmp_path / "recording"
    words = ["record", "mini", "english", "--sites", "attention,hidden", "-o", str(folder)]
    command = [sys.executable, "-c", SMALL_SHARDS, *words, "--engine", f"ray:{nodes.address}"]
    process = subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + SECONDS
    while process.poll() is None and not list(folder.glob("hidden/*.safetensors")):
        assert time.monotonic() < end
        time.sleep(0.05)
    process.send_signal(number)
    _, told = process.communicate(timeout=SECONDS)
    assert process.returncode == 128 + number, told
    assert "finished parts are kept, and the same command resumes" in told.splitlines()[-1]
    assert "Traceback" not in told and not list(folder.rglob("*.partial"))
    again = run(*command)
    assert again.returncode == 0 and "Resuming the recording" in again.stderr, again.stderr


@pytest.mark.slow
def test_a_report_has_the_same_bytes_on_the_cluster(nodes: Nodes, tmp_path: Path) -> None:
    def write(name: str, *options: str) -> bytes:
        words = ["report", "tiny", "--limit", "12", "--paper", "clark2019", "--max-unknown-tokens", "1"]
        file = tmp_path / f"{name}.html"
        done = run(*BERTOLOGY, *words, "--store", str(tmp_path / name), "-o", str(file), *options)
        assert done.returncode == 0, done.stderr
        return file.read_bytes()

    assert write("ray", "--engine", f"ray:{nodes.address}") == write("one")


@pytest.mark.slow
def test_a_port_that_is_no_cluster_is_refused(tmp_path: Path) -> None:
    server = subprocess.Popen(
        [sys.executable, "-m", "http.server", "0", "--bind", "127.0.0.1"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env=ENVIRONMENT | {"PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    assert server.stdout is not None
    port = server.stdout.readline().partition(" port ")[2].split()[0]
    done = run(*RECORD, "--limit", "12", "-o", str(tmp_path / "r"), "--engine", f"ray:127.0.0.1:{port}")
    server.kill()
    server.wait()
    assert done.returncode == 2, done.stderr
    assert f"No Ray cluster answers at 127.0.0.1:{port}" in done.stderr.splitlines()[-1]
