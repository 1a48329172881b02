from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import bertology
from bertology.errors import DamagedFileWarning
from bertology.server import job_queue
from bertology.server.job_queue import JobQueue
from bertology.server.jobs import JobAnswer, JobRequest
from bertology.server.limits import LIMITS
from bertology.server.problems import ApiError
from bertology.server.workbench import Workbench
from serving import finished_job, served_workbench, wait_for

SLOW: dict[str, Any] = {"kind": "analysis", "analysis": "interventions/head_ablation", "options": {"sample_size": 0}}


@pytest.mark.slow
def test_a_result_is_that_of_run(client: TestClient, bench: Workbench) -> None:
    request = {"kind": "analysis", "analysis": "attention/targets", "options": {"seed": 3}, "limit": 30}
    job = client.post("/api/jobs", json=request).json()
    assert job["state"] in {"queued", "running"} and job["estimated_seconds"] > 0
    done = finished_job(client, job["id"])
    assert done["state"] == "done" and done["fraction"] == 1 and done["has_result"]
    expected = bertology.run("attention/targets", "tiny", bertology.read("english", limit=30), seed=3).to_json()
    result = client.get(f"/api/jobs/{job['id']}/result").json()
    assert result["data"] == expected["data"] and result["baselines"] == expected["baselines"]
    assert result["options"] == expected["options"] and result["inputs"]["model"]["model"]["name"] == "tiny"
    table = client.get(f"/api/jobs/{job['id']}/csv").text.splitlines()
    assert table[0].startswith("head,layer,head_in_layer,measure,series,value") and len(table) > 100
    assert "@" in client.get(f"/api/jobs/{job['id']}/bibtex").text
    commands = client.get(f"/api/jobs/{job['id']}/commands").json()
    assert (
        commands["command_line"]
        == "bertology run attention/targets --model tiny --corpus sample.conllu --limit 30 --seed 3"
    )
    assert 'bertology.run("attention/targets"' in commands["python"].replace("'", '"')


@pytest.mark.slow
def test_claims_are_those_of_the_library(client: TestClient, bench: Workbench) -> None:
    job = client.post("/api/jobs", json={"kind": "claims", "papers": ["abnar2020"], "limit": 30}).json()
    assert finished_job(client, job["id"], 300)["state"] == "done"
    result = client.get(f"/api/jobs/{job['id']}/result").json()
    expected = bertology.claims("tiny", bench.session.corpus(""), papers=["abnar2020"], limit=30).to_json()
    assert [claim["verdict"] for claim in result["claims"]] == [claim["verdict"] for claim in expected["claims"]]
    assert result["outcomes"] == expected["outcomes"]


@pytest.mark.parametrize(
    ("request_", "problem"),
    [
        ({"kind": "analysis", "analysis": "attention/nothing"}, "no analysis"),
        ({"kind": "analysis", "analysis": "attention/entropy", "options": {"colour": 1}}, "colour"),
        ({"kind": "analysis", "analysis": "attention/entropy", "options": {"seed": "x"}}, "seed"),
        ({"kind": "analysis", "analysis": "attention/entropy", "options": {"seed": -1}}, "seed"),
        ({"kind": "analysis", "analysis": "attention/entropy", "model": "/etc"}, "may use"),
        ({"kind": "analysis", "analysis": "attention/entropy", "corpus": "datasets:x"}, "may use"),
        ({"kind": "analysis", "analysis": "heads/functions", "options": {"frequency_corpus": "/etc/passwd"}}, "file"),
        ({"kind": "analysis", "analysis": "heads/functions", "options": {"frequency_corpus": "datasets:x"}}, "file"),
        ({"kind": "analysis", "analysis": "probes/word", "options": {"train_corpus": "tests"}}, "file"),
        ({"kind": "analysis", "analysis": "probes/word", "options": {"train_corpus": "tasks:x:/etc/passwd"}}, "file"),
        (
            {"kind": "analysis", "analysis": "heads/parsing_probe", "options": {"word_vectors": "glove:secret.txt"}},
            "file",
        ),
        ({"kind": "analysis", "analysis": "attention/entropy", "like": "nobody1900"}, "nobody1900"),
        ({"kind": "claims", "papers": ["nobody1900"]}, "nobody1900"),
        ({"kind": "dance"}, "kind"),
    ],
)
def test_what_cannot_or_may_not_run_is_refused_at_once(
    client: TestClient, request_: dict[str, Any], problem: str
) -> None:
    response = client.post("/api/jobs", json=request_)
    assert 400 <= response.status_code < 500 and problem in response.json()["paragraph"]


