"""Every view keeps the rules of axe, on a phone in light and on a small screen in dark."""

from __future__ import annotations

from typing import Any

import pytest

import bertology
from accessibility import accessibility_violations
from views.shown_models import TEXT, against_younger, mini

VIEWS = ["head", "model", "matrix", "neuron", "difference"]


@pytest.mark.parametrize(("width", "dark"), [(390, False), (1024, True)], ids=["phone", "dark"])
@pytest.mark.parametrize("view", VIEWS)
def test_a_view_breaks_no_rule(opened: Any, view: str, width: int, dark: bool) -> None:
    page = opened(against_younger(), f"view={view}", width=width, dark=dark, ready=f".views[data-ready={view}]")
    assert accessibility_violations(page) == []


def test_a_long_text_breaks_no_rule(opened: Any) -> None:
    page = opened(bertology.view(mini(), " ".join([TEXT] * 6)), "view=neuron", width=390)
    assert accessibility_violations(page) == []


def test_a_broken_rule_is_found(opened: Any) -> None:
    page = opened(against_younger())
    page.evaluate("document.body.append(document.createElement('button'))")
    assert any("button-name" in violation for violation in accessibility_violations(page))
