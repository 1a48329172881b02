"""A store behind an address behaves like a folder: the same bytes, resumed, checked by digest, nothing half written."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import pytest
from tests.recording.material import CountingEncoder, assert_same_recording, mixed, tiny

import bertology
from bertology.encoder.encoder import Encoder
from bertology.errors import Refusal
from bertology.recording import plan as planning
from bertology.recording.manifest import open_recording
from bertology.recording.plan import RecordingConfig
from bertology.recording.recorder import find_recording, record
from bertology.store_paths import RemotePath, StoreError, download_folder, store_path
from object_stores import (
    BUCKET,
    SECRET_KEY,
    file_system,
    memory_address,
    object_contents,
    running_server,
    s3_address,
    s3_server,
    set_environment,
)
from serving import wait_for
from warm_processes import WarmProcess

__all__ = ["memory_address", "s3_address", "s3_server"]

CORPUS = mixed(30)
SHARD_BYTES = 64 * 1024
SITES = ["attention", "hidden"]
CONFIG = RecordingConfig(tokens_per_batch=64)


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "SHARD_BYTES", SHARD_BYTES)


@pytest.fixture(params=["local", "memory", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "store") if request.param == "local" else request.getfixturevalue(f"{request.param}_address")


@pytest.fixture(params=["memory", "s3"])
def address(request: pytest.FixtureRequest) -> str:
    return request.getfixturevalue(f"{request.param}_address")


def _contents(store: str) -> dict[str, bytes]:
    if "://" in store:
        return object_contents(store)
    files = [file for file in Path(store).rglob("*") if file.is_file()]
    return {file.relative_to(store).as_posix(): file.read_bytes() for file in files}


def _shard(address: str) -> str:
    return next(f"{address}/{path}" for path in sorted(object_contents(address)) if path.endswith(".safetensors"))


def _flip_bit(address: str) -> None:
    files = file_system(address)
    content = bytearray(files.cat_file(address))
    content[-9] ^= 1
    files.pipe_file(address, bytes(content))


def _forget_downloads() -> None:
    shutil.rmtree(download_folder(), ignore_errors=True)


def test_every_store_holds_the_bytes_of_a_local_recording(store: str, tmp_path: Path) -> None:
    remote = record(tiny(), CORPUS, SITES, config=CONFIG, store=store)
    local = record(tiny(), CORPUS, SITES, config=CONFIG, store=tmp_path / "local")
    assert _contents(store) == _contents(str(tmp_path / "local"))
    assert sum(path.endswith(".safetensors") for path in _contents(store)) > 6
    assert_same_recording(remote, local)


def test_a_second_call_runs_and_tokenises_nothing(store: str) -> None:
    first = record(tiny(), CORPUS, SITES, config=CONFIG, store=store)
    _forget_downloads()
    passes: list[str] = []
    encoder = CountingEncoder(tiny(), passes.append)
    second = record(cast(Encoder, encoder), CORPUS, SITES, config=CONFIG, store=store)
    assert not passes
    assert not encoder.n_tokenised
    assert_same_recording(first, second)
    found = find_recording(tiny(), CORPUS, SITES, config=CONFIG, store=store_path(store))
    assert found is not None
    assert_same_recording(first, found)


def test_an_opened_recording_is_the_recorded_one(store: str) -> None:
    recorded = record(tiny(), CORPUS, SITES, config=CONFIG, folder=store)
    _forget_downloads()
    assert_same_recording(open_recording(store), recorded)


def test_a_missing_shard_is_recorded_alone(store: str) -> None:
    record(tiny(), CORPUS, SITES, config=CONFIG, folder=store)
    before = _contents(store)
    lost = sorted(path for path in before if path.endswith(".safetensors"))[1]
    path = store_path(store)
    for part in lost.split("/"):
        path /= part
    path.unlink()
    with pytest.raises(Refusal, match="shards of the site"):
        open_recording(store)[lost.partition("/")[0]]
    passes: list[str] = []
    record(cast(Encoder, CountingEncoder(tiny(), passes.append)), CORPUS, SITES, config=CONFIG, folder=store)
    assert 0 < len(passes) < 20
    assert _contents(store) == before


def test_another_recording_in_the_folder_is_refused(store: str) -> None:
    record(tiny(), CORPUS, SITES, config=CONFIG, folder=store)
    with pytest.raises(Refusal, match="another model, corpus or configuration"):
        record(tiny(), CORPUS[:3], SITES, config=CONFIG, folder=store)


def test_a_result_is_stored_and_found(store: str) -> None:
    first = bertology.run("attention/entropy", tiny(), CORPUS, store=store)
    parts = len(_contents(store))
    again = bertology.run("attention/entropy", tiny(), CORPUS, store=store)
    assert first.to_json() == again.to_json()
    assert parts == len(_contents(store)) > 0


def test_a_flipped_bit_is_refused_when_read_and_repaired_when_recorded(address: str) -> None:
    recorded = record(tiny(), CORPUS, SITES, config=CONFIG, folder=address)
    good = object_contents(address)
    _flip_bit(_shard(address))
    _forget_downloads()
    with pytest.raises(Refusal, match="its bytes do not match the digest in its name"):
        list(open_recording(address)["attention"])
    assert_same_recording(record(tiny(), CORPUS, SITES, config=CONFIG, folder=address), recorded)
    assert object_contents(address) == good


@pytest.mark.parametrize("name", ["manifest.json", "corpus.jsonl", "inputs.jsonl"])
def test_a_flipped_bit_of_the_description_is_refused(address: str, name: str) -> None:
    record(tiny(), CORPUS, SITES, config=CONFIG, folder=address)
    _flip_bit(f"{address}/{name}")
    with pytest.raises(Refusal, match=f"{name} is damaged"):
        open_recording(address)


def test_a_damaged_local_copy_is_downloaded_again(address: str) -> None:
    recorded = record(tiny(), CORPUS, SITES, config=CONFIG, folder=address)
    for copy in download_folder().iterdir():
        content = bytearray(copy.read_bytes())
        content[-9] ^= 1
        copy.write_bytes(bytes(content))
    assert_same_recording(open_recording(address), recorded)


def test_two_writers_of_one_manifest_have_one_winner(address: str) -> None:
    file = store_path(address) / "manifest.json"
    assert isinstance(file, RemotePath)
    file.create_bytes(b"first")
    with pytest.raises(FileExistsError):
        file.create_bytes(b"second")
    assert file.read_bytes() == b"first"


def test_no_credentials_are_written(s3_address: str, tmp_path: Path) -> None:
    messages: list[str] = []
    record(tiny(), CORPUS, SITES, config=CONFIG, store=s3_address, notify=messages.append)
    bertology.run("attention/entropy", tiny(), CORPUS, store=s3_address)
    written = [*object_contents(s3_address).values(), *(f.read_bytes() for f in tmp_path.rglob("*") if f.is_file())]
    assert len(written) > 10
    for secret in (SECRET_KEY, os.environ["AWS_ACCESS_KEY_ID"]):
        assert not any(secret.encode() in content for content in written)
        assert not any(secret in message for message in messages)


def test_a_bucket_that_does_not_exist_is_told(s3_address: str) -> None:
    for path in ("s3://no-such-bucket/store", "s3://no-such-bucket"):
        with pytest.raises(StoreError, match="There is no bucket s3://no-such-bucket"):
            record(tiny(), CORPUS, SITES, config=CONFIG, folder=path)


def test_a_store_without_permission_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with running_server(INITIAL_NO_AUTH_ACTION_COUNT="0") as endpoint:
        set_environment(monkeypatch, endpoint)
        for action in (
            lambda: open_recording(f"s3://{BUCKET}/store"),
            lambda: record(tiny(), CORPUS, SITES, config=CONFIG, store=f"s3://{BUCKET}/store"),
        ):
            with pytest.raises(StoreError, match="No permission to") as error:
                action()
            assert SECRET_KEY not in str(error.value)
            assert "AWS_ACCESS_KEY_ID" in str(error.value)


def test_an_unreachable_store_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound and not listening: connections are refused
        set_environment(monkeypatch, f"http://127.0.0.1:{unused.getsockname()[1]}")
        with pytest.raises(StoreError, match="a store that can be reached"):
            open_recording(f"s3://{BUCKET}/store")


class _CuttingProxy:
    """Forwards connections to a server, and calls `kill` in the middle of the upload of shard number `n`."""

    def __init__(self, endpoint: str, n: int) -> None:
        self._target = ("127.0.0.1", urlsplit(endpoint).port or 0)
        self._left = n
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.kill: Callable[[], None] | None = None
        self.cut_bytes = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(self._target)
            threading.Thread(target=self._upload, args=(client, server), daemon=True).start()
            threading.Thread(target=self._answer, args=(server, client), daemon=True).start()

    def _upload(self, client: socket.socket, server: socket.socket) -> None:
        is_body = False
        with client, server:
            while chunk := _receive(client):
                if chunk.startswith(b"PUT ") and b".safetensors" in chunk.partition(b"\r\n")[0]:
                    self._left -= 1
                    is_body = self._left == 0
                    header, _, body = chunk.partition(b"\r\n\r\n")
                    if is_body:
                        server.sendall(header + b"\r\n\r\n")
                        chunk = body
                if is_body and chunk:
                    server.sendall(chunk[:700])
                    self.cut_bytes = min(len(chunk), 700)
                    wait_for(lambda: self.kill)()
                    return
                if chunk:
                    server.sendall(chunk)

    def _answer(self, server: socket.socket, client: socket.socket) -> None:
        try:
            while chunk := _receive(server):
                client.sendall(chunk)
        except OSError:
            return


def _receive(connection: socket.socket) -> bytes:
    try:
        return connection.recv(65536)
    except OSError:
        return b""


def record_remotely(address: str) -> None:
    planning.SHARD_BYTES = SHARD_BYTES
    record(tiny(), CORPUS, SITES, config=CONFIG, folder=address)


@pytest.mark.parametrize("n", [1, 4])
def test_a_killed_upload_leaves_no_half_shard(s3_address: str, s3_server: str, n: int, tmp_path: Path) -> None:
    proxy = _CuttingProxy(s3_server, n)
    environment = os.environ | {"AWS_ENDPOINT_URL": proxy.endpoint}
    process = WarmProcess(record_remotely, s3_address, environment=environment)
    proxy.kill = process.kill
    killed = process.wait()
    proxy.close()
    assert killed.status == -signal.SIGKILL, killed.err
    assert proxy.cut_bytes, "the upload was cut in its body"
    record(tiny(), CORPUS, SITES, config=CONFIG, folder=tmp_path / "local")
    whole, left = _contents(str(tmp_path / "local")), object_contents(s3_address)
    assert sum(path.endswith(".safetensors") for path in left) == n - 1
    assert left.items() <= whole.items(), "what is there is complete"
    record(tiny(), CORPUS, SITES, config=CONFIG, folder=s3_address)
    assert object_contents(s3_address) == whole
