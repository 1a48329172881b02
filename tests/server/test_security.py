from __future__ import annotations

import socket
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from bertology.errors import Refusal
from bertology.server.app import build_app
from bertology.server.limits import LIMITS
from bertology.server.model_session import Sources
from bertology.server.problems import hide_paths
from bertology.server.security import AccessPolicy
from bertology.server.serve import check_access, open_listener
from bertology.server.workbench import Workbench
from serving import PORT, SENTENCE, TOKEN

BASE = f"http://127.0.0.1:{PORT}"


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Generator[TestClient]:
    """A client without the token; nothing is loaded."""
    workbench = Workbench(Sources.from_names(["tiny"], ["english"]), tmp_path_factory.mktemp("store"))
    app = build_app(workbench, AccessPolicy(TOKEN, PORT, ("proxy.example",)))
    client = TestClient(app, base_url=BASE, follow_redirects=False)
    yield client
    workbench.close()


def get(client: TestClient, path: str = "/api/state", **headers: str) -> Any:
    return client.get(path, headers={"authorization": f"Bearer {TOKEN}", **headers})


def test_the_token_in_the_address_becomes_a_cookie(stranger: TestClient) -> None:
    response = stranger.get(f"/?token={TOKEN}")
    assert response.status_code == 303 and response.headers["location"] == "./"
    cookie = response.headers["set-cookie"]
    assert cookie == f"bertology-{PORT}={TOKEN}; HttpOnly; SameSite=Strict"
    name = f"bertology-{PORT}"
    assert stranger.get("/api/state", headers={"cookie": f"{name}={TOKEN}"}).status_code == 200
    assert stranger.get("/", headers={"cookie": f"{name}={TOKEN}"}).status_code == 200


@pytest.mark.parametrize("path", ["/api/state", "/api/", "/assets/page.js", "/workbench.css", "/nothing"])
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"cookie": f"bertology-{PORT}=wrong"},
        {"cookie": "not/a/cookie=1"},
        {"authorization": "Bearer wrong"},
        {"authorization": f"Basic {TOKEN}"},
    ],
)
def test_nothing_is_answered_without_the_token(stranger: TestClient, path: str, headers: dict[str, str]) -> None:
    stranger.cookies.clear()
    response = stranger.get(path, headers=headers)
    assert response.status_code == 401
    assert response.json() == {
        "problem": "The request has no valid token",
        "expected": "the token of this server, as a cookie or a bearer token",
        "remedy": "Open the address that `bertology serve` printed",
        "paragraph": "The request has no valid token. Expected the token of this server, as a cookie or a bearer "
        "token. Open the address that `bertology serve` printed.",
    }


def test_a_wrong_token_gives_a_page_that_says_what_to_open(stranger: TestClient) -> None:
    stranger.cookies.clear()
    response = stranger.get("/?token=wrong")
    assert response.status_code == 401 and "set-cookie" not in response.headers and TOKEN not in response.text
    assert "<p>This is bertology. Open the address" in response.text


@pytest.mark.parametrize("host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1.evil.example", "", "[::2]"])
def test_another_host_is_refused(stranger: TestClient, host: str) -> None:
    response = get(stranger, host=host)
    assert response.status_code == 403 and response.json()["problem"].startswith("The request is for the host")


@pytest.mark.parametrize(
    "host", [f"localhost:{PORT}", "127.0.0.1", f"[::1]:{PORT}", "proxy.example", "PROXY.example:443"]
)
def test_names_of_this_server_are_answered(stranger: TestClient, host: str) -> None:
    assert get(stranger, host=host).status_code == 200


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", f"http://localhost:{PORT + 1}", "http://127.0.0.1", "file://127.0.0.1:8000"],
)
def test_requests_of_other_pages_are_refused(stranger: TestClient, origin: str) -> None:
    headers = {"authorization": f"Bearer {TOKEN}", "origin": origin}
    response = stranger.post("/api/jobs", json={"kind": "links"}, headers=headers)
    assert response.status_code == 403 and "comes from" in response.json()["problem"]
    assert get(stranger, origin=origin).status_code == 403


def test_requests_of_its_own_page_are_answered(stranger: TestClient) -> None:
    assert get(stranger, origin=BASE).status_code == 200
    assert get(stranger, **{"sec-fetch-site": "cross-site"}).status_code == 403
    assert get(stranger, **{"sec-fetch-site": "same-origin"}).status_code == 200


def test_every_answer_has_the_headers(stranger: TestClient) -> None:
    for response in (
        get(stranger),
        get(stranger, host="evil.example"),
        stranger.get("/"),
        get(stranger, "/api/nothing"),
    ):
        policy = response.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "script-src 'self';" in policy and "frame-ancestors 'none'" in policy
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["referrer-policy"] == "no-referrer"
        assert not any(name.startswith("access-control") for name in response.headers)


