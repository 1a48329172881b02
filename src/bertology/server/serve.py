"""Start the server: the socket listens before anything heavy is imported."""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
import webbrowser
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from bertology.errors import Refusal
from bertology.server.app import build_app
from bertology.server.limits import LIMITS
from bertology.server.model_session import Sources
from bertology.server.security import LOOPBACK, AccessPolicy
from bertology.server.workbench import Workbench

TOKEN_BYTES = 24
MIN_TOKEN_LENGTH = 16


class TimedProtocol(H11Protocol):
    """HTTP with a limit for the time until a request's headers are complete."""

    def connection_made(self, transport: Any) -> None:
        """Close the connection if no request has come in time."""
        super().connection_made(transport)
        self.loop.call_later(LIMITS.header_seconds, self._close_if_silent)

    def _has_no_request(self) -> bool:
        cycle: Any = self.cycle  # None until the first request, which its type does not say
        return cycle is None

    def _close_if_silent(self) -> None:
        if self._has_no_request() and not self.transport.is_closing():
            self.transport.close()


def serve(
    models: Sequence[str],
    corpora: Sequence[str],
    *,
    against: str | None,
    store: Path,
    host: str = "127.0.0.1",
    port: int = 0,
    token: str | None = None,
    allow_hosts: Sequence[str] = (),
    open_browser: bool = False,
    notify: Callable[[str], None],
    announce: Callable[[str], None],
) -> None:
    """Serve until interrupted; `announce` is given the address, `notify` what else is to be said."""
    check_access(host, token)
    listener = open_listener(host, port)
    bound_port = int(listener.getsockname()[1])
    sources = Sources.from_names([*models, *([against] if against else [])], list(corpora))
    against_name = next((n for n, source in sources.models.items() if source == against), "") if against else ""
    policy = AccessPolicy(token or secrets.token_urlsafe(TOKEN_BYTES), bound_port, (*_names(host), *allow_hosts))
    app = build_app(Workbench(sources, store, against=against_name), policy)
    shown_host = "127.0.0.1" if host in {"0.0.0.0", "::"} else f"[{host}]" if ":" in host else host
    address = f"http://{shown_host}:{bound_port}/?token={policy.token}"
    if host not in LOOPBACK:
        notify(
            f"Warning: the server listens on {host}: everybody who can reach this machine and has the token can run "
            "models here. Traffic is not encrypted; put it behind a proxy with TLS."
        )
    announce(address)
    if open_browser:
        webbrowser.open(address)
    config = uvicorn.Config(
        app,
        http=TimedProtocol,
        ws="none",
        log_config=None,
        log_level=logging.WARNING,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=LIMITS.connections,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=3,
        h11_max_incomplete_event_size=16_384,
    )
    try:
        asyncio.run(uvicorn.Server(config).serve(sockets=[listener]))
    finally:
        listener.close()


def check_access(host: str, token: str | None) -> None:
    """Refuse to listen to other machines without a token that was chosen for it."""
    if host not in LOOPBACK and token is None:
        raise Refusal(
            f"--host {host} lets other machines reach this server",
            "a token that only you and those you trust know",
            f"Add --token TOKEN, at least {MIN_TOKEN_LENGTH} characters, or leave out --host",
        )
    if token is not None and (len(token) < MIN_TOKEN_LENGTH or not token.isascii() or not _is_plain(token)):
        raise Refusal(
            "The token is too short, or has characters that an address cannot have",
            f"at least {MIN_TOKEN_LENGTH} letters, digits, hyphens or underscores",
            'Make one with: python -c "import secrets; print(secrets.token_urlsafe(24))"',
        )


def _is_plain(token: str) -> bool:
    return all(character.isalnum() or character in "-_" for character in token)


def open_listener(host: str, port: int) -> socket.socket:
    """A socket that listens; refused if the address is in use or not of this machine."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends at once (no Nagle) only on sockets that say they are TCP; else answers wait 40 ms for an ACK.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(LIMITS.connections)
    except (OSError, OverflowError) as error:
        listener.close()
        reason = getattr(error, "strerror", None) or str(error)
        raise Refusal(
            f"The server cannot listen on {host}:{port} ({reason})",
            "a free port of this machine",
            "Choose another --port",
        ) from error
    listener.setblocking(False)
    return listener


def _names(host: str) -> tuple[str, ...]:
    """The names that a request for this host may have; a server on all addresses needs --allow-host for others."""
    return () if host in {"0.0.0.0", "::"} else (f"[{host}]" if ":" in host else host.lower(),)
