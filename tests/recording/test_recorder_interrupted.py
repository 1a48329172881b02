"""A killed and resumed recording equals an uninterrupted one; two processes can record into one folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.recording.interruptions import CONFIG, CORPUS, SITES, print_outcomes
from tests.recording.material import assert_same_recording, tiny

from bertology.recording.manifest import open_recording
from bertology.recording.recorder import record
from warm_processes import WarmProcess

Observations = tuple[dict[str, Any], Path]


@pytest.fixture(scope="module")
def observations(tmp_path_factory: pytest.TempPathFactory) -> Observations:
    folder = tmp_path_factory.mktemp("interrupted")
    done = WarmProcess(print_outcomes, folder).wait()
    assert done.status == 0, done.err
    return json.loads(done.out), folder


@pytest.mark.slow
def test_a_recording_killed_twenty_times_resumes(observations: Observations) -> None:
    observed, folder = observations[0]["killed"], observations[1]
    assert observed["shards"] > 10
    assert observed["killed"] > 10, "most kills must hit a process at work"
    assert observed["finished_before_the_end"] > 0, "some shards were finished before a kill"
    assert observed["status"] == 0
    assert observed["repeated"] == 0, "no forward pass for a finished shard"
    assert observed["changed"] == 0, "no finished shard written again"
    assert observed["same"], "the same files, to the bit, as without interruption"
    assert not list((folder / "killed").glob("*/.*.partial"))
    assert_same_recording(open_recording(folder / "killed"), open_recording(folder / "uninterrupted"))


@pytest.mark.slow
def test_two_processes_can_record_at_once(observations: Observations) -> None:
    observed, folder = observations[0]["at_once"], observations[1]
    assert observed["status"] == [0, 0]
    expected = record(tiny(), CORPUS, SITES, config=CONFIG)
    assert_same_recording(open_recording(folder / "both"), expected, tolerance=1e-5)