@pytest.mark.slow
def test_a_refused_job_says_why(client: TestClient) -> None:
    request = {"kind": "analysis", "analysis": "senses/separation", "limit": 5}
    job = finished_job(client, client.post("/api/jobs", json=request).json()["id"])
    assert job["state"] == "failed" and "senses" in job["problem"]["problem"] and not job["has_result"]
    assert client.get(f"/api/jobs/{job['id']}/result").status_code == 422


@pytest.mark.slow
def test_a_killed_worker_is_told_and_can_be_retried(client: TestClient, bench: Workbench) -> None:
    job = client.post("/api/jobs", json=SLOW).json()
    pid = wait_for(lambda: bench.jobs.worker_id)
    os.kill(pid, signal.SIGKILL)
    failed = finished_job(client, job["id"])
    assert failed["state"] == "failed" and "signal 9" in failed["problem"]["problem"]
    assert client.get("/api/state").status_code == 200
    assert client.post(f"/api/jobs/{job['id']}/retry").json()["state"] in {"queued", "running"}
    assert client.post(f"/api/jobs/{job['id']}/cancel").json()["state"] == "cancelled"
    assert client.delete(f"/api/jobs/{job['id']}").status_code == 200
    assert client.get(f"/api/jobs/{job['id']}").status_code == 404


@pytest.mark.slow
def test_a_running_job_is_cancelled_and_the_next_one_runs(client: TestClient, bench: Workbench) -> None:
    first = client.post("/api/jobs", json=SLOW).json()
    assert client.post("/api/jobs", json=SLOW).json()["id"] == first["id"], "the same request is the same job"
    second = client.post("/api/jobs", json={"kind": "analysis", "analysis": "attention/confidence", "limit": 5}).json()
    pid = wait_for(lambda: client.get(f"/api/jobs/{first['id']}").json()["state"] == "running" and bench.jobs.worker_id)
    assert client.delete(f"/api/jobs/{first['id']}").status_code == 409
    assert client.post(f"/api/jobs/{first['id']}/cancel").json()["state"] == "cancelled"
    assert finished_job(client, second["id"])["state"] == "done"
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.slow
def test_what_was_running_is_resumed_by_the_next_server(tmp_path: Path) -> None:
    with served_workbench(tmp_path) as (client, bench):
        job = client.post("/api/jobs", json={"kind": "analysis", "analysis": "attention/entropy", "limit": 20}).json()
        waiting = client.post(
            "/api/jobs", json={"kind": "analysis", "analysis": "attention/distance", "limit": 20}
        ).json()
        wait_for(lambda: bench.jobs.worker_id)
    with served_workbench(tmp_path) as (client, _):
        assert {entry["id"] for entry in client.get("/api/jobs").json()["jobs"]} == {job["id"], waiting["id"]}
        assert finished_job(client, job["id"])["state"] == finished_job(client, waiting["id"])["state"] == "done"


def test_a_job_that_ended_several_servers_is_not_run_again(tmp_path: Path) -> None:
    queue = JobQueue(tmp_path / "w", tmp_path)
    job = queue.submit(JobRequest(kind="links", model="tiny", corpus="english"), {})
    for _ in range(3):
        queue.files.write(queue.get(job.id).model_copy(update={"state": "running"}))
        queue.close()
        queue = JobQueue(tmp_path / "w", tmp_path)
    assert queue.answer(job.id).state == "failed" and queue.answer(job.id).restarts == 2
    queue.close()


