"""A workbench with a test client, and a real server in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
from starlette.testclient import TestClient

from bertology.server.app import build_app
from bertology.server.model_session import Sources
from bertology.server.security import AccessPolicy
from bertology.server.workbench import Workbench

TOKEN = "a-token-for-the-tests"
PORT = 8000
REQUEST_PAUSE = 0.2
"""Seconds between requests for the state of long work: each takes time from the work itself."""
SENTENCE = "The old man opened the door of the house ."


def write_sample(folder: Path, n_sentences: int, name: str = "sample") -> str:
    """A file with the first sentences of the built-in English corpus."""
    text = (resources.files("bertology.corpus") / "data" / "english.conllu").read_text("utf-8")
    file = folder / f"{name}.conllu"
    file.write_text("\n\n".join(text.split("\n\n")[:n_sentences]) + "\n\n", "utf-8")
    return str(file)


def wait_for(condition: Callable[[], Any], seconds: float = 60.0, *, pause: float = 0.02) -> Any:
    """The first true value of a condition; fails if there is none in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(pause)
    raise AssertionError("the condition was never true")


@contextmanager
def served_workbench(
    store: Path, models: list[str] | None = None, corpora: list[str] | None = None, against: str = ""
) -> Generator[tuple[TestClient, Workbench]]:
    """A client with the token, and the workbench behind it, when model and corpus are loaded."""
    workbench = Workbench(Sources.from_names(models or ["tiny"], corpora or ["english"]), store, against=against)
    app = build_app(workbench, AccessPolicy(TOKEN, PORT))
    headers = {"authorization": f"Bearer {TOKEN}"}
    with TestClient(app, base_url=f"http://127.0.0.1:{PORT}", headers=headers) as client:
        client.get("/")
        wait_for(lambda: all_ready(client.get("/api/state").json()), pause=REQUEST_PAUSE)
        yield client, workbench


def all_ready(state: dict[str, Any]) -> bool:
    """Whether the first model and all corpora are loaded."""
    return state["models"][0]["status"] == "ready" and all(c["status"] == "ready" for c in state["corpora"])


def finished_job(client: Any, job_id: str, seconds: float = 120.0) -> dict[str, Any]:
    """The job when it is done, failed or cancelled."""
    states = ("done", "failed", "cancelled")

    def job() -> dict[str, Any] | None:
        answer = client.get(f"/api/jobs/{job_id}").json()
        return answer if answer["state"] in states else None

    return wait_for(job, seconds, pause=REQUEST_PAUSE)


class RealServer:
    """`bertology serve` in a process of its own, on a free port of this machine."""

    def __init__(
        self, home: Path, *arguments: str, model: str | None = "tiny", start_new_session: bool = False
    ) -> None:
        environment = {**os.environ, "BERTOLOGY_HOME": str(home), "OMP_NUM_THREADS": "1"}
        models = [model] if model else []
        command = [sys.executable, "-m", "bertology", "serve", *models, "--port", "0", *arguments]
        self.log = (home / "server.log").open("ab")
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=self.log,
            env=environment,
            text=True,
            start_new_session=start_new_session,
        )
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()
        assert self.address, (home / "server.log").read_text()
        parts = urlsplit(self.address)
        self.base, self.port, self.token = f"http://{parts.netloc}", int(parts.port or 0), parts.query[len("token=") :]

    def client(self, **arguments: Any) -> httpx.Client:
        """A client with the token."""
        headers = {"authorization": f"Bearer {self.token}"}
        return httpx.Client(base_url=self.base, headers=headers, timeout=60, **arguments)

    def wait_until_ready(self) -> None:
        """Return when the model and the corpus are loaded."""
        with self.client() as client:
            wait_for(lambda: all_ready(client.get("/api/state").json()), 180, pause=REQUEST_PAUSE)

    def kill(self) -> None:
        """End it at once."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(30)

    def stop(self) -> int:
        """Ask it to end; returns its exit status."""
        if self.process.poll() is None:
            self.process.terminate()
        status = self.process.wait(60)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.log.close()
        return status


@contextmanager
def real_server(home: Path, *arguments: str, model: str | None = "tiny") -> Generator[RealServer]:
    """A server that is stopped at the end."""
    home.mkdir(parents=True, exist_ok=True)
    server = RealServer(home, *arguments, model=model)
    try:
        yield server
    finally:
        server.stop()


class _PrefixProxy(BaseHTTPRequestHandler):
    """Passes on what lies under the prefix, with the Host and Origin that the browser has sent; 404 for all else."""

    protocol_version = "HTTP/1.1"
    prefix: str
    upstream: httpx.Client

    def _pass_on(self) -> None:
        if not self.path.startswith(self.prefix):
            self.send_error(404)
            return
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = [(name, value) for name, value in self.headers.items() if name.lower() not in HOP_BY_HOP]
        path = self.path.removeprefix(self.prefix)
        answer = self.upstream.request(self.command, f"/{path}", headers=headers, content=body)
        self.send_response(answer.status_code)
        for name, value in answer.headers.multi_items():
            if name not in {*HOP_BY_HOP, "content-length", "content-encoding", "date", "server"}:
                self.send_header(name, value)
        self.send_header("content-length", str(len(answer.content)))
        self.end_headers()
        self.wfile.write(answer.content)

    do_GET = do_POST = do_DELETE = _pass_on

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding"}


@contextmanager
def prefix_proxy(server: RealServer, prefix: str) -> Generator[str]:
    """The address of a server, with its token, behind a proxy that serves it under a path prefix, as Jupyter's does."""
    with httpx.Client(base_url=server.base, timeout=60, follow_redirects=False) as upstream:
        handler = type("Handler", (_PrefixProxy,), {"prefix": prefix, "upstream": upstream})
        proxy = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        thread = threading.Thread(target=proxy.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{proxy.server_port}{prefix}?token={server.token}"
        finally:
            proxy.shutdown()
            proxy.server_close()
            thread.join(10)
