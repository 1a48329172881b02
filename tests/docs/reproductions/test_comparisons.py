"""The comparisons of the reproduction pages: our numbers are those of the tables, and tables and index are current."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest

from bertology.analyses.presets import all_presets
from bertology.citations import CITATIONS
from bertology.claims.catalogue import all_claims
from reproduction_scripts import FOLDER, load_script, split_page

comparisons = load_script("comparisons")
PAGES: tuple[str, ...] = comparisons.page_names()
DECIMAL = re.compile(r"\d+\.\d+")
INTEGER = re.compile(r"\d+")

NUMBERS = """Some text.

### First

| layer | score | untrained | score |
| --- | --- | --- | --- |
| 1 | **80.8 [76.8, 84.8]** | 0.30 [0.29, 0.30] / 0.02 | 5.0 |
| 2 | 62.5 (18.5) |  | 5.0 |

### Second

|  | head | share |
| --- | --- | --- |
| next token | 3-1 | 96.2 at 3 |
| next token | 3-10 | 4-10 d-g (54%) |
"""


def declared(page: str) -> list[dict[str, Any]]:
    """The comparisons as the file has them, their texts not yet filled."""
    entries = tomllib.loads((FOLDER / f"{page}.toml").read_text("utf-8"))
    rows = entries.pop("comparison")
    return [entries | row for row in rows]


def typed_decimals(text: str) -> set[str]:
    """The decimals of a text that are not quoted from a cell."""
    return set(DECIMAL.findall(re.sub(r"\{.*?\}", "", text)))


def quantity(heading: str, row: str, column: str) -> Any:
    return comparisons.Quantity(comparisons.find_cell(comparisons.read_tables(NUMBERS), heading, row, column))


def test_a_cell_gives_its_number_interval_layer_and_published_value() -> None:
    best = quantity("First", "1", "score")
    assert (str(best), best.value, best.bracket) == ("80.8 [76.8, 84.8]", "80.8", "76.8, 84.8")
    both = quantity("First", "1", "untrained")
    assert (str(both), both.value, both.published) == ("0.30 [0.29, 0.30]", "0.30", "0.02")
    assert quantity("First", "2", "score").bracket == "18.5"
    assert quantity("Second", "next token, 3-1", "share").at == "3"
    head = quantity("Second", "next token, 3-10", "share")
    assert (head.value, head.head) == ("4-10 d-g (54%)", "4-10")


@pytest.mark.parametrize(
    ("heading", "row", "column", "found"),
    [("First", "3", "score", 0), ("First", "1", "other", 0), ("Second", "next token", "share", 2)],
)
def test_a_cell_that_is_missing_or_ambiguous_is_an_error(heading: str, row: str, column: str, found: int) -> None:
    with pytest.raises(ValueError, match=f"{found} cells in"):
        quantity(heading, row, column)


def test_every_page_has_comparisons_with_anchors_of_their_own() -> None:
    assert sorted(PAGES) == sorted(path.stem for path in FOLDER.glob("*.md") if path.stem != "index")
    for page in PAGES:
        rows = comparisons.comparisons_of(page)
        assert 4 <= len(rows) <= 10, page
        assert len({row.id for row in rows}) == len(rows), page
        headings = re.findall(r"^#+ (.+)$", (FOLDER / f"{page}.md").read_text("utf-8"), re.MULTILINE)
        assert not {row.id for row in rows} & {re.sub(r"\W+", "-", heading.lower()) for heading in headings}, page


@pytest.mark.parametrize("page", PAGES)
def test_our_numbers_are_quoted_from_the_tables(page: str) -> None:
    prose = set(DECIMAL.findall(split_page(FOLDER / f"{page}.md")[0]))
    for row in declared(page):
        assert "{" in row["ours"] and not typed_decimals(row["finding"] + row["ours"]), row["id"]
        assert typed_decimals(row["why"]) <= prose, row["id"]


@pytest.mark.parametrize("page", PAGES)
def test_sample_sizes_stand_on_the_page(page: str) -> None:
    text = (FOLDER / f"{page}.md").read_text("utf-8").split("comparisons: end")[1].replace(",", "")
    words = {"two": "2", "three": "3", "five": "5"}
    known = set(INTEGER.findall(text)) | {number for word, number in words.items() if word in text}
    for row in comparisons.comparisons_of(page):
        assert set(INTEGER.findall(row.n)) <= known, row.id


def published_numbers(paper: str) -> set[float]:
    """All numbers that the claims and presets of a paper have, as they stand and in percent."""
    texts = [f"{claim.published_value} {claim.published} {claim.published_baseline}" for claim in all_claims()]
    texts = [text for text, claim in zip(texts, all_claims(), strict=True) if claim.paper == paper]
    texts += [repr(preset) for preset in all_presets() if preset.paper == paper]
    numbers = {float(number) for text in texts for number in DECIMAL.findall(text)}
    return numbers | {round(100 * number, 6) for number in numbers}


@pytest.mark.parametrize("page", PAGES)
def test_published_numbers_are_those_of_claims_presets_or_the_script(page: str) -> None:
    script = (FOLDER / f"{page.replace('-', '_')}.py").read_text("utf-8")
    of_script = set(map(float, DECIMAL.findall(script)))
    for row in declared(page):
        assert row["paper"] in CITATIONS and row["source"], row["id"]
        typed = set(map(float, typed_decimals(row["published"])))
        assert typed <= of_script | published_numbers(row["paper"]), (row["id"], typed)


@pytest.mark.parametrize("page", PAGES)
def test_the_first_table_of_a_page_is_current(page: str) -> None:
    text = (FOLDER / f"{page}.md").read_text("utf-8")
    table = load_script("reproduction_page").part_of(text, "comparisons")
    assert table == comparisons.comparison_table(page), "run: python docs/reproductions/index.py"
    before = text.split("<!-- comparisons: begin -->")[0]
    assert before.count("\n\n") == 2, "a title and one paragraph stand before the table"


def test_the_index_has_the_rows_of_all_pages() -> None:
    index = load_script("index")
    stored = (FOLDER / "index.md").read_text("utf-8")
    assert stored == index.index(), "run: python docs/reproductions/index.py"
    for page in PAGES:
        for row in comparisons.comparisons_of(page):
            assert f"({page}.md#{row.id})" in stored
