"""The lock of a folder: one process has it at a time, and a process that is killed gives it back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bertology.errors import MachineError
from bertology.folder_lock import folder_lock

HOLDER = """
import sys, time
from pathlib import Path
from bertology.folder_lock import folder_lock
with folder_lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


class GivenUpError(Exception):
    """The caller does not want to wait."""


def test_a_process_waits_until_the_holder_is_killed(tmp_path: Path) -> None:
    folder, waits = tmp_path / "new" / "folder", list[float]()
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(folder)], stdout=subprocess.PIPE, env=dict(os.environ))
    with holder:
        assert holder.stdout is not None and holder.stdout.readline() == b"held\n"

        def give_up() -> None:
            raise GivenUpError

        with pytest.raises(GivenUpError), folder_lock(folder, on_wait=give_up):
            pytest.fail("another process has the lock")

        def kill() -> None:
            waits.append(time.monotonic())
            holder.send_signal(signal.SIGKILL)

        with folder_lock(folder, on_wait=kill):
            assert waits
    assert not list(folder.iterdir()), "a lock leaves no file behind"


def test_the_lock_is_given_back_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(GivenUpError), folder_lock(tmp_path):
        raise GivenUpError
    with folder_lock(tmp_path, on_wait=lambda: pytest.fail("nobody has it")):
        pass


def test_a_path_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(MachineError, match="Cannot write to"), folder_lock(tmp_path / "file"):
        pytest.fail("a file has no lock")
