"""Settings of the libraries that compute. They are read when the libraries are loaded, so they are set before."""

from __future__ import annotations

import math
import os
from pathlib import Path

CPU_QUOTA = Path("/sys/fs/cgroup/cpu.max")
"""Microseconds of processor time that a container may use in a period, and the period (Linux, cgroup v2)."""


def set_library_defaults() -> None:
    """Set what the user has not set in the environment.

    Threads that wait for each other sleep instead of spinning: on a shared machine a spinning thread uses up the time
    that the thread it waits for needs. oneDNN would cache a kernel for every shape of a batch, and memory would grow
    with the corpus.
    """
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "0")
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    cores = available_cores()
    if cores < (os.cpu_count() or 1):
        os.environ.setdefault("OMP_NUM_THREADS", str(cores))


def available_cores(quota_file: Path = CPU_QUOTA) -> int:
    """The number of cores this process may use: those it is bound to, or fewer if a container limits its time."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = quota_file.read_text("utf-8").split()
        return max(1, min(cores, math.ceil(int(quota) / int(period))))
    except (OSError, ValueError, ZeroDivisionError):  # no such file, or `max`: no limit
        return cores
