"""What a page of views shows, read back out of the browser."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def exported(page: Any, kind: str) -> str:
    if not page.locator(".export[open]").count():
        page.click(".export summary")
    with page.expect_download() as waiting:
        page.click(f"[data-export={kind}]")
    path = waiting.value.path()
    return Path(path).read_text("utf-8") if kind != "png" else Path(path).read_bytes().hex()


def weights_on(page: Any) -> dict[str, NDArray[np.float64]]:
    """The maps on screen, by the name of their head, as the page exports them."""
    maps = json.loads(exported(page, "json"))["maps"]
    return {
        one["head"]: np.array([[np.nan if x is None else x for x in row] for row in one["weights"]]) for one in maps
    }


def drawn(page: Any, selector: str = "main canvas") -> int:
    """How many different colours a canvas holds: more than one where something was drawn."""
    return page.locator(selector).first.evaluate(
        "c => new Set(new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer)).size"
    )
