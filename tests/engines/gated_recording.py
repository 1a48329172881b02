"""Recordings on a cluster in which a certain node comes to its turn, however fast or slow the machine is.

Workers record their first shard and then wait at a gate: a file that the driver makes when the node has answered. A
node with the variable `UNGATED` never waits.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bertology.recording.engine_shards import record_task
from bertology.recording.shard_writer import ShardWriter
from warm_processes import run_main

SHARD_BYTES = 64 * 1024
SECONDS = 900
UNGATED = "UNGATED"


def run_gated(gate: str, node: str, line: list[str]) -> None:
    """Run a command whose recording waits, until the node has answered to a task or has failed to start.

    Beside the gate a file `started` appears when any node has finished a task, and `actors` has a byte for each actor
    that was asked for.
    """
    from bertology.engines import ray_cluster
    from bertology.recording import engine_shards, plan

    actor = vars(ray_cluster)["_Actor"]
    answer, prepare = actor.answer, actor.__init__

    def prepare_and_count(self: Any, *arguments: Any) -> None:
        with Path(gate).with_name("actors").open("a") as stream:
            stream.write("x")
        prepare(self, *arguments)

    def answer_and_open(self: Any) -> Any:
        is_task, kind = self.task is not None, "error"
        try:
            kind, content = answer(self)
            return kind, content
        finally:
            if is_task:
                Path(gate).with_name("started").touch()
            if (self.node == node and (is_task or kind == "error")) or not self.node:
                Path(gate).touch()

    actor.answer, actor.__init__ = answer_and_open, prepare_and_count
    engine_shards.record_task = partial(record_at_gate, gate)
    plan.SHARD_BYTES = SHARD_BYTES
    run_main(line)


def run_small(line: list[str]) -> None:
    """Run a command with shards of the same size."""
    from bertology.recording import plan

    plan.SHARD_BYTES = SHARD_BYTES
    run_main(line)


def record_at_gate(gate: str, writer: ShardWriter, shard_index: int, keys: Sequence[str]) -> list[str]:
    """Record some sites of one shard; all shards but the first wait until the gate is open."""
    end = time.monotonic() + SECONDS
    while shard_index and UNGATED not in os.environ and not Path(gate).exists():
        assert time.monotonic() < end, "the gate was not opened"
        time.sleep(0.05)
    return record_task(writer, shard_index, keys)
