"""The page of the atlas in a browser: it opens offline, rows open, and rows and models are ordered."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from accessibility import accessibility_violations
from bertology.atlas.judged_model import NotJudged
from bertology.atlas.page import atlas_page
from browsing import wait_until
from planted_atlas import planted_atlas

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

IDS = ("same", "differs", "nowhere", "a", "b")
EFFECTS = {
    "big": dict(zip(IDS, (0.5, 0.9, -0.5, 0.3, 0.4), strict=True)),
    "small": dict(zip(IDS, (0.5, -0.4, -0.5, 0.1, 0.3), strict=True)),
    "run@10%": dict(zip(IDS, (-0.5, 0.1, -0.5, -0.2, 0.4), strict=True)),
    "run": dict(zip(IDS, (0.5, 0.2, -0.5, 0.3, -0.4), strict=True)),
    "random:run": dict(zip(IDS, (-0.5, -0.1, -0.5, -0.3, -0.4), strict=True)),
}


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    content = planted_atlas(EFFECTS, untrained=["random:run"])
    sizes = {"big": 9_000_000, "small": 10_000}
    models = tuple(m.model_copy(update={"n_parameters": sizes.get(m.name, 500_000)}) for m in content.models)
    failed = NotJudged(name="<b>odd</b>", reason="There is no model `odd`.")
    file = tmp_path_factory.mktemp("atlas") / "atlas.html"
    page = atlas_page(type(content)(models, content.claims, content.corpus, (failed,)), {"big": "report-big.html"})
    file.write_text(page, "utf-8")
    return file


@pytest.fixture(params=[1440, 1024, 390])
def page(request: pytest.FixtureRequest, browser: Browser, page_file: Path) -> Generator[Page]:
    opened = browser.new_page(viewport={"width": request.param, "height": 900})
    problems: list[str] = []
    opened.on("console", lambda message: problems.append(message.text))
    opened.on("pageerror", lambda error: problems.append(str(error)))
    opened.on("request", lambda sent: problems.append(sent.url) if not sent.url.startswith("file:") else None)
    opened.goto(page_file.as_uri())
    yield opened
    width = opened.evaluate("document.documentElement.scrollWidth")
    assert width <= request.param, "the page is not wider than the screen"
    assert problems == []
    opened.close()


def signs_of(page: Page, id: str) -> list[str]:
    """The names of the models of a row from left to right, with their verdicts."""
    cells = page.locator(f"#{id} .cell").all()
    boxes = [(cell.bounding_box(), cell.inner_text().strip()) for cell in cells]
    return [text for _, text in sorted(boxes, key=lambda each: each[0]["x"] if each[0] else 0.0)]


def test_a_row_has_the_verdict_of_each_model_and_opens_by_the_keyboard(page: Page) -> None:
    assert signs_of(page, "differs")[:2] == ["big: holds.", "small: does not hold."]
    summary = page.locator("#differs > summary")
    summary.focus()
    page.keyboard.press("Enter")
    opened = page.locator("#differs .opened")
    assert opened.is_visible() and opened.locator("svg.drawing .mark-estimate").count() == len(EFFECTS)
    assert "sentence by sentence" in opened.inner_text() and "Holm" in opened.inner_text()
    assert opened.locator("tbody td").first.text_content() == "big"


def test_models_are_ordered_by_size_and_rows_by_agreement(page: Page) -> None:
    page.get_by_role("button", name="by size").click()
    names = [sign.split(":")[0] for sign in signs_of(page, "same")]
    assert names[0] == "small" and names[-1] == "big"
    page.get_by_role("button", name="by agreement").click()
    assert "nowhere" in page.locator(".rows h2").all_text_contents()
    page.get_by_role("button", name="only where models differ").click()
    assert page.locator("#nowhere").is_hidden() and page.locator("#differs").is_visible()
    page.evaluate("location.hash = 'nowhere'")
    wait_until(page, "document.getElementById('nowhere').open && !document.getElementById('nowhere').hidden")


def test_what_was_left_out_is_shown_as_text_and_reports_are_linked(page: Page) -> None:
    assert "<b>odd</b> could not be judged" in page.locator(".notes").inner_text()
    page.locator("#model-big > summary").click()
    assert page.locator("#model-big a[href='report-big.html']").count() == 1
    assert page.locator("#training h3").inner_text().startswith("run, at 0, 10, 100")


def test_the_page_breaks_no_rule_of_accessibility(page: Page) -> None:
    assert accessibility_violations(page) == []
    page.evaluate("document.querySelectorAll('details').forEach(details => { details.open = true; })")
    assert accessibility_violations(page) == []


def test_many_models_with_long_names_fit_a_narrow_screen(browser: Browser, tmp_path: Path) -> None:
    names = [f"a-model-with-a-long-name-{number}" for number in range(20)]
    content = planted_atlas(dict.fromkeys(names, EFFECTS["run"]))
    file = tmp_path / "atlas.html"
    file.write_text(atlas_page(content), "utf-8")
    opened = browser.new_page(viewport={"width": 390, "height": 900})
    opened.goto(file.as_uri())
    assert opened.evaluate("document.documentElement.scrollWidth") == 390
    opened.close()
