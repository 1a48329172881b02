"""A disk that is full, read-only or no folder: the command ends with a paragraph and status 1, and nothing is lost.

The disk is a real one: a small tmpfs in a namespace of its own, which ends with the command.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.faults.commands import COMMANDS, ENVIRONMENT, command, last_line, write_inputs

SCRIPT = """
set -eu
disk=$1 size=$2 log=$3; shift 3
mount -t tmpfs -o size=$size tmpfs "$disk"
set +e
"$@" >"$log/full.out" 2>"$log/full.err"; echo $? >"$log/full.status"
mount -o remount,size=200m "$disk"
"$@" >"$log/freed.out" 2>"$log/freed.err"; echo $? >"$log/freed.status"
exit 0
"""
UNSHARE = ("unshare", "--user", "--map-root-user", "--mount")
NO_MOUNT = "this machine lets nobody mount a small disk (no user namespaces)"
SIZES = {"record": "48k", "claims": "80k", "report": "80k", "atlas": "80k", "finetune": "1m"}


def can_mount(folder: Path) -> bool:
    if shutil.which("unshare") is None:
        return False
    mount = subprocess.run([*UNSHARE, "mount", "-t", "tmpfs", "tmpfs", str(folder)], capture_output=True, check=False)
    return mount.returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_a_full_disk_ends_the_command_and_the_same_command_goes_on(name: str, tmp_path: Path) -> None:
    inputs, disk, log = (tmp_path / each for each in ("inputs", "disk", "log"))
    for folder in (inputs, disk, log):
        folder.mkdir()
    if not can_mount(disk):
        pytest.skip(NO_MOUNT)
    write_inputs(inputs)
    line = command(name, inputs, disk, log)
    done = subprocess.run(
        [*UNSHARE, "sh", "-c", SCRIPT, "sh", str(disk), SIZES[name], str(log), *line],
        env=ENVIRONMENT, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = (log / "full.err").read_text()
    assert (log / "full.status").read_text().strip() == "1", told
    assert "No space left on device" in last_line(told) or "no space left on the disk" in last_line(told), told
    assert "Free some space and run the same command again" in last_line(told)
    assert "Traceback" not in told and "not applicable" not in (log / "full.out").read_text()
    assert (log / "freed.status").read_text().strip() == "0", (log / "freed.err").read_text()
    assert "not applicable" not in (log / "freed.out").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "store"), [("claims", "a read-only disk"), ("report", "a file")])
def test_a_store_that_cannot_be_written_ends_the_command(name: str, store: str, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    write_inputs(tmp_path)
    line = command(name, tmp_path, disk, tmp_path)
    if store == "a file":
        (disk / "store").write_text("not a folder")
    elif can_mount(disk):
        line = [*UNSHARE, "sh", "-c", 'mount -t tmpfs -o ro tmpfs "$1"; shift; exec "$@"', "sh", str(disk), *line]
    else:
        pytest.skip(NO_MOUNT)
    done = subprocess.run(line, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and not done.stdout, done.stdout
    assert last_line(done.stderr).startswith("bertology: Cannot write to") and "--store" in last_line(done.stderr)
    assert not (tmp_path / "report.html").exists()
