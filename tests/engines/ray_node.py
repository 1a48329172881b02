"""A node of a Ray cluster in a process of its own: prints the cluster's address, and ends when stdin is closed."""

from __future__ import annotations

import sys

from ray._private.node import Node
from ray._private.parameter import RayParams

OBJECT_STORE_BYTES = 80 * 2**20


def main(gcs_address: str | None) -> None:
    """Start a node with one core: the first of a cluster, or one that joins the cluster at the address."""
    parameters = RayParams(
        num_cpus=1, num_gpus=0, object_store_memory=OBJECT_STORE_BYTES, node_ip_address="127.0.0.1",
        gcs_address=gcs_address, include_dashboard=False, min_worker_port=0,
        max_worker_port=0, node_manager_port=0, dashboard_agent_listen_port=0,
    )  # fmt: skip
    node = Node(parameters, head=gcs_address is None, shutdown_at_exit=True, spawn_reaper=True)
    print(node.gcs_address, flush=True)
    sys.stdin.read()
    node.kill_all_processes(check_alive=False, allow_graceful=False)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
