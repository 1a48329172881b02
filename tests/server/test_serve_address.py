"""The address that a server announces can be opened."""

from __future__ import annotations

import re
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from bertology.server import serve as serving
from bertology.server.workbench import Workbench


def _has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


@pytest.mark.parametrize(
    ("host", "shown"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("localhost", "localhost"),
        ("0.0.0.0", "127.0.0.1"),
        pytest.param("::1", "[::1]", marks=pytest.mark.skipif(not _has_ipv6(), reason="this machine has no IPv6")),
    ],
)
def test_the_announced_address_names_a_host_that_a_browser_can_reach(
    host: str, shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def end_at_once(self: uvicorn.Server, sockets: Any = None) -> None:
        """Serve nobody."""

    def build_nothing(workbench: Workbench, policy: object) -> None:
        workbench.close()

    monkeypatch.setattr(uvicorn.Server, "serve", end_at_once)
    monkeypatch.setattr(serving, "build_app", build_nothing)
    addresses: list[str] = []
    warnings: list[str] = []
    with ThreadPoolExecutor(1) as other_thread:  # tests in a browser leave a running event loop in this one
        other_thread.submit(
            serving.serve,
            ["tiny"], ["english"], against=None, store=tmp_path, host=host, token="a-token-of-sixteen-letters",
            notify=warnings.append, announce=addresses.append,
        ).result()  # fmt: skip
    (address,) = addresses
    assert re.fullmatch(rf"http://{re.escape(shown)}:\d+/\?token=a-token-of-sixteen-letters", address), address
    assert bool(warnings) == (host == "0.0.0.0")
