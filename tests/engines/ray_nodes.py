"""A Ray cluster on the loopback interface of this machine, to which nodes are added while it runs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
NODE = Path(__file__).with_name("ray_node.py")
ENVIRONMENT = os.environ | {
    "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")]),
    "OMP_NUM_THREADS": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_worker_niceness": "0",  # Ray gives its workers the lowest priority
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # Ray then uses the loopback interface, on every system
    "COLUMNS": "200",
}
Process = subprocess.Popen[str]


@dataclass
class Nodes:
    """The nodes of a cluster, each with one core; `address` is that of the first."""

    address: str = ""
    processes: list[Process] = field(default_factory=list[Process])

    def add(self, *, prefix: Sequence[str] = (), **environment: str) -> Process:
        """Start a node, by a command before it (such as `unshare`) or with other variables; it has joined then."""
        command = [*prefix, sys.executable, str(NODE), *([self.address] if self.address else [])]
        process = subprocess.Popen(
            command, env=ENVIRONMENT | environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.processes.append(process)
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address, "the node has not started"
        self.address = address
        return process

    def end(self, process: Process) -> None:
        """End one node."""
        self.processes.remove(process)
        assert process.stdin is not None and process.stdout is not None
        process.stdin.close()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


@contextmanager
def ray_nodes(**environment: str) -> Generator[Nodes]:
    """A cluster of one node with these variables, which is ended with those that were added."""
    nodes = Nodes()
    try:
        nodes.add(**environment)
        yield nodes
    finally:
        for process in reversed(list(nodes.processes)):
            nodes.end(process)
