"""Pages of reproductions and the scripts that write their numbers."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).parents[1] / "docs" / "reproductions"


def script(name: str) -> ModuleType:
    """The module of a script."""
    if str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))
    return importlib.import_module(name)


def parts(page: Path) -> tuple[str, str]:
    """The page's text and its tables."""
    before, rest = page.read_text("utf-8").split("<!-- numbers: begin -->")
    numbers, after = rest.split("<!-- numbers: end -->")
    return before + after, numbers.strip()
