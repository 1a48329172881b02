"""Limits of what a client can ask for, so that no request takes all memory or all time of the server."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Bytes, characters, tokens, counts and seconds."""

    body_bytes: int = 256_000
    body_seconds: float = 10.0
    header_seconds: float = 10.0
    text_characters: int = 5_000
    tokens: int = 256
    waiting_requests: int = 64
    connections: int = 256
    queued_jobs: int = 20
    kept_jobs: int = 200
    pins: int = 20
    page_size: int = 100
    loaded_models: int = 4


LIMITS = Limits()
