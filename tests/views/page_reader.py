"""Read back what a page of views shows in a browser."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from bertology.arrays import FloatArray


def exported(page: Any, kind: str) -> str:
    """The content of an export of the page: text, or hexadecimal digits of a PNG."""
    if not page.locator(".export[open]").count():
        page.click(".export summary")
    with page.expect_download() as download:
        page.click(f"[data-export={kind}]")
    path = download.value.path()
    return Path(path).read_text("utf-8") if kind != "png" else Path(path).read_bytes().hex()


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
