"""Chapters of the primer: their cells run, their numbers are computed, and both editions and notebooks agree."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

import bertology
from reproduction_scripts import load_script

ROOT = Path(__file__).parents[2]
COMPARISONS = load_script("comparisons")
CHAPTERS = runpy.run_path(str(ROOT / "docs" / "chapters.py"))
NAMES = sorted(path.stem for path in (ROOT / "docs" / "primer").glob("[0-9]*.md"))
EDITIONS: dict[str, Path] = CHAPTERS["EDITIONS"]
LAST_SECTIONS = {"en": ["Exercises", "On your model"], "zh": ["练习", "换成你的模型"]}
SMALL = "40"
"""Sentences of a run in these tests."""

EXAMPLE = """---
citations: [clark2019]
---
# A chapter

```python
value = 0.5
print("half")
value + 1
```

It is {{value:.2f}}, with \\({x}\\). [A link](../views.md)

```python exercise
answer = None
```

```python solution
answer = 2
```

```python check
assert answer in (None, 2)
```
"""


def run(source: str) -> Any:
    return CHAPTERS["run_chapter"]([CHAPTERS["parse"](source, "example")])[0]


def test_values_outputs_and_folded_solutions_stand_on_the_page() -> None:
    page = run(EXAMPLE).markdown
    assert "It is 0.50, with \\({x}\\)." in page
    assert '<pre class="cell-output">half</pre>' in page and '<pre class="cell-output">1.5</pre>' in page
    assert 'class="cell-output wrapped"' in run(EXAMPLE.replace('print("half")', 'print("half " * 40)')).markdown
    assert '??? note "Solution"\n    ```python\n    answer = 2' in page
    assert "## References" in page and "Clark, Khandelwal" in page and "@inproceedings{clark2019" in page


def test_a_chapter_that_was_not_run_has_dots_for_values() -> None:
    page = CHAPTERS["page_without_values"](CHAPTERS["parse"](EXAMPLE, "example")).markdown
    assert "It is …, with \\({x}\\)." in page and "value + 1\n```" in page and "## References" in page
    assert "cell-output" not in page


def test_links_to_rows_of_reproductions_quote_their_numbers() -> None:
    link = "[{frozen.value} %](../reproductions/fine-tuning.md#freezing)"
    row = next(row for row in COMPARISONS.comparisons_of("fine-tuning") if row.id == "freezing")
    quoted = f"[{row.quantities['frozen'].value} %](../reproductions/fine-tuning.md#freezing)"
    source = EXAMPLE.replace("[A link](../views.md)", f"{link} {{{{value:.1f}}}}")
    assert f"{quoted} 0.5" in run(source).markdown
    notebook = CHAPTERS["to_notebook"](CHAPTERS["parse"](source, "example"))
    paragraph = next(cell["source"] for cell in notebook["cells"] if cell["source"].startswith("Markdown("))
    assert quoted.replace("../rep", "../../docs/rep") in eval(paragraph, {"value": 0.5, "Markdown": str})
    for wrong in (link.replace("#freezing", "#thawing"), link.replace("frozen", "thawed")):
        with pytest.raises(ValueError, match=r"no such row|cannot be quoted"):
            run(source.replace(link, wrong))


@pytest.mark.parametrize("name", NAMES)
def test_every_chapter_links_to_rows_of_reproductions(name: str) -> None:
    addresses = {
        edition: re.findall(r"reproductions/([\w-]+\.md#[\w-]+)", (folder / f"{name}.md").read_text("utf-8"))
        for edition, folder in EDITIONS.items()
    }
    assert addresses["en"] and sorted(addresses["en"]) == sorted(addresses["zh"])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (("value = 0.5", "value = 0.5\nassert value > 1"), "cell 1 failed: AssertionError"),
        (("{{value:.2f}}", "{{missing}}"), r"\{\{missing\}\} has no value"),
        (("It is {{value:.2f}}", "It is\n{{4}}. And"), "reads as an item of a list"),
        (("answer = 2", "answer = 3"), "cell 4 failed: AssertionError"),
        (("python check", "python chek"), "no role is called 'chek'"),
    ],
    ids=["false conclusion", "no value", "value as list", "wrong solution", "unknown role"],
)
def test_a_wrong_chapter_fails_the_build(wrong: tuple[str, str], message: str) -> None:
    with pytest.raises((RuntimeError, ValueError), match=message):
        run(EXAMPLE.replace(*wrong))


def test_editions_with_other_cells_are_refused() -> None:
    editions = [
        CHAPTERS["parse"](EXAMPLE, "example"),
        CHAPTERS["parse"](EXAMPLE.replace("0.5", "0.6"), "example", "zh"),
    ]
    with pytest.raises(ValueError, match="different cells"):
        CHAPTERS["run_chapter"](editions)


def test_a_notebook_computes_the_values_of_its_text() -> None:
    notebook = CHAPTERS["to_notebook"](CHAPTERS["parse"](EXAMPLE, "example"))
    sources = [cell["source"] for cell in notebook["cells"]]
    paragraph = next(source for source in sources if source.startswith("Markdown("))
    names = {"value": 0.5, "Markdown": str}
    assert eval(paragraph, names) == "It is 0.50, with \\({x}\\). [A link](../../docs/views.md)"
    assert "answer = None" in sources and not any(source.startswith("answer = 2") for source in sources)
    assert any("<details>" in source and "answer = 2" in source for source in sources)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_chapter_runs_in_both_editions(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PRIMER_SENTENCES", SMALL)
    chapters = [CHAPTERS["read_chapters"](folder, edition)[name] for edition, folder in EDITIONS.items()]
    pages = CHAPTERS["run_chapter"](chapters)
    for chapter, page in zip(chapters, pages, strict=True):
        sections = re.findall(r"^## (.+)$", page.markdown, re.MULTILINE)
        assert sections[-3:-1] == LAST_SECTIONS[chapter.edition], chapter.edition
        assert "{{" not in re.sub(r"```.*?```", "", page.markdown, flags=re.DOTALL)
        assert page.frames, "a chapter has a picture to play with"
        roles = [cell.role for cell in chapter.cells]
        assert roles.count("exercise") == roles.count("solution") == roles.count("check") == 2


def test_every_chapter_has_its_chinese_counterpart() -> None:
    assert [path.stem for path in sorted(EDITIONS["zh"].glob("[0-9]*.md"))] == NAMES


def test_sentences_quoted_from_the_chinese_treebank_are_in_it() -> None:
    pages = [path.read_text("utf-8") for path in EDITIONS["zh"].glob("*.md")]
    quoted = [quote for page in pages for quote in re.findall("「(.+?)」", page)]
    treebank = [example.segments[0].text or "" for example in bertology.read("chinese")]
    assert len(quoted) >= 4
    assert [quote for quote in quoted if not any(quote in text for text in treebank)] == []


def test_numbers_of_results_are_not_typed() -> None:
    """Decimals and percentages in the text come from values; years, sizes of models and references are words."""
    typed = re.compile(r"(?<![\w.{-])(\d+\.\d+|\d+ ?%)(?!\w)")
    for edition, folder in EDITIONS.items():
        for name, chapter in CHAPTERS["read_chapters"](folder, edition).items():
            texts = [part.markdown for part in chapter.parts if hasattr(part, "markdown")]
            plain = re.sub(r"\{\{.+?\}\}|\$\$.*?\$\$|\\\(.*?\\\)|`[^`]*`", "", "\n".join(texts), flags=re.DOTALL)
            found = [match for match in typed.findall(plain) if match.replace(" ", "") != "95%"]
            assert not found, f"{edition} {name}: {found}"


def test_the_notebooks_are_those_of_the_chapters() -> None:
    expected: dict[Path, str] = CHAPTERS["notebook_files"]()
    stored = sorted((ROOT / "examples" / "primer").rglob("*.ipynb"))
    assert stored == sorted(expected)
    for path, text in expected.items():
        assert json.loads(path.read_text("utf-8")) == json.loads(text), f"run: python docs/chapters.py ({path.name})"
