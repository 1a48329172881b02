"""A disk that is full, read-only or no folder: the command ends with a paragraph and status 1, and nothing is lost.

The disk is a real one: a small tmpfs in a namespace of its own, which ends with the command. It is full when its bytes
or its files (inodes) are used up; a limit of the size of a file is that of the system (`ulimit -f`).
"""

from __future__ import annotations

import resource
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.faults.commands import COMMANDS, command, last_line, write_inputs
from tests.faults.small_disks import run_on_full_disk, run_on_read_only_disk

from warm_processes import WarmProcess, run_command

UNSHARE = ("unshare", "--user", "--map-root-user", "--mount")
NO_MOUNT = "this machine lets nobody mount a small disk (no user namespaces)"
SIZES = {"record": "48k", "claims": "80k", "report": "80k", "atlas": "80k", "finetune": "1m"}
FAULTS = {
    "bytes": ("", "size=200m"),
    "files": ("size=200m,nr_inodes=5", "nr_inodes=10000"),
    "file size": ("size=200m",) * 2,
}
"""How the disk is mounted, and how it is mounted again when space was made."""
FILE_BLOCKS = {"record": 32, "claims": 4, "finetune": 64}
"""Blocks of 512 bytes that a file may have."""
CASES = [(name, "bytes") for name in COMMANDS] + [
    (name, fault) for fault in ("files", "file size") for name in ("record", "claims", "finetune")
]


def can_mount(folder: Path) -> bool:
    if shutil.which("unshare") is None:
        return False
    mount = subprocess.run([*UNSHARE, "mount", "-t", "tmpfs", "tmpfs", str(folder)], capture_output=True, check=False)
    return mount.returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize(("name", "fault"), CASES)
def test_a_full_disk_ends_the_command_and_the_same_command_goes_on(name: str, fault: str, tmp_path: Path) -> None:
    inputs, disk, log = (tmp_path / each for each in ("inputs", "disk", "log"))
    for folder in (inputs, disk, log):
        folder.mkdir()
    if not can_mount(disk):
        pytest.skip(NO_MOUNT)
    write_inputs(inputs)
    limits, freed = FAULTS[fault]
    limits = limits or f"size={SIZES[name]}"
    file_bytes = FILE_BLOCKS[name] * 512 if fault == "file size" else resource.RLIM_INFINITY
    line = command(name, inputs, disk, log)
    done = WarmProcess(run_on_full_disk, disk, limits, freed, file_bytes, log, line).wait()
    assert done.status == 0, done.err
    told = (log / "full" / "err").read_text()
    assert (log / "full" / "status").read_text() == "1", told
    reasons = ("No space left on device", "no space left on the disk", "File too large", "os error 27")
    assert any(reason in last_line(told) for reason in reasons), told
    assert "Free some space and run the same command again" in last_line(told)
    assert "Traceback" not in told and "not applicable" not in (log / "full" / "out").read_text()
    assert (log / "freed" / "status").read_text() == "0", (log / "freed" / "err").read_text()
    assert "not applicable" not in (log / "freed" / "out").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "store"), [("claims", "a read-only disk"), ("report", "a file")])
def test_a_store_that_cannot_be_written_ends_the_command(name: str, store: str, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    write_inputs(tmp_path)
    line = command(name, tmp_path, disk, tmp_path)
    if store == "a file":
        (disk / "store").write_text("not a folder")
        done = run_command(line)
    elif can_mount(disk):
        done = WarmProcess(run_on_read_only_disk, disk, line).wait()
    else:
        pytest.skip(NO_MOUNT)
    assert done.status == 1 and not done.out, done.out
    assert last_line(done.err).startswith("bertology: Cannot write to") and "--store" in last_line(done.err)
    assert not (tmp_path / "report.html").exists()
