"""Write index.md: all reproductions with their main findings, as the pages state them.

    python docs/reproductions/index.py

A page states each finding in bold at the start of a paragraph; the index has the first sentence of that paragraph.
"""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = Path(__file__).parent
INDEX = FOLDER / "index.md"
PARAGRAPH = re.compile(r"^\*\*.+?(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)
FIRST_SENTENCE = re.compile(r"\*\*.+?\*\*.*?(?<!et al)\.(?=\s|$)")
"""A sentence ends at a full stop before white space, but not at that of "et al."."""
NUMBERS = re.compile(r"<!-- numbers: begin -->.*<!-- numbers: end -->", re.DOTALL)
HEAD = """# Reproductions

Published findings re-run on available models, compared with the published numbers, with a paragraph on every
difference. Each page has a script that computes its numbers. Below are the main findings of each page.
"""


def index() -> str:
    """The index as Markdown."""
    parts = [HEAD]
    for page in sorted(FOLDER.glob("*.md")):
        if page == INDEX:
            continue
        text = NUMBERS.sub("", page.read_text("utf-8"))
        title = text.split("\n", 1)[0].removeprefix("# ")
        lines = "\n".join(f"- {finding}" for finding in findings(text))
        parts.append(f"## [{title}]({page.name})\n\n{lines}\n")
    return "\n".join(parts)


def findings(text: str) -> list[str]:
    """The first sentence of every paragraph of a page that starts in bold."""
    paragraphs = (" ".join(paragraph.split()) for paragraph in PARAGRAPH.findall(text))
    return [match[0] for paragraph in paragraphs if (match := FIRST_SENTENCE.match(paragraph))]


if __name__ == "__main__":
    INDEX.write_text(index(), "utf-8")