def test_no_page_has_inline_scripts_or_absolute_addresses(stranger: TestClient) -> None:
    for path in ("/", "/api/"):
        page = get(stranger, path).text
        assert "<script>" not in page and " onclick" not in page
        assert 'href="/' not in page and 'src="/' not in page


@pytest.mark.parametrize(
    "path",
    ["/assets/../api.py", "/assets/..%2f..%2fserver%2fsecurity.py", "/assets/%2e%2e/security.py", "/assets//etc/passwd",
     "/assets/page.js/..", "/api/../../etc/passwd", "/api/jobs/..%2f..%2fsecret/result", "/api/jobs/../result"],
)  # fmt: skip
def test_paths_lead_nowhere_else(stranger: TestClient, path: str) -> None:
    response = get(stranger, path)
    assert response.status_code in {404, 422} and "import" not in response.text and "root:" not in response.text


@pytest.mark.parametrize(
    ("body", "content_type", "status"),
    [
        (b"{", "application/json", 400),
        (b"[1]", "application/json", 400),
        (b"\xff\xfe", "application/json", 400),
        (b"[" * 100_000, "application/json", 400),
        (b'{"text": 3}', "application/json", 422),
        (b'{"text": "a"}', "text/plain", 415),
        (b"text=a", "application/x-www-form-urlencoded", 415),
        (b'{"text": "' + b"a" * LIMITS.body_bytes + b'"}', "application/json", 413),
    ],
)
def test_malformed_and_oversized_bodies_are_refused(
    stranger: TestClient, body: bytes, content_type: str, status: int
) -> None:
    headers = {"authorization": f"Bearer {TOKEN}", "content-type": content_type}
    response = stranger.post("/api/live", content=body, headers=headers)
    assert response.status_code == status and response.json()["paragraph"]


def test_a_body_without_a_length_is_cut_too(stranger: TestClient) -> None:
    def chunks() -> Generator[bytes]:
        for _ in range(10):
            yield b"a" * (LIMITS.body_bytes // 5)

    headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
    assert stranger.post("/api/live", content=chunks(), headers=headers).status_code == 413


def test_wrong_methods_and_paths_are_told(stranger: TestClient) -> None:
    assert get(stranger, "/api/live").status_code == 405
    assert get(stranger, "/api/nothing").status_code == 404
    headers = {"authorization": f"Bearer {TOKEN}"}
    assert stranger.put("/api/state", headers=headers).status_code == 405


def test_a_mistake_of_the_program_is_told_without_a_traceback(
    stranger: TestClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise ValueError(f"secret in {__file__}")

    monkeypatch.setattr(Workbench, "live", fail)
    headers = {"authorization": f"Bearer {TOKEN}"}
    response = stranger.post("/api/live", json={"text": SENTENCE}, headers=headers)
    assert response.status_code == 500 and "secret" not in response.text and "Traceback" not in response.text
    assert "secret in" in caplog.text


def test_paths_of_the_machine_are_hidden(tmp_path: Path) -> None:
    text = f"Cannot write to {tmp_path}/a.json: see '{Path(__file__)}' and api/jobs or 3/4 of https://x.example/a/b"
    hidden = hide_paths(text)
    assert str(tmp_path) not in hidden and str(Path(__file__).parent) not in hidden
    assert "a.json" in hidden and "api/jobs or 3/4 of https://x.example/a/b" in hidden


def test_public_names_have_no_folders(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name / "model").mkdir(parents=True)
    sources = Sources.from_names(
        ["mini", str(tmp_path / "one/model"), str(tmp_path / "two/model"), f"random:{tmp_path}/one/model"], ["english"]
    )
    assert list(sources.models) == ["mini", "model", "model (2)", "random:model"]
    assert sources.model("model (2)")[1] == str(tmp_path / "two/model")


def test_other_machines_need_a_token_of_their_own() -> None:
    check_access("127.0.0.1", None)
    check_access("0.0.0.0", "a-long-and-secret-token")
    for host, token in (
        ("0.0.0.0", None),
        ("192.168.1.2", None),
        ("0.0.0.0", "short"),
        ("127.0.0.1", "with space " * 3),
    ):
        with pytest.raises(Refusal):
            check_access(host, token)


def test_answers_are_sent_at_once() -> None:
    """asyncio turns Nagle's algorithm off only where the protocol is named; else small answers take 40 ms more."""
    with open_listener("127.0.0.1", 0) as listener:
        assert listener.proto == socket.IPPROTO_TCP
