"""A browser, offline, that fails a test on any console message or network request."""

from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bertology.views.html_view import HtmlView

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

READY = ".views:not([data-ready=''])"

Open = Callable[..., "Page"]


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
