"""Writes index.md: every page of reproductions with what it found, as the page itself says it.

    python docs/reproductions/index.py

A page says each outcome in bold at the head of a paragraph; it stands here with the sentence that follows.
"""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = Path(__file__).parent
INDEX = FOLDER / "index.md"
OUTCOME = re.compile(r"^\*\*(.+?)\*\*(.*?\.)(?=\s|$)", re.MULTILINE | re.DOTALL)
NUMBERS = re.compile(r"<!-- numbers: begin -->.*<!-- numbers: end -->", re.DOTALL)
HEAD = """# Reproductions

Published findings run again on models at hand, beside the published numbers, with a paragraph on every difference.
Each page has a script that makes its numbers. Below are the outcomes as the pages tell them.
"""


def index() -> str:
    """The whole page."""
    parts = [HEAD]
    for page in sorted(FOLDER.glob("*.md")):
        if page == INDEX:
            continue
        text = NUMBERS.sub("", page.read_text("utf-8"))
        title = text.split("\n", 1)[0].removeprefix("# ")
        lines = "\n".join(f"- {' '.join(f'**{said}**{more}'.split())}" for said, more in OUTCOME.findall(text))
        parts.append(f"## [{title}]({page.name})\n\n{lines}\n")
    return "\n".join(parts)


if __name__ == "__main__":
    INDEX.write_text(index(), "utf-8")
