"""Where the data for development lies, beside the checkout; a test that needs it is skipped where it is absent."""

from __future__ import annotations

from pathlib import Path

import pytest


def shared(relative: str) -> Path:
    """The path of `../shared/<relative>`, or a skipped test that says what is missing."""
    path = Path(__file__).parents[2] / "shared" / relative
    if not path.exists():
        pytest.skip(f"needs ../shared/{relative}, which is not here")
    return path
