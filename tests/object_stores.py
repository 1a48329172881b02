"""Object stores for tests: an S3 server (moto) in a process of its own on this machine, and addresses in it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import fsspec
import pytest

ACCESS_KEY, SECRET_KEY = "AKIAFORTESTSONLY0000", "a-secret-that-nothing-may-write-down"
BUCKET = "recordings"
START_SECONDS = 60


@contextmanager
def running_server(**environment: str) -> Generator[str]:
    """The address of an S3 server, which is ended by its process id."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(
        command, env=os.environ | environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _wait_for(port, process)
        yield f"http://127.0.0.1:{port}"
    finally:
        os.kill(process.pid, signal.SIGTERM)
        process.wait(timeout=START_SECONDS)


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError("the S3 server has not started")


def set_environment(monkeypatch: pytest.MonkeyPatch, endpoint: str) -> None:
    """Credentials and address of an S3 server in the environment, as users give them."""
    values = {
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": "/nonexistent",
        "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
    }
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    forget_connections()


def forget_connections() -> None:
    """The next access reads the environment again."""
    library: Any = fsspec
    library.get_filesystem_class("s3").clear_instance_cache()


def file_system(address: str) -> Any:
    """The file system of an address."""
    library: Any = fsspec
    return library.filesystem(address.partition("://")[0], use_listings_cache=False)


def object_contents(address: str) -> dict[str, bytes]:
    """The content of all objects below an address, by their path relative to it."""
    files = file_system(address)
    start = files._strip_protocol(address).strip("/")
    paths = files.find(address)
    return {path.strip("/").removeprefix(start).strip("/"): files.cat_file(path) for path in paths}


@pytest.fixture(scope="session")
def s3_server() -> Generator[str]:
    """An S3 server for all tests that need one."""
    with running_server() as endpoint:
        yield endpoint


@pytest.fixture
def s3_address(s3_server: str, monkeypatch: pytest.MonkeyPatch) -> Generator[str]:
    """The address of an empty folder in a bucket."""
    set_environment(monkeypatch, s3_server)
    address = f"s3://{BUCKET}"
    files = file_system(address)
    if not files.exists(BUCKET):
        files.mkdir(BUCKET)
    yield f"{address}/store"
    files.rm(address, recursive=True)
    forget_connections()


@pytest.fixture
def memory_address() -> Generator[str]:
    """The address of an empty folder in the memory of this process."""
    yield "memory://store"
    files = file_system("memory://")
    files.store.clear()
    files.pseudo_dirs[:] = [""]
