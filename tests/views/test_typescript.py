"""The generated sources of the front-end are up to date."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertology.views.typescript import GENERATED

SOURCES = Path(__file__).parents[2] / "frontend" / "src"


@pytest.mark.parametrize("name", GENERATED)
def test_generating_again_changes_nothing(name: str) -> None:
    assert (SOURCES / name).read_text("utf-8") == GENERATED[name]()


def test_types_follow_the_schema() -> None:
    types = GENERATED["payload.ts"]()
    assert "export interface QuantisedRows {" in types and "attention_windows: (number | null)[];" in types
    assert "value_norms: QuantisedRows | null;" in types


def test_colours_follow_the_palette() -> None:
    assert 'goldArc: "#8a5a00"' in GENERATED["palette.ts"]() and "--background: #16181c" in GENERATED["palette.css"]()
