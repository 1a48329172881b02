"""A hostile test environment: no network, no hub, no shared cache; warnings are errors (see pyproject.toml)."""

from __future__ import annotations

import os
import socket
from collections.abc import Generator
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import hypothesis
import pytest
import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # must be set before Triton is imported

from browsing import browser, built_frontend

__all__ = ["browser", "built_frontend"]  # fixtures of all tests: there can be one Playwright in a process

# The same examples in every run, and no limit that depends on how busy the machine is.
hypothesis.settings.register_profile(
    "deterministic",
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("deterministic")


@pytest.fixture(scope="session", autouse=True)
def single_thread() -> None:
    """Tiny models are fastest, and repeatable to the bit, on one thread."""
    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def temporary_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Recordings are stored in the temporary folder of the test."""
    monkeypatch.setenv("BERTOLOGY_HOME", str(tmp_path / "home"))


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """Opening a connection to anything but this machine fails the test."""
    connect = socket.socket.connect

    def refuse(self: socket.socket, address: Any) -> None:
        if self.family == socket.AF_UNIX or (isinstance(address, tuple) and address[0] in {"127.0.0.1", "::1"}):
            connect(self, address)
        else:
            raise AssertionError(f"a test tried to reach {address}")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    yield
