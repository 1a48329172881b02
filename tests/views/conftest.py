"""A browser, offline, that fails a test on any console message or network request."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bertology.views.html_view import HtmlView

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

ROOT = Path(__file__).parents[2]
PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
READY = ".views:not([data-ready=''])"

Open = Callable[..., "Page"]


@pytest.fixture(scope="session", autouse=True)
def built_frontend() -> None:
    """Build the front-end if its sources have changed since it was installed."""
    specification = importlib.util.spec_from_file_location("views_build", ROOT / "frontend" / "build.py")
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    module.build()


@pytest.fixture(scope="session")
def browser() -> Generator[Browser]:
    """One Chromium for all tests."""
    driver = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = next((path for name in PROGRAMS if (path := shutil.which(name))), None)
    if program is None:
        assert not os.environ.get("REQUIRE_BROWSER"), "REQUIRE_BROWSER is set, and there is no Chromium"
        pytest.skip("no Chromium on this machine")
    with driver.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        yield chromium
        chromium.close()


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Generator[Open]:
    """Opens a view as a file and returns the page: `opened(view, "view=matrix", width=360, dark=True)`."""
    problems: list[str] = []
    contexts: list[BrowserContext] = []

    def open_page(view: HtmlView, hash: str = "", *, width: int = 1280, dark: bool = False, ready: str = READY) -> Page:
        file = view.save(tmp_path / f"page{len(contexts)}.html")
        scheme = "dark" if dark else "light"
        context = browser.new_context(
            viewport={"width": width, "height": 800}, color_scheme=scheme, offline=True, accept_downloads=True
        )
        context.set_default_timeout(15_000)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: problems.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: problems.append(f"error: {error}"))
        page.on("dialog", lambda dialog: problems.append(f"dialog: {dialog.message}"))
        page.on("request", lambda request: problems.extend(_requests(request.url)))
        page.goto(f"{file.as_uri()}#{hash}" if hash else file.as_uri())
        page.wait_for_selector(ready)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not problems


def _requests(url: str) -> list[str]:
    return [] if url.startswith(("file:", "blob:", "data:")) else [f"requests {url}"]
