"""Too little memory is told as what it is, with what to do, and not as a damaged model."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest
import torch
from tests.faults.commands import last_line

from bertology.encoder.load import load
from bertology.errors import MachineError, Refusal
from bertology.machine_errors import find_machine_error, raise_machine_error
from warm_processes import BERTOLOGY, WarmProcess, run_main

HUGE = 2**55
MORE_MEGABYTES = 96


def run_limited(line: list[str]) -> None:
    """Run a command in this process with so much memory more than it has now, after a model was loaded."""
    load("tiny")
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    limit = size + MORE_MEGABYTES * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    run_main(line)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").is_file(), reason="the limit is set from what Linux says is in use")
def test_a_pass_that_needs_more_memory_than_there_is_ends_the_command(tmp_path: Path) -> None:
    file = tmp_path / "long.txt"
    file.write_text("".join(f"{'the cat sat on the mat ' * 80}{n}\n" for n in range(64)))
    output = str(tmp_path / "out")
    options = ["--sites", "attention", "--overflow", "truncate", "-o", output]
    done = WarmProcess(run_limited, [*BERTOLOGY, "record", "tiny", str(file), *options]).wait()
    assert done.status == 1, done.err
    assert last_line(done.err).startswith("bertology: The memory is not enough"), done.err
    assert "--limit" in last_line(done.err) and "Traceback" not in done.err


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
