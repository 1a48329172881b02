"""The directory of a run: what a killed process left there is removed when the run is continued."""

from __future__ import annotations

from pathlib import Path

from bertology.atomic_files import partial_file
from bertology.training.run_directory import METADATA_FILE, RunDirectory


def test_half_written_files_of_a_killed_run_are_removed(tmp_path: Path) -> None:
    with partial_file(tmp_path, METADATA_FILE) as (_, alive):
        process = alive.name.split("-")[-1].split(".")[0]
        dead = alive.with_name(alive.name.replace(f"-{process}.", "-999999999."))
        dead.write_bytes(b"half")
        assert RunDirectory(tmp_path, {"format": 1}).finished_metadata() is None
        assert alive.exists() and not dead.exists()
