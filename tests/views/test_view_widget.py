"""The views in a notebook: in a frame and as a widget, in a browser."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import bertology
from bertology.results.result import Result
from bertology.views.page import asset, payload_json
from bertology.views.view import View

if TYPE_CHECKING:
    from playwright.sync_api import Browser

RENDER = """
async ([code, payload]) => {
  const module = await import(URL.createObjectURL(new Blob([code], { type: "text/javascript" })));
  const values = { payload, state: "view=matrix&heads=2", identifier: "one" };
  const listeners = [];
  window.model = {
    get: name => values[name],
    set: (name, value) => { values[name] = value },
    save_changes: () => { window.saved = values.state },
    on: (event, changed) => listeners.push(changed),
    off: (event, changed) => listeners.splice(listeners.indexOf(changed), 1),
    change: state => { values.state = state; listeners.forEach(changed => changed()) },
  };
  const el = document.body.appendChild(document.createElement("div"));
  window.unmount = module.default.render({ model: window.model, el });
}
"""


def random_view() -> View:
    attention = np.random.default_rng(0).dirichlet(np.ones(4), size=(2, 3, 4))
    return bertology.head_view(list(attention), ["[CLS]", "a", "b", "[SEP]"])


def small_result() -> Result:
    return bertology.run("attention/entropy", "tiny", ["A cat sat.", "It purred."], random_baseline=False)


def test_a_frame_in_a_notebook_shows_the_views(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "notebook.html"
    iframe = random_view()._repr_html_()  # pyright: ignore[reportPrivateUsage]  # called by notebooks
    file.write_text(f"<!doctype html><h1>notebook</h1>{iframe}", "utf-8")
    page = browser.new_page()
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(file.as_uri())
    frame = page.frame_locator("iframe")
    frame.locator(".views[data-ready=head]").wait_for()
    frame.locator("[data-view=matrix]").click()
    frame.locator("[data-cell='1,2']").wait_for()
    page.close()
    assert not errors


def test_a_frame_in_a_notebook_is_as_high_as_its_page(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "notebook.html"
    frames = [random_view()._repr_html_(), bertology.show(small_result())._repr_html_()]  # pyright: ignore[reportPrivateUsage]
    file.write_text(f"<!doctype html><h1>notebook</h1>{''.join(frames)}", "utf-8")
    page = browser.new_page(viewport={"width": 1100, "height": 900})
    page.goto(file.as_uri())
    page.frame_locator("iframe >> nth=0").locator(".views[data-ready=head]").wait_for()

    def heights(number: int) -> tuple[float, float]:
        page.wait_for_timeout(300)
        body = page.frames[number + 1].evaluate("document.body.getBoundingClientRect().height")
        return page.locator("iframe").nth(number).evaluate("frame => frame.getBoundingClientRect().height"), body

    for number in (0, 1):
        frame_height, body_height = heights(number)
        assert 0 <= frame_height - body_height <= 1 and frame_height != 760
    page.frame_locator("iframe >> nth=0").locator("[data-view=matrix]").click()
    page.frame_locator("iframe >> nth=0").locator(".views[data-ready=matrix]").wait_for()
    after, body_after = heights(0)
    assert 0 <= after - body_after <= 1
    page.close()


def test_a_widget_stores_its_state_in_its_model(browser: Browser) -> None:
    page = browser.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto("about:blank")
    page.evaluate(RENDER, [asset("widget.js"), str(payload_json(random_view().payload))])
    page.wait_for_selector(".views[data-ready=matrix]")
    page.click("[data-view=model]")
    page.wait_for_selector(".views[data-ready=model]")
    assert page.evaluate("window.saved") == "view=model&heads=2"
    assert page.locator("[data-bertology-widget=one]").count() == 1
    page.evaluate("window.model.change('view=head&layer=2')")
    page.wait_for_selector(".views[data-ready=head] .legend li:has-text('2-')")
    page.evaluate("window.unmount()")
    assert page.locator(".views").count() == 0
    page.close()
    assert not errors


def test_the_payload_survives_json() -> None:
    assert json.loads(payload_json(random_view().payload)) == random_view().payload.model_dump()
