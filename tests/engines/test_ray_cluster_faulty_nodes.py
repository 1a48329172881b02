"""A Ray cluster of three nodes on this machine of which one does not fit or cannot store, and a node that joins late.

The faults are real: the node runs in namespaces of its own, with a host name, a read-only folder or a full disk that no
other process sees, with another copy of bertology, or without credentials. The other nodes wait until the faulty one
has come to its turn, so that nothing depends on who is faster.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import pytest

import object_stores
from command import CommandResult
from engines.gated_recording import SECONDS, UNGATED, run_gated, run_small
from engines.ray_nodes import ENVIRONMENT, ROOT, Nodes, ray_nodes
from object_stores import BUCKET, object_contents, running_server
from recording.test_engine_shards import digests
from warm_processes import BERTOLOGY, WarmProcess

NODE = "node-b"
UNSHARE = ("unshare", "--user", "--map-root-user", "--mount", "--uts")
MOUNT = """
set -eu
folder=$1 kind=$2; shift 2
hostname node-b
case $kind in
none) ;;
small) mount -t tmpfs -o size=8k tmpfs "$folder" ;;
full) mount -t tmpfs -o size=8k tmpfs "$folder"; head -c 8192 /dev/zero > "$folder/zeros" ;;
read-only) mount --bind "$folder" "$folder"; mount -o remount,bind,ro "$folder" ;;
esac
exec "$@"
"""
RECORD = [*BERTOLOGY, "record", "tiny", "english", "--sites", "attention,hidden", "--limit", "120"]


def prefix(kind: str = "none", folder: Path = ROOT) -> list[str]:
    """What starts a node in namespaces of its own, in which something is mounted on the folder."""
    return [*UNSHARE, "sh", "-c", MOUNT, "sh", str(folder), kind]


@pytest.fixture(scope="module", autouse=True)
def namespaces(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Skip where nobody may mount."""
    folder = tmp_path_factory.mktemp("mount")
    for kind in ("full", "read-only"):
        command = [*prefix(kind, folder), "true"]
        if shutil.which("unshare") is None or subprocess.run(command, capture_output=True, check=False).returncode:
            pytest.skip("this machine lets nobody mount a disk or set a host name (no user namespaces)")


