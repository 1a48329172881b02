"""Access to the reproduction pages and the scripts that compute their numbers."""

from __future__ import annotations

import importlib
import re
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
    """The prose of a page and its numbers; its first table, which has tests of its own, is in neither."""
    parts = re.split(r"<!-- \w+: (?:begin|end) -->", page.read_text("utf-8"))
    lead, _, before, numbers, after = parts
    return lead + before + after, numbers.strip()
