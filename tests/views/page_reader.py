"""Read back what a page of views shows in a browser."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from bertology.arrays import FloatArray


def exported(page: Any, kind: str) -> str:
    """The content of an export of the page: text, or hexadecimal digits of a PNG."""
    open_export_menu(page)
    with page.expect_download() as download:
        page.click(f"[data-export={kind}]")
    path = download.value.path()
    return Path(path).read_text("utf-8") if kind != "png" else Path(path).read_bytes().hex()


def open_export_menu(page: Any) -> None:
    """Open the menu, if it is closed."""
    if not page.locator(".export .menu").count():
        page.click(".export .open")


def copied(page: Any, kind: str) -> str:
    """The text that an entry of the export menu copies: link, caption, bibtex or command."""
    page.evaluate("navigator.clipboard.writeText = text => { window.copied = text; return Promise.resolve() }")
    open_export_menu(page)
    page.click(f"[data-export={kind}]")
    page.wait_for_selector(".export output:has-text('copied')")
    return page.evaluate("window.copied")


def weights_on(page: Any) -> dict[str, FloatArray]:
    """The attention patterns on screen by head, as the page exports them."""
    patterns = json.loads(exported(page, "json"))["heads"]
    return {
        pattern["head"]: np.array([[np.nan if x is None else x for x in row] for row in pattern["weights"]])
        for pattern in patterns
    }


def n_colours(page: Any, selector: str = "main canvas") -> int:
    """The number of different colours of a canvas: more than one if something was drawn."""
    return page.locator(selector).first.evaluate(
        "c => new Set(new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer)).size"
    )