@pytest.fixture(scope="module")
def s3_environment() -> Generator[dict[str, str]]:
    """The address and the credentials of an S3 server."""
    with running_server() as endpoint, pytest.MonkeyPatch.context() as patch:
        object_stores.set_environment(patch, endpoint)
        object_stores.file_system("s3://").mkdir(BUCKET)
        yield {name: value for name, value in os.environ.items() if name.startswith("AWS_")}


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The digests of a recording by one process."""
    folder = tmp_path_factory.mktemp("one") / "recording"
    done = WarmProcess(run_small, [*RECORD, "-o", str(folder)]).wait()
    assert done.status == 0, done.err
    assert n_shards(digests(folder)) >= 6, "each node has shards to record"
    return digests(folder)


@dataclass
class Cluster:
    """Two nodes that nothing is wrong with, to which a third is added; `environment` is that of the driver."""

    nodes: Nodes
    environment: dict[str, str]
    folder: Path

    def start(self, *words: str) -> WarmProcess:
        """Start a recording, in which the third node comes to its turn."""
        for file in (self.folder / "gate", self.folder / "actors"):
            file.unlink(missing_ok=True)
        line = [*RECORD, *words, "--engine", f"ray:{self.nodes.address}"]
        return WarmProcess(run_gated, str(self.folder / "gate"), NODE, line, environment=self.environment)

    def record(self, *words: str) -> CommandResult:
        """Record on two nodes."""
        line = [*RECORD, *words, "--engine", f"ray:{self.nodes.address}"]
        return WarmProcess(run_small, line, environment=self.environment).wait()

    def record_with(self, *words: str, mounts: list[str], **environment: str) -> CommandResult:
        """Record on three nodes, of which the third has these mounts and variables, and is ended again."""
        variables = {"BERTOLOGY_HOME": str(self.folder / "home-b"), UNGATED: "1"}
        node = self.nodes.add(prefix=mounts, **variables | environment)
        try:
            done = self.start(*words).wait()
        finally:
            self.nodes.end(node)
        assert len((self.folder / "actors").read_text()) == 3, "the worker of the faulty node was not replaced"
        return done


@pytest.fixture(scope="module")
def nodes(
    namespaces: None, s3_environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Generator[Nodes]:
    home = tmp_path_factory.mktemp("nodes")
    with ray_nodes(**s3_environment, BERTOLOGY_HOME=str(home / "a")) as started:
        started.add(**s3_environment, BERTOLOGY_HOME=str(home / "c"))
        yield started


@pytest.fixture
def cluster(nodes: Nodes, s3_environment: dict[str, str], tmp_path: Path) -> Cluster:
    return Cluster(nodes, ENVIRONMENT | s3_environment | {"BERTOLOGY_HOME": str(tmp_path / "home")}, tmp_path)


def n_shards(files: dict[str, str]) -> int:
    """The shards of which all sites are there."""
    return sum(file.startswith("hidden/") for file in files)


def object_digests(address: str) -> dict[str, str]:
    return {file: hashlib.sha256(content).hexdigest() for file, content in object_contents(address).items()}


def paragraph(done: CommandResult) -> str:
    """What a command ended with: status 2 and one line."""
    assert done.status == 2, done.err
    assert "Traceback" not in done.err and done.out == "", done.err
    told = done.err.splitlines()[-1]
    assert told.startswith("bertology: ") and " Expected " in told, done.err
    return told


@pytest.mark.slow
def test_a_node_with_another_version_is_given_no_task(cluster: Cluster, expected: dict[str, str]) -> None:
    other, folder = cluster.folder / "other", cluster.folder / "recording"
    shutil.copytree(ROOT / "src", other, ignore=shutil.ignore_patterns("__pycache__"))
    declared = other / "bertology" / "__init__.py"
    declared.write_text(f"{declared.read_text('utf-8')}\n__version__ = '0.0.1'\n", "utf-8")
    path = os.pathsep.join([str(other), str(ROOT / "tests")])
    done = cluster.record_with("-o", str(folder), mounts=prefix(), PYTHONPATH=path)
    told = paragraph(done)
    assert f"The worker on {NODE} has other versions than the driver: bertology 0.0.1 (code " in told, told
    assert "Install the versions of the driver on all nodes" in told
    assert "It is given no task" in done.err, "it is told when it is found"
    assert digests(folder) == expected, "the other nodes have recorded everything"
    again = cluster.record("-o", str(folder))
    assert again.status == 0 and digests(folder) == expected, again.err


@pytest.mark.slow
def test_a_node_that_lacks_a_package_is_given_no_task(cluster: Cluster, expected: dict[str, str]) -> None:
    other, folder = cluster.folder / "other", cluster.folder / "recording"
    (other / "bertology").mkdir(parents=True)
    (other / "bertology" / "__init__.py").write_text("")
    path = os.pathsep.join([str(other), str(ROOT / "tests")])
    told = paragraph(cluster.record_with("-o", str(folder), mounts=prefix(), PYTHONPATH=path))
    # It cannot tell its host name: Ray tells its address, which is that of all nodes here.
    assert "The worker on 127.0.0.1 cannot import 'bertology.engines'" in told, told
    assert digests(folder) == expected


@pytest.mark.slow
def test_a_node_that_may_not_write_is_given_no_task(cluster: Cluster, expected: dict[str, str]) -> None:
    folder = cluster.folder / "recording"
    folder.mkdir()
    told = paragraph(cluster.record_with("-o", str(folder), mounts=prefix("read-only", folder)))
    assert f"The worker on {NODE} cannot use the folder of this run: Cannot write to {folder}: Read-only file" in told
    assert "Choose another folder with -o or --store, or correct its permissions" in told
    assert digests(folder) == expected
    again = cluster.record("-o", str(folder))
    assert again.status == 0 and digests(folder) == expected, again.err


@pytest.mark.slow
def test_a_node_without_credentials_is_given_no_task(cluster: Cluster, expected: dict[str, str]) -> None:
    address = f"s3://{BUCKET}/{cluster.folder.name}"
    variables = {name: value for name, value in cluster.environment.items() if name.startswith("AWS_")}
    variables |= {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}
    told = paragraph(cluster.record_with("-o", address, mounts=prefix(), **variables))
    assert f"The worker on {NODE} cannot use the folder of this run: No permission to read {address}/" in told, told
    assert "Set the credentials in the environment" in told
    assert object_digests(address) == expected


@pytest.mark.slow
@pytest.mark.parametrize("disk", ["full", "small"])
def test_a_node_without_space_for_uploads_is_given_no_further_task(
    disk: str, cluster: Cluster, expected: dict[str, str], s3_environment: dict[str, str]
) -> None:
    """What is uploaded is written to a disk of the node first: it has no space at all, or too little for a shard."""
    address, home = f"s3://{BUCKET}/{cluster.folder.name}", cluster.folder / "home-b" / "downloads"
    home.mkdir(parents=True)
    told = paragraph(cluster.record_with("-o", address, mounts=prefix(disk, home), **s3_environment))
    assert f"{home}: No space left on device" in told, told
    assert "Free some space and run the same command again: finished work is kept and not repeated" in told
    kept = object_digests(address)
    assert kept.items() <= expected.items()
    if disk == "full":
        assert f"The worker on {NODE} cannot use the folder of this run: Cannot write to" in told, told
        assert kept == expected, "no task was given to the node"
    else:
        assert f"failed on {NODE}: Cannot write to" in told and "(first input: '" in told, told
        assert n_shards(kept) == n_shards(expected) - 1, "one shard was lost, and no other given to the node"
    again = cluster.record("-o", address)
    assert again.status == 0 and object_digests(address) == expected, again.err


@pytest.mark.slow
def test_a_node_whose_disk_fills_up_is_given_no_further_task(cluster: Cluster, expected: dict[str, str]) -> None:
    folder = cluster.folder / "recording"
    first = WarmProcess(run_small, [*RECORD, "-o", str(folder), "--slice", f"1/{n_shards(expected)}"]).wait()
    assert first.status == 0, first.err
    told = paragraph(cluster.record_with("-o", str(folder), mounts=prefix("small", folder / "hidden")))
    assert f"failed on {NODE}: Cannot write to {folder / 'hidden'}: No space left on device" in told, told
    assert "Free some space and run the same command again" in told
    kept = digests(folder)
    assert kept.items() <= expected.items() and n_shards(kept) == n_shards(expected) - 1
    again = cluster.record("-o", str(folder))
    assert again.status == 0 and digests(folder) == expected, again.err


@pytest.mark.slow
def test_a_node_that_joins_is_counted_and_used(cluster: Cluster, expected: dict[str, str]) -> None:
    folder, started = cluster.folder / "recording", cluster.folder / "started"
    process = cluster.start("-o", str(folder))
    end = time.monotonic() + SECONDS
    while not started.exists():
        assert process.is_alive and time.monotonic() < end
        time.sleep(0.05)
    node = cluster.nodes.add(prefix=prefix(), BERTOLOGY_HOME=str(cluster.folder / "home-b"), **{UNGATED: "1"})
    done = process.wait()
    cluster.nodes.end(node)
    assert done.status == 0, done.err
    assert "in 2 workers" in done.err.splitlines()[0], "those that were there at first"
    assert (cluster.folder / "gate").exists(), "the others have waited until the late node had recorded a shard"
    assert digests(folder) == expected
