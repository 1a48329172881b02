"""Settings of the libraries that compute."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bertology.library_settings import available_cores

ALL_CORES = len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("quota", "cores"),
    [
        ("max 100000", ALL_CORES),
        ("100000 100000", 1),
        ("10000 100000", 1),
        (f"{100_000 * ALL_CORES * 4} 100000", ALL_CORES),
        ("", ALL_CORES),
        ("1 0", ALL_CORES),
    ],
)
def test_a_container_may_allow_fewer_cores_than_there_are(quota: str, cores: int, tmp_path: Path) -> None:
    file = tmp_path / "cpu.max"
    file.write_text(quota)
    assert available_cores(file) == cores


def test_without_a_quota_all_cores_are_used(tmp_path: Path) -> None:
    assert available_cores(tmp_path / "missing") == ALL_CORES


@pytest.mark.skipif(ALL_CORES < 2, reason="one core cannot be left out")
def test_a_process_bound_to_one_core_uses_one_thread() -> None:
    bind = f"os.sched_setaffinity(0, {{{min(os.sched_getaffinity(0))}}})"
    assert _threads_of_a_command(bind, {}) == 1


def test_threads_set_by_the_user_stay() -> None:
    assert _threads_of_a_command("", {"OMP_NUM_THREADS": "1"}) == 1


def _threads_of_a_command(before: str, environment: dict[str, str]) -> int:
    """Threads of torch in a new process after the settings were made."""
    code = (
        f"import os; {before}\nfrom bertology.library_settings import set_library_defaults\nset_library_defaults()\n"
        "assert os.environ['OMP_WAIT_POLICY'] == 'passive'\nimport torch; print(torch.get_num_threads())"
    )
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("OMP_")}
    done = subprocess.run([sys.executable, "-c", code], env=inherited | environment, capture_output=True, check=True)
    return int(done.stdout)
