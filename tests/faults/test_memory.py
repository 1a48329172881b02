"""Too little memory is told as what it is, with what to do, and not as a damaged model."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from tests.faults.commands import ENVIRONMENT, last_line

from bertology.errors import MachineError, Refusal
from bertology.machine_errors import find_machine_error, raise_machine_error

HUGE = 2**55
LIMITED = """
import resource, sys
from pathlib import Path
import bertology.cli.main as command_line
from bertology.encoder.load import load
from bertology.recording import recorder, plan, manifest
load("tiny")
size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + 96 * 2**20,) * 2)
sys.argv = ["bertology", *sys.argv[1:]]
command_line.main()
"""
"""The command line with 96 MB of memory more than it has after loading a model."""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").is_file(), reason="the limit is set from what Linux says is in use")
def test_a_pass_that_needs_more_memory_than_there_is_ends_the_command(tmp_path: Path) -> None:
    file = tmp_path / "long.txt"
    file.write_text("".join(f"{'the cat sat on the mat ' * 80}{n}\n" for n in range(64)))
    arguments = [
        "record",
        "tiny",
        str(file),
        "--sites",
        "attention",
        "--overflow",
        "truncate",
        "-o",
        str(tmp_path / "out"),
    ]
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, *arguments], env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    assert last_line(done.stderr).startswith("bertology: The memory is not enough"), done.stderr
    assert "--limit" in last_line(done.stderr) and "Traceback" not in done.stderr


def test_the_errors_of_libraries_are_recognised() -> None:
    with pytest.raises(RuntimeError) as real:
        torch.empty(HUGE)
    for error in (real.value, MemoryError(), torch.OutOfMemoryError("CUDA out of memory"), OSError(12, "no memory")):
        found = find_machine_error(error)
        assert found is not None and found.problem.startswith("The memory is not enough")
    for error in (OSError(28, "No space left on device", "file"), Exception("I/O error: No space left (os error 28)")):
        found = find_machine_error(error)
        assert found is not None and "no space left" in found.problem and "Free some space" in found.remedy
    for other in (ValueError("a mistake"), RuntimeError("shapes do not match"), Refusal("a", "b", "c"), OSError(2, "")):
        assert find_machine_error(other) is None
        raise_machine_error(other)


def test_a_refusal_that_memory_has_caused_is_no_refusal() -> None:
    def load() -> None:
        try:
            raise MemoryError
        except MemoryError as error:
            raise Refusal("The model cannot be loaded", "a model", "Save it again") from error

    with pytest.raises(Refusal) as refused:
        load()
    with pytest.raises(MachineError, match="The memory is not enough"):
        raise_machine_error(refused.value)
