"""Access to the reproduction pages and the scripts that compute their numbers."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).parents[1] / "docs" / "reproductions"


def load_script(name: str) -> ModuleType:
    """The module of a script in docs/reproductions."""
    if str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))
    return importlib.import_module(name)


def split_page(page: Path) -> tuple[str, str]:
    """The prose of a page and its numbers."""
    before, rest = page.read_text("utf-8").split("<!-- numbers: begin -->")
    numbers, after = rest.split("<!-- numbers: end -->")
    return before + after, numbers.strip()
