"""The attention view of a report: starts when it comes near the screen, and is isolated from the page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from bertology.corpus.corpus import Corpus
from bertology.corpus.read import load_corpus
from bertology.encoder.load import load
from bertology.errors import Refusal
from bertology.views.html_view import HtmlView
from bertology.views.report.attention_view import attention_view_fragment
from browsing import wait_until

COUNT = """() => [...document.querySelectorAll('[data-bertology-view]')].filter(
  host => host.shadowRoot?.querySelector('.views:not([data-ready=""])')).length"""
STYLE = "body { max-width: 700px } button { color: red } .views { display: none } h1 { font-size: 60px }"


def english() -> Corpus:
    return load_corpus("english", None, skip_malformed=False, limit=5)


@dataclass(frozen=True)
class Report(HtmlView):
    """A page with its own style around the views, which are `offset` pixels below the heading."""

    offset: int = 0

    @property
    def title(self) -> str:
        return "report"

    def html(self) -> str:
        views = attention_view_fragment(load("tiny"), english())
        return (
            f'<!doctype html><meta charset="utf-8"><style>{STYLE}</style><h1 id="views">Report</h1>'
            f'<div style="height:{self.offset}px"></div>{views}'
        )


def test_a_report_shows_heads_and_model_of_one_example(opened: Any) -> None:
    page = opened(Report(), ready="h1")
    wait_until(page, f"({COUNT})() === 2")
    views = [page.locator(f"[data-bertology-view] .views[data-ready={name}]").count() for name in ("head", "model")]
    assert views == [1, 1] and page.evaluate("document.querySelectorAll('[data-bertology-payload]').length") == 1
    hash = page.evaluate("location.hash")
    page.locator("[data-bertology-view]").first.locator("[data-view=matrix]").click()
    page.wait_for_selector(".views[data-ready=matrix]")
    # Neither the address, nor the other view, nor the style of the page changes.
    assert page.evaluate("location.hash") == hash
    assert page.locator(".views[data-ready=model]").count() == 1
    assert page.evaluate("getComputedStyle(document.querySelector('h1')).fontSize") == "60px"
    colour = page.locator("[data-view=model]").first.evaluate("e => getComputedStyle(e).color")
    assert colour != "rgb(255, 0, 0)"


def test_views_start_when_they_come_near_the_screen(opened: Any) -> None:
    page = opened(Report(offset=5000), ready="h1")
    assert page.evaluate(COUNT) == 0
    page.locator("[data-bertology-view]").first.scroll_into_view_if_needed()
    wait_until(page, f"({COUNT})() >= 1")


def test_a_page_shows_another_head_by_setting_the_state(opened: Any) -> None:
    page = opened(Report(), ready="h1")
    wait_until(page, f"({COUNT})() === 2")
    page.evaluate("""() => {
      const host = document.querySelector('[data-bertology-view]');
      host.dataset.state = 'view=matrix&layer=2&heads=2';
      host.dispatchEvent(new CustomEvent('bertology-view-state'));
    }""")
    page.wait_for_selector(".views[data-ready=matrix]")
    state = page.evaluate("document.querySelector('[data-bertology-view]').dataset.state")
    assert "view=matrix" in state and "layer=2" in state
    assert page.locator("[data-chip='2'][aria-pressed=true]").count() == 1
    assert page.locator(".views[data-ready=model]").count() == 1


def test_the_example_is_the_first_short_text(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [example.segments[0].text for example in english()]
    assert sum(text[:20] in attention_view_fragment(load("tiny"), english()) for text in texts) == 1
    assert attention_view_fragment(load("static:tiny"), english()) == ""

    def refuse() -> str:
        raise Refusal("not built", "assets", "build them")

    monkeypatch.setattr("bertology.views.report.attention_view.page_script", refuse)
    assert attention_view_fragment(load("tiny"), english()) == ""
