"""The directory of a run: what a killed process left there is removed when the run is continued."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.training.colliding_runs import N_RUNS, print_outcomes

from bertology.atomic_files import partial_file
from bertology.errors import Refusal
from bertology.training.run_directory import METADATA_FILE, RunDirectory
from warm_processes import WarmProcess


def test_half_written_files_of_a_killed_run_are_removed(tmp_path: Path) -> None:
    with partial_file(tmp_path, METADATA_FILE) as (_, alive):
        process = alive.name.split("-")[-1].split(".")[0]
        dead = alive.with_name(alive.name.replace(f"-{process}.", "-999999999."))
        dead.write_bytes(b"half")
        assert RunDirectory(tmp_path, {"format": 1}).finished_metadata() is None
        assert alive.exists() and not dead.exists()


@pytest.mark.slow
def test_two_processes_do_not_mix_their_runs(tmp_path: Path) -> None:
    done = WarmProcess(print_outcomes, tmp_path).wait()
    assert done.status == 0, done.err
    outcomes = json.loads(done.out)
    assert outcomes == {"other": {"[0, 2] right": N_RUNS}, "same": {"[0, 0] right": N_RUNS}}, done.err


def test_a_process_waits_for_the_same_run_and_is_refused_beside_another(tmp_path: Path) -> None:
    messages: list[str] = []
    run = RunDirectory(tmp_path, {"format": 1, "seed": 0})
    with run.locked(messages.append):
        run.finished_metadata()
        with (
            pytest.raises(Refusal, match="another seed"),
            RunDirectory(tmp_path, {"format": 1, "seed": 1}).locked(print),
        ):
            pytest.fail("another run has the directory")

        def interrupt(message: str) -> None:
            messages.append(message)
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt), RunDirectory(tmp_path, run.key).locked(interrupt):
            pytest.fail("the first run has the directory")
    assert messages == [f"Another process writes the same run to {tmp_path}; waiting until it ends"]
