"""Signals in the middle of a command: it ends with a sentence, keeps what is finished, and the same command goes on."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Generator
from pathlib import Path

import pytest
from tests.faults.commands import COMMANDS, last_line
from tests.faults.interrupted_commands import print_outcomes

from bertology.server.jobs import JobFolder
from serving import RealServer, wait_for, write_sample
from warm_processes import WarmProcess

RESUMES = "finished parts are kept, and the same command resumes"
ENDS = {
    signal.SIGTERM: (143, f"bertology: terminated; {RESUMES}"),
    signal.SIGINT: (130, f"bertology: interrupted; {RESUMES}"),
}
"""The exit status and the last line that a command ends with."""


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_an_interrupted_command_says_so_and_goes_on(name: str, tmp_path: Path) -> None:
    """SIGTERM, SIGINT and SIGKILL one after the other, each at a random moment."""
    done = WarmProcess(print_outcomes, name, tmp_path).wait()
    assert done.status == 0, done.err
    outcomes = json.loads(done.out.splitlines()[-1])
    for sent, (status, told) in ENDS.items():
        expected = {"status": status, "told": told, "traceback": False, "half-written files": 0}
        assert outcomes[sent.name] == expected, sent.name
    assert outcomes["SIGKILL"]["status"] == -signal.SIGKILL
    assert outcomes["resumed"] == 0 and outcomes["same"]


@pytest.fixture
def interruptible() -> Generator[None]:
    """Let processes start with the default effect of SIGINT: what a shell starts in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.slow
@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("sent", ENDS)
def test_an_interrupted_server_says_so_and_keeps_its_jobs(sent: signal.Signals, tmp_path: Path) -> None:
    """The signal goes to the server and to its worker, as the terminal sends it."""
    store = tmp_path / "store"
    corpus = write_sample(tmp_path, 60)
    server = RealServer(tmp_path, "--corpus", corpus, "--store", str(store), start_new_session=True)
    try:
        with server.client() as client:
            wait_for(lambda: client.get("/api/state").json()["corpora"][0]["status"] == "ready", 180)
            for kind in ("links", "states"):
                client.post("/api/jobs", json={"kind": kind})
            wait_for(lambda: next(tmp_path.rglob("pid"), None))
        os.killpg(server.process.pid, sent)
        status = server.process.wait(60)
    finally:
        server.stop()
    told = (tmp_path / "server.log").read_text()
    assert (status, last_line(told)) == ENDS[sent] and "Traceback" not in told, told
    assert [job.state for job in JobFolder(store / "workbench" / "jobs").jobs()] == ["queued", "queued"]
