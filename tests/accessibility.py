"""The rules of axe that a page breaks."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Page

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def accessibility_violations(page: Page) -> list[str]:
    """Each broken rule with the first element that breaks it and why."""
    page.evaluate(files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8"))
    violations: list[Any] = page.evaluate("rules => axe.run({runOnly: rules}).then(found => found.violations)", RULES)
    return [
        f"{violation['id']} ({len(violation['nodes'])}): {node['target']}: {node['failureSummary']}"
        for violation in violations
        for node in violation["nodes"][:1]
    ]