def test_the_queue_is_bounded_and_damaged_jobs_are_told_and_left_out(tmp_path: Path) -> None:
    queue = JobQueue(tmp_path / "w", tmp_path)
    for number in range(LIMITS.queued_jobs):
        queue.submit(JobRequest(kind="claims", limit=number + 1), {})
    with pytest.raises(ApiError, match="jobs wait"):
        queue.submit(JobRequest(kind="claims"), {})
    broken = queue.files.path(queue.answers()[0].id) / "job.json"
    broken.write_text("{")
    queue.close()
    with pytest.warns(DamagedFileWarning, match="The job is left out"):
        again = JobQueue(tmp_path / "w", tmp_path)
    assert len(again.answers()) == LIMITS.queued_jobs - 1
    again.close()


PLANTED_WORKER = """
import os, signal, sys, time
from pathlib import Path
signal.signal(signal.SIGINT, signal.SIG_DFL)
folder = Path(sys.argv[1])
with (folder / "starts").open("a") as starts:
    starts.write("start ")
while not (folder / "go").exists():
    time.sleep(0.01)
sent = (folder / "go").read_text()
(folder / "go").unlink()
if sent:
    os.kill(os.getpid(), int(sent))
"""
"""Waits until it is told to end: well, or by a signal."""


@pytest.fixture
def queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[JobQueue]:
    """A queue whose worker computes nothing."""

    def start_worker(folder: Path) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", PLANTED_WORKER, str(folder)])

    monkeypatch.setattr(job_queue, "_start_worker", start_worker)
    queue = JobQueue(tmp_path / "w", tmp_path)
    queue.start()
    yield queue
    queue.close()


def end_worker(queue: JobQueue, job: JobAnswer, *, n_starts: int = 1, sent: str = "") -> None:
    """Let the worker of a job end when it has been started so often."""
    folder = queue.files.path(job.id)
    wait_for(lambda: (folder / "starts").exists() and len((folder / "starts").read_text().split()) == n_starts, 20)
    (folder / "go.partial").write_text(sent)
    (folder / "go.partial").rename(folder / "go")


def test_jobs_run_one_after_the_other_and_are_removed_when_they_are_finished(queue: JobQueue) -> None:
    first, second = (queue.submit(JobRequest(kind="links", limit=limit), {}) for limit in (1, 2))
    wait_for(lambda: queue.answer(first.id).state == "running", 20)
    assert queue.answer(first.id).started is not None and queue.answer(second.id).state == "queued"
    for job in (first, second):
        with pytest.raises(ApiError, match="not finished"):
            queue.remove(job.id)
    for job in (first, second):
        end_worker(queue, job)
        wait_for(lambda: queue.answer(job.id).state == "done", 20)  # noqa: B023
        assert queue.answer(job.id).finished is not None
        queue.remove(job.id)
        assert not queue.files.path(job.id).exists()
    assert queue.answers() == []


def test_a_worker_that_is_told_to_end_starts_again_and_one_that_is_killed_does_not(queue: JobQueue) -> None:
    """A service manager tells the worker together with the server, whose own end may come later."""
    resumed, killed = (queue.submit(JobRequest(kind="links", limit=limit), {}) for limit in (1, 2))
    for n_starts, sent in ((1, signal.SIGTERM), (2, signal.SIGINT), (3, signal.SIGTERM)):
        end_worker(queue, resumed, n_starts=n_starts, sent=str(int(sent)))
    wait_for(lambda: queue.answer(resumed.id).state == "failed", 20)
    assert queue.answer(resumed.id).restarts == 2, "it is tried as often as a job that ends servers"
    end_worker(queue, killed, sent=str(int(signal.SIGKILL)))
    wait_for(lambda: queue.answer(killed.id).state == "failed", 20)
    problem = queue.answer(killed.id).problem
    assert problem is not None and "signal 9" in problem.problem and queue.answer(killed.id).restarts == 0


def test_two_servers_have_two_queues(tmp_path: Path) -> None:
    first, second = JobQueue(tmp_path / "w", tmp_path), JobQueue(tmp_path / "w", tmp_path)
    first.submit(JobRequest(kind="links"), {})
    assert second.answers() == [] and first.files.folder != second.files.folder
    first.close()
    second.close()
