"""The GLUE diagnostic set: NLI pairs by linguistic phenomenon, as in `diagnostic-full.tsv`.

Four columns are categories; a cell lists the sub-types of the pair in this category, separated by semicolons, and is
empty if the pair is not in the category. A pair can be in several categories. They are factors of the example, with
commas between sub-types: `lexical semantics` is `Factivity,Quantifiers`, `logic` is `Negation`, `domain` is `News`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import MappingProxyType

from bertology.corpus.example import Example
from bertology.corpus.read import first_lines, reader
from bertology.corpus.sentence import WordSplitting, split_words
from bertology.corpus.tabular_files import TextRow, open_table, required_cell
from bertology.corpus.text_files import ParseError, ParseErrorHandler, parse_all

LABELS = ("entailment", "neutral", "contradiction")
CATEGORIES: dict[str, tuple[str, ...]] = {
    "lexical semantics": (
        "Lexical entailment", "Morphological negation", "Factivity", "Symmetry/Collectivity", "Redundancy",
        "Named entities", "Quantifiers",
    ),
    "predicate-argument structure": (
        "Core args", "Prepositional phrases", "Ellipsis/Implicits", "Anaphora/Coreference", "Active/Passive",
        "Nominalization", "Genitives/Partitives", "Datives", "Relative clauses", "Coordination scope",
        "Intersectivity", "Restrictivity",
    ),
    "logic": (
        "Negation", "Double negation", "Intervals/Numbers", "Conjunction", "Disjunction", "Conditionals", "Universal",
        "Existential", "Temporal", "Upward monotone", "Downward monotone", "Non-monotone",
    ),
    "knowledge": ("Common sense", "World knowledge"),
}  # fmt: skip
"""The categories and their sub-types, named as in the official file; other sub-types are read as they are."""
COLUMNS = (*CATEGORIES, "premise", "hypothesis", "label")
EXAMPLE = """\
Lexical Semantics	Predicate-Argument Structure	Logic	Knowledge	Domain	Premise	Hypothesis	Label
		Negation		Artificial	A dog sleeps.	No dog sleeps.	contradiction
Quantifiers	Core args;Datives			News	All gave her books.	Some gave her books.	entailment"""


def example_categories(example: Example) -> dict[str, tuple[str, ...]]:
    """Return the sub-types of a pair by category; empty for examples of other corpora."""
    return {name: tuple(example.factors[name].split(",")) for name in CATEGORIES if example.factors.get(name)}


def matches(path: Path) -> bool:
    """Whether the header has the four categories and the columns of a pair."""
    header = {name.strip().lower() for name in "".join(first_lines(path)[:1]).split("\t")}
    return header >= set(COLUMNS)


@reader(
    "glue_diagnostic",
    description="GLUE diagnostic set: NLI pairs by category and sub-type, TSV",
    example=EXAMPLE,
    matches=matches,
)
def read_glue_diagnostic(path: Path, errors: ParseErrorHandler, *, words: WordSplitting = "text") -> Iterator[Example]:
    """Yield one example per pair, with the line number as id."""
    table = open_table(path, errors, header_names=COLUMNS)
    remedy = "Use diagnostic-full.tsv, which has labels; the file for leaderboard submissions has none"
    table.require_columns(path, COLUMNS, remedy)
    yield from parse_all(path, errors, table.rows, partial(_to_example, words))


def _to_example(word_splitting: WordSplitting, line: int, row: TextRow) -> Example:
    label = required_cell(row, "label", "label").lower()
    if label not in LABELS:
        raise ParseError("unknown label", f"The label is {label!r}", f"one of {', '.join(LABELS)}", "Correct it")
    factors = {name: ",".join(_split_subtypes(row[name])) for name in CATEGORIES if row[name].strip()}
    if row.get("domain", "").strip():
        factors["domain"] = " ".join(_split_subtypes(row["domain"]))
    segments = tuple(split_words(required_cell(row, name, name), word_splitting) for name in ("premise", "hypothesis"))
    return Example(segments, "pair", label, id=str(line), factors=MappingProxyType(factors))


def _split_subtypes(text: str) -> list[str]:
    """Split a cell at semicolons; commas and equals signs, which separate factors, become spaces."""
    names = [" ".join(name.replace(",", " ").replace("=", " ").split()) for name in text.split(";")]
    return [name for name in names if name]
