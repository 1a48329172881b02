"""Development data next to the checkout; a test that needs it is skipped if it is missing."""

from __future__ import annotations

from pathlib import Path

import pytest


def shared(relative: str) -> Path:
    """The path of `../shared/<relative>`; skips the test if it does not exist."""
    path = Path(__file__).parents[2] / "shared" / relative
    if not path.exists():
        pytest.skip(f"needs ../shared/{relative}, which does not exist")
    return path
