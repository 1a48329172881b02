"""A real server on this machine: what a test client cannot show."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

import bertology
from command import bertology as command
from serving import SENTENCE, RealServer, finished_job, real_server, wait_for, write_sample

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Any:
    home = tmp_path_factory.mktemp("home")
    with real_server(home, "--corpus", write_sample(home, 60)) as running:
        running.wait_until_ready()
        yield running


def raw(server: RealServer, request: bytes, *, pause: float = 0.0, timeout: float = 30.0) -> bytes:
    """The answer to bytes on a socket."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=timeout) as connection:
        connection.sendall(request)
        time.sleep(pause)
        answer = b""
        with suppress(ConnectionResetError):  # the server closes without reading the rest
            while chunk := connection.recv(65536):
                answer += chunk
        return answer


def test_the_page_is_there_before_the_model_and_the_server_stops_when_it_is_told_to(tmp_path: Path) -> None:
    with real_server(tmp_path) as server:
        with server.client() as client:
            page = client.get("/")
            state = client.get("/api/state").json()
            assert page.status_code == 200 and "bertology" in page.text
            assert state["models"][0]["status"] in {"not loaded", "loading"}
        server.wait_until_ready()
        start = time.monotonic()
        assert server.stop() == 128 + signal.SIGTERM and time.monotonic() - start < 20
        with pytest.raises(httpx.ConnectError):
            httpx.get(server.base)


def test_requests_are_answered_while_the_model_is_loaded(tmp_path: Path) -> None:
    """The first of them imports what answers requests, while another thread imports what models need."""
    with real_server(tmp_path) as server, server.client() as client:
        answers = [client.get("/api/state")]
        while answers[-1].status_code == 200 and answers[-1].json()["models"][0]["status"] != "ready":
            time.sleep(0.02)
            answers.append(client.get("/api/state"))
        assert answers[-1].status_code == 200, answers[-1].text
        assert answers[0].json()["models"][0]["status"] != "ready"


def test_rebound_names_and_foreign_pages_are_refused(server: RealServer) -> None:
    head = f"GET /api/state HTTP/1.1\r\nAuthorization: Bearer {server.token}\r\nConnection: close\r\n"
    assert raw(server, f"{head}Host: evil.example:{server.port}\r\n\r\n".encode()).startswith(b"HTTP/1.1 403")
    assert raw(server, f"{head}Host: 127.0.0.1:{server.port}\r\n\r\n".encode()).startswith(b"HTTP/1.1 200")
    two = f"{head}Host: 127.0.0.1:{server.port}\r\nHost: evil.example\r\n\r\n".encode()
    assert raw(server, two)[9:12] in {b"400", b"403"}
    with server.client() as client:
        foreign = client.post("/api/jobs", json={"kind": "links"}, headers={"origin": "http://evil.example"})
        assert foreign.status_code == 403


def test_oversized_bodies_are_refused_before_they_are_read(server: RealServer) -> None:
    request = (
        f"POST /api/live HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nAuthorization: Bearer {server.token}\r\n"
        "Content-Type: application/json\r\nContent-Length: 99999999999\r\n\r\n{"
    )
    assert raw(server, request.encode()).startswith(b"HTTP/1.1 413")
    long_header = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"a" * 60_000
    assert raw(server, long_header)[9:12] in {b"", b"400", b"431"}
    with server.client() as client:
        assert client.get("/api/state").status_code == 200


def test_slow_clients_are_cut_and_keep_nobody_waiting(server: RealServer) -> None:
    slow_headers = socket.create_connection(("127.0.0.1", server.port))
    slow_headers.sendall(b"GET / HTTP/1.1\r\nHost: 127")
    body = (
        f"POST /api/live HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nAuthorization: Bearer {server.token}\r\n"
        'Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"text"'
    )
    slow_body = socket.create_connection(("127.0.0.1", server.port))
    slow_body.sendall(body.encode())
    with server.client() as client:
        assert client.post("/api/live", json={"text": SENTENCE}).status_code == 200
    for connection, expected in ((slow_body, b"408"), (slow_headers, b"")):
        connection.settimeout(30)
        answer = b"" if expected == b"" and connection.recv(1) == b"" else connection.recv(4096)
        assert expected in answer[:20] if expected else answer == b""
        connection.close()


