"""Chapters of the primer: Markdown whose cells run when the site is built, and notebooks made from the same files.

The Python blocks of a chapter are the cells of one program. A cell shows what it prints and the value of its last
expression, as a notebook does. `{{expression}}` in the text is replaced by its value: no number of a chapter is typed,
and an `assert` in a cell stands behind each conclusion, so that a wrong one fails the build. The word after `python`
gives a cell a role:

- `exercise`: what the reader fills in; `answer = None` until then.
- `solution`: a solution, run before the check and shown on request.
- `check`: accepts None and right answers.

A link to a row of a reproduction quotes its numbers: `[{frozen.value} %](../reproductions/fine-tuning.md#freezing)`.
The names are those of the row's cells (`docs/reproductions/comparisons.py`).

Both editions of a chapter have the same cells, which run once. `python docs/chapters.py` writes the notebooks.
"""

from __future__ import annotations

import ast
import html
import io
import json
import os
import posixpath
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import yaml

from bertology.citations import bibtex_entry, full_citation
from bertology.views.html_view import HtmlView

if TYPE_CHECKING:
    from mkdocs.structure.files import Files

DOCS = Path(__file__).parent
EDITIONS = {"en": DOCS / "primer", "zh": DOCS / "zh" / "primer"}
NOTEBOOKS = DOCS.parent / "examples" / "primer"
Role = Literal["cell", "exercise", "solution", "check"]
WORDS = {
    "en": {"solution": "Solution", "references": "References"},
    "zh": {"solution": "参考答案", "references": "参考文献"},
}
TABLE_WIDTH = 80
"""Characters of a printed line. Longer lines are sentences and wrap; shorter ones may be rows of a table and scroll."""
FRONT_MATTER = re.compile(r"\A---\n(.*?)^---\n", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```python(?: (\w+))?\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
VALUE = re.compile(r"\{\{(.+?)\}\}")
ROW_LINK = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+reproductions/([\w-]+)\.md#([\w-]+))\)")
QUOTED = re.compile(r"(?<!\{)\{(\w+(?:\.\w+)?)\}(?!\})")
ITEM = re.compile(r"^ *(?:\d+[.)]|[-+*])(?= |$)", re.MULTILINE)
LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)\s]+)(?=\))")


@dataclass(frozen=True)
class Text:
    """Markdown with `{{values}}`."""

    markdown: str


@dataclass(frozen=True)
class Cell:
    """Code, and what it is for."""

    code: str
    role: Role = "cell"


@dataclass(frozen=True)
class Chapter:
    """One edition of a chapter: texts and cells in order, and the keys of the papers it cites."""

    name: str
    edition: str
    parts: tuple[Text | Cell, ...]
    citations: tuple[str, ...]

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The cells in order."""
        return tuple(part for part in self.parts if isinstance(part, Cell))


@dataclass(frozen=True)
class Page:
    """A chapter after its run: Markdown, and the pages that its frames show, by file name."""

    markdown: str
    frames: Mapping[str, str]


def parse(markdown: str, name: str, edition: str = "en") -> Chapter:
    """A chapter from its source; a role that does not exist is an error."""
    front = FRONT_MATTER.match(markdown)
    citations = tuple(yaml.safe_load(front[1])["citations"]) if front else ()
    body = markdown[front.end() :] if front else markdown
    parts: list[Text | Cell] = []
    end = 0
    for block in BLOCK.finditer(body):
        parts += _texts(body[end : block.start()])
        role = block[1] or "cell"
        if role not in get_args(Role):
            raise ValueError(f"{name}: no role is called {role!r}; there are {', '.join(get_args(Role))}")
        parts.append(Cell(block[2].rstrip("\n"), role))
        end = block.end()
    return Chapter(name, edition, (*parts, *_texts(body[end:])), citations)


def _texts(markdown: str) -> list[Text]:
    return [Text(markdown.strip("\n"))] if markdown.strip() else []


def read_chapters(folder: Path, edition: str) -> dict[str, Chapter]:
    """The chapters of an edition by name, in order; the index has no cells."""
    files = [file for file in sorted(folder.glob("*.md")) if file.stem != "index"]
    return {file.stem: parse(file.read_text("utf-8"), file.stem, edition) for file in files}


def run_chapter(editions: Sequence[Chapter]) -> list[Page]:
    """Run the cells once and fill the texts of every edition with their values."""
    first = editions[0]
    for other in editions[1:]:
        if other.cells != first.cells:
            raise ValueError(f"{first.name}: the editions {first.edition} and {other.edition} have different cells")
    names: dict[str, Any] = {"__name__": "__main__"}
    pages: list[list[str]] = [[] for _ in editions]
    frames: dict[str, str] = {}
    texts = [_texts_before_cells(chapter) for chapter in editions]
    for number in range(len(first.cells) + 1):
        for chapter, page, before in zip(editions, pages, texts, strict=True):
            page += [fill(text.markdown, names, chapter.name) for text in before[number]]
        if number < len(first.cells):
            cell = first.cells[number]
            shown = run_cell(cell, names, f"{first.name}, cell {number + 1}")
            output, pages_of_frames = _render_output(shown, f"{first.name}-{number + 1}")
            frames |= pages_of_frames
            for chapter, page in zip(editions, pages, strict=True):
                page += [_render_cell(cell, chapter.edition), *output]
    ends = [_references(chapter) for chapter in editions]
    return [Page("\n\n".join([*page, end]) + "\n", frames) for page, end in zip(pages, ends, strict=True)]


def page_without_values(chapter: Chapter) -> Page:
    """A chapter that was not run: dots for values, and no outputs."""
    parts = [
        VALUE.sub("…", quote_rows(part.markdown, chapter.name))
        if isinstance(part, Text)
        else _render_cell(part, chapter.edition)
        for part in chapter.parts
    ]
    return Page("\n\n".join([*parts, _references(chapter)]) + "\n", {})


def _texts_before_cells(chapter: Chapter) -> list[list[Text]]:
    """The texts before each cell, and those after the last one."""
    groups: list[list[Text]] = [[]]
    for part in chapter.parts:
        if isinstance(part, Text):
            groups[-1].append(part)
        else:
            groups.append([])
    return groups


def fill(markdown: str, names: Mapping[str, Any], where: str) -> str:
    """The text with the values of its expressions; `{{value:.2f}}` formats one as in an f-string."""
    markdown = quote_rows(markdown, where)

    def value(match: re.Match[str]) -> str:
        try:
            return str(eval(f'f"""{{{match[1]}}}"""', dict(names)))
        except Exception as error:
            raise ValueError(f"{where}: {match[0]} has no value: {error!r}") from error

    filled = VALUE.sub(value, markdown)
    if len(ITEM.findall(filled)) > len(ITEM.findall(markdown)):
        raise ValueError(f"{where}: a value at the start of a line reads as an item of a list in {filled!r}")
    return filled


def quote_rows(markdown: str, where: str) -> str:
    """The text with the numbers that its links to rows of the reproductions quote."""
    if str(DOCS / "reproductions") not in sys.path:
        sys.path.append(str(DOCS / "reproductions"))
    from comparisons import comparisons_of

    def quote(link: re.Match[str]) -> str:
        text, address, page, anchor = link.groups()
        rows = [row for row in comparisons_of(page) if row.id == anchor]
        if not rows:
            raise ValueError(f"{where}: {address} has no such row")
        try:
            return f"[{QUOTED.sub(lambda name: name[0].format(**rows[0].quantities), text)}]({address})"
        except (AttributeError, KeyError, ValueError) as error:
            raise ValueError(f"{where}: {link[0]} cannot be quoted: {error!r}") from error

    return ROW_LINK.sub(quote, markdown)


def run_cell(cell: Cell, names: dict[str, Any], where: str) -> list[Any]:
    """Run a cell; what it printed, if anything, and the value of its last expression, if it has one."""
    body = ast.parse(cell.code, where).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    printed = io.StringIO()
    value = None
    try:
        with redirect_stdout(printed):
            exec(compile(ast.Module(body, []), where, "exec"), names)
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), where, "eval"), names)
    except Exception as error:
        raise RuntimeError(f"{where} failed: {error!r}\n{cell.code}") from error
    return [shown for shown in (printed.getvalue().rstrip() or None, value) if shown is not None]


def _render_output(shown: Sequence[Any], name: str) -> tuple[list[str], dict[str, str]]:
    """What a cell shows, as Markdown, and the pages of its frames by file name."""
    parts: list[str] = []
    frames: dict[str, str] = {}
    for value in shown:
        if isinstance(value, HtmlView):
            file = f"{name}.html"
            frames[file] = value.html()
            title = html.escape(value.title, quote=True)
            parts.append(
                f'<iframe class="cell-frame" src="figures/{file}" title="{title}" loading="lazy" '
                f'style="height:{value.height}px"></iframe>'
            )
        elif callable(getattr(value, "_repr_html_", None)):
            parts.append(f'<div class="cell-output">{value._repr_html_()}</div>')
        else:
            text = value if isinstance(value, str) else repr(value)
            wrap = " wrapped" if max(map(len, text.splitlines()), default=0) > TABLE_WIDTH else ""
            parts.append(f'<pre class="cell-output{wrap}">{html.escape(text)}</pre>')
    return parts, frames


def _render_cell(cell: Cell, edition: str) -> str:
    block = f"```python\n{cell.code}\n```"
    if cell.role != "solution":
        return block
    indented = "\n".join(f"    {line}" if line else "" for line in block.splitlines())
    return f'??? note "{WORDS[edition]["solution"]}"\n{indented}'


def _references(chapter: Chapter) -> str:
    words = WORDS[chapter.edition]
    papers = [f"- {full_citation(key)}" for key in chapter.citations]
    entries = "\n\n".join(map(bibtex_entry, chapter.citations))
    bibtex = "\n".join(f"    {line}" if line else "" for line in f"```bibtex\n{entries}\n```".splitlines())
    return "\n".join([f"## {words['references']}", "", *papers, "", '??? quote "BibTeX"', bibtex])


def on_files(files: Files, config: Any) -> Files:
    """Run every chapter and add its pages to the site, in both editions, with the pages that its frames show.

    With `PRIMER_SENTENCES=0` chapters are not run, and their pages have dots for values: a fast build for other pages.
    """
    from mkdocs.structure.files import File

    fast = os.environ.get("PRIMER_SENTENCES") == "0"
    editions = {edition: read_chapters(folder, edition) for edition, folder in EDITIONS.items()}
    for name in editions["en"]:
        chapters = [chapters[name] for chapters in editions.values() if name in chapters]
        pages = list(map(page_without_values, chapters)) if fast else run_chapter(chapters)
        for chapter, page in zip(chapters, pages, strict=True):
            folder = EDITIONS[chapter.edition].relative_to(DOCS).as_posix()
            replaced = files.get_file_from_path(f"{folder}/{name}.md")
            assert replaced is not None, "mkdocs has found the chapter too"
            files.remove(replaced)
            files.append(File.generated(config, f"{folder}/{name}.md", content=page.markdown))
            for file, content in page.frames.items():
                files.append(File.generated(config, f"{folder}/figures/{file}", content=content))
    return files


def to_notebook(chapter: Chapter) -> dict[str, Any]:
    """The chapter as a notebook without outputs; a paragraph with values is a cell that shows it."""
    cells = [_code_cell("import bertology\nfrom IPython.display import Markdown")]
    for part in chapter.parts:
        if isinstance(part, Text):
            cells += _text_cells(part, chapter)
        elif part.role == "solution":
            cells.append(_markdown_cell(_folded_solution(part, chapter.edition)))
        else:
            cells.append(_code_cell(part.code))
    cells.append(_markdown_cell(_references(Chapter(chapter.name, chapter.edition, (), chapter.citations))))
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number + 1}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def _text_cells(text: Text, chapter: Chapter) -> list[dict[str, Any]]:
    """Paragraphs without values as Markdown, those with values as code that computes them."""
    folder = EDITIONS[chapter.edition].relative_to(DOCS.parent).as_posix()
    markdown = quote_rows(text.markdown, chapter.name)
    markdown = LINK.sub(lambda link: posixpath.normpath(f"../../{folder}/{link[1]}"), markdown)
    cells: list[dict[str, Any]] = []
    for paragraph in markdown.split("\n\n"):
        if VALUE.search(paragraph):
            literal = "".join(
                f"{{{piece}}}" if index % 2 else piece.replace("{", "{{").replace("}", "}}")
                for index, piece in enumerate(VALUE.split(paragraph))
            )
            cell = _code_cell(f'Markdown(rf"""{literal}""")')
            cell["metadata"] = {"jupyter": {"source_hidden": True}, "tags": ["hide-input"]}
            cells.append(cell)
        elif cells and cells[-1]["cell_type"] == "markdown":
            cells[-1]["source"] += f"\n\n{paragraph}"
        else:
            cells.append(_markdown_cell(paragraph))
    return cells


def _folded_solution(cell: Cell, edition: str) -> str:
    summary = WORDS[edition]["solution"]
    return f"<details><summary>{summary}</summary>\n\n```python\n{cell.code}\n```\n\n</details>"


def _code_cell(code: str) -> dict[str, Any]:
    return {"cell_type": "code", "metadata": {}, "source": code, "execution_count": None, "outputs": []}


def _markdown_cell(markdown: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": markdown}


def notebook_files() -> dict[Path, str]:
    """The text of every notebook by its path: English in `examples/primer/`, Chinese in `examples/primer/zh/`."""
    notebooks: dict[Path, str] = {}
    for edition, folder in EDITIONS.items():
        target = NOTEBOOKS if edition == "en" else NOTEBOOKS / edition
        for name, chapter in read_chapters(folder, edition).items():
            notebooks[target / f"{name}.ipynb"] = json.dumps(to_notebook(chapter), indent=1, ensure_ascii=False) + "\n"
    return notebooks


if __name__ == "__main__":
    for path, text in notebook_files().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        print(path.relative_to(DOCS.parent))
