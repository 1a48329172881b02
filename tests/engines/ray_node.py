"""A node of a Ray cluster in a process of its own: prints the cluster's address, and ends when stdin is closed."""

from __future__ import annotations

import sys
import time

from ray._private.node import Node
from ray._private.parameter import RayParams
from ray._raylet import GcsClient  # pyright: ignore[reportAttributeAccessIssue]
from ray.core.generated.gcs_pb2 import GcsNodeInfo  # pyright: ignore[reportAttributeAccessIssue]

OBJECT_STORE_BYTES = 80 * 2**20
SECONDS = 120


def main(gcs_address: str | None) -> None:
    """Start a node with one core: the first of a cluster, or one that joins the cluster at the address."""
    parameters = RayParams(
        num_cpus=1, num_gpus=0, object_store_memory=OBJECT_STORE_BYTES, node_ip_address="127.0.0.1",
        gcs_address=gcs_address, include_dashboard=False, min_worker_port=0,
        max_worker_port=0, node_manager_port=0, dashboard_agent_listen_port=0,
    )  # fmt: skip
    node = Node(parameters, head=gcs_address is None, shutdown_at_exit=True, spawn_reaper=True)
    wait_for_state(node, is_alive=True)
    print(node.gcs_address, flush=True)
    sys.stdin.read()
    if gcs_address is None:
        node.kill_all_processes(check_alive=False, allow_graceful=False)
        return
    # A node that is killed would be counted for half a minute more.
    node.kill_all_processes(check_alive=False, allow_graceful=True)
    wait_for_state(node, is_alive=False)


def wait_for_state(node: Node, *, is_alive: bool) -> None:
    """Wait until the cluster knows that the node has joined or ended."""
    client, end = GcsClient(address=node.gcs_address), time.monotonic() + SECONDS
    while True:
        nodes = client.get_all_node_info(timeout=SECONDS).values()
        alive = {info.node_id.hex() for info in nodes if info.state == GcsNodeInfo.GcsNodeState.ALIVE}
        if (node.node_id in alive) == is_alive:
            return
        if time.monotonic() > end:
            raise TimeoutError("the cluster has not noticed the node")
        time.sleep(0.05)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
