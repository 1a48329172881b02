"""Views inside the report: fragments that begin when they come near, and share nothing with what surrounds them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from bertology.corpus.builtin import corpus_named
from bertology.corpus.corpus import Corpus
from bertology.encoder.load import load
from bertology.errors import Refusal
from bertology.report.inside import inside
from bertology.views.shown import Shown

COUNT = """() => [...document.querySelectorAll('[data-bertology-view]')].filter(
  host => host.shadowRoot?.querySelector('.views:not([data-ready=""])')).length"""
STYLE = "body { max-width: 700px } button { color: red } .views { display: none } h1 { font-size: 60px }"


def english() -> Corpus:
    return corpus_named("english", None, skip_bad=False, limit=5)


@dataclass(frozen=True)
class Report(Shown):
    """A page with a style of its own around the views; they stand so many pixels below its head."""

    below: int = 0

    @property
    def title(self) -> str:
        return "report"

    def html(self) -> str:
        views = inside(load("tiny"), english())
        return (
            f'<!doctype html><meta charset="utf-8"><style>{STYLE}</style><h1 id="views">Report</h1>'
            f'<div style="height:{self.below}px"></div>{views}'
        )


def test_a_report_shows_heads_and_model_of_one_example(opened: Any) -> None:
    looked = opened(Report(), ready="h1")
    looked.wait_for_function(f"({COUNT})() === 2")
    views = [looked.locator(f"[data-bertology-view] .views[data-ready={name}]").count() for name in ("head", "model")]
    assert views == [1, 1] and looked.evaluate("document.querySelectorAll('[data-bertology-payload]').length") == 1
    hash = looked.evaluate("location.hash")
    looked.locator("[data-bertology-view]").first.locator("[data-view=matrix]").click()
    looked.wait_for_selector(".views[data-ready=matrix]")
    # Each keeps to itself: neither the address, nor the other view, nor the style of the page around them changes.
    assert looked.evaluate("location.hash") == hash
    assert looked.locator(".views[data-ready=model]").count() == 1
    assert looked.evaluate("getComputedStyle(document.querySelector('h1')).fontSize") == "60px"
    colour = looked.locator("[data-view=model]").first.evaluate("e => getComputedStyle(e).color")
    assert colour != "rgb(255, 0, 0)"


def test_nothing_is_made_before_it_comes_near(opened: Any) -> None:
    looked = opened(Report(below=5000), ready="h1")
    assert looked.evaluate(COUNT) == 0
    looked.locator("[data-bertology-view]").first.scroll_into_view_if_needed()
    looked.wait_for_function(f"({COUNT})() >= 1")


def test_the_example_is_the_first_short_text(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [item.parts[0].text for item in english()]
    assert sum(text[:20] in inside(load("tiny"), english()) for text in texts) == 1
    assert inside(load("static:tiny"), english()) == ""

    def refuse() -> str:
        raise Refusal("not built", "assets", "build them")

    monkeypatch.setattr("bertology.report.inside.program", refuse)
    assert inside(load("tiny"), english()) == ""
