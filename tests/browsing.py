"""A Chromium for tests of pages, and the front-end that they show: fixtures that conftest files and modules import."""

from __future__ import annotations

import importlib.util
import os
import shutil
import time
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).parents[1]
PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]


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


def wait_until(page: Page, expression: str, *, seconds: float = 30.0) -> None:
    """Wait until a JavaScript expression is true.

    `Page.wait_for_function` evaluates text in the page from its second look on, which the policy of our pages forbids.
    """
    end = time.monotonic() + seconds
    while not page.evaluate(expression):
        assert time.monotonic() < end, f"not true within {seconds:g} seconds: {expression}"
        page.wait_for_timeout(20)