def test_fifty_clients_at_once_get_the_same_answer(server: RealServer) -> None:
    def ask(number: int) -> Any:
        with server.client() as client:
            request = {"text": "The old man [MASK] the door .", "client": f"client {number}", "sequence": 1}
            answer = client.post("/api/live", json=request)
            while answer.status_code == 503:
                time.sleep(0.2)
                answer = client.post("/api/live", json=request)
            return answer

    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(ask, range(50)))
    assert [answer.status_code for answer in answers] == [200] * 50
    predictions = [json.dumps(answer.json()["predictions"]) for answer in answers]
    assert len(set(predictions)) == 1


def test_no_answer_shows_a_path_of_the_machine(server: RealServer, tmp_path_factory: pytest.TempPathFactory) -> None:
    folders = (str(tmp_path_factory.getbasetemp()), str(Path(bertology.__file__).parent), str(Path.home()))
    with server.client() as client:
        texts = [
            client.get(path).text
            for path in ("/", "/api/", "/api/state", "/api/jobs", "/api/corpus", "/api/heads/1-1", "/api/nothing")
        ]
        texts.append(client.post("/api/live", json={"text": SENTENCE, "corpus": "/etc/passwd", "example": 1}).text)
    for text in texts:
        assert not any(folder in text for folder in folders if len(folder) > 3)
        assert "Traceback" not in text


def test_killed_in_the_middle_of_an_index_and_a_job_nothing_is_lost(tmp_path: Path) -> None:
    corpus = write_sample(tmp_path, 356)
    with real_server(tmp_path, "--corpus", corpus) as server:
        server.wait_until_ready()
        with server.client() as client:
            links = client.post("/api/jobs", json={"kind": "links"}).json()["id"]
            entropy = client.post("/api/jobs", json={"kind": "analysis", "analysis": "attention/entropy"}).json()["id"]
            wait_for(lambda: client.get(f"/api/jobs/{links}").json()["state"] == "running")
            worker = int(wait_for(lambda: _read(next(tmp_path.rglob(f"{links}/pid"), None))))
        server.kill()
        wait_for(lambda: not _is_running(worker), 30)
    with real_server(tmp_path, "--corpus", corpus) as server:
        server.wait_until_ready()
        with server.client() as client:
            assert finished_job(client, links, 300)["restarts"] == 1
            assert finished_job(client, entropy, 300)["state"] == "done"
            answer = client.post("/api/links", json={"query": "1-1 NOUN -> VERB > 0.25"}).json()
            assert answer["n_pairs"] > 1000
            result = client.get(f"/api/jobs/{entropy}/result").json()
    assert result["data"] == bertology.run("attention/entropy", "tiny", corpus).to_json()["data"]


def test_a_worker_killed_in_the_middle_of_an_index_resumes_with_the_same_numbers(server: RealServer) -> None:
    with server.client() as client:
        job = client.post("/api/jobs", json={"kind": "states"}).json()["id"]
        folder = next(path.parent for path in Path(server.log.name).parent.rglob("job.json") if path.parent.name == job)
        os.kill(int(wait_for(lambda: _read(folder / "pid"))), signal.SIGKILL)
        failed = finished_job(client, job)
        assert failed["state"] in {"failed", "done"}
        client.post(f"/api/jobs/{job}/retry")
        assert finished_job(client, job)["state"] == "done"
        answer = client.post("/api/neighbours", json={"example": 2, "position": 1, "layer": 1}).json()
        assert answer["neighbours"][0]["example"] == 2


def test_a_port_in_use_and_an_open_host_are_refused(server: RealServer) -> None:
    used = command("serve", "tiny", "--port", str(server.port))
    assert used.status == 2 and "cannot listen" in used.err
    exposed = command("serve", "tiny", "--host", "0.0.0.0")
    assert exposed.status == 2 and "--token" in exposed.err


def _read(file: Path | None) -> str:
    try:
        return file.read_text() if file is not None else ""
    except OSError:
        return ""


def _is_running(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    return True
