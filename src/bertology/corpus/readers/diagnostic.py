"""The diagnostic set of GLUE: inference pairs under the phenomena that decide them, as `diagnostic-full.tsv` has them.

Four columns are categories; a cell names the pair's sub-types in it, a semicolon between two, and is empty where the
pair is not of that category. A pair may belong to several. The item's source tells them as factors, the sub-types
with commas between them: `lexical semantics=Factivity,Quantifiers;logic=Negation;domain=News`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from bertology.corpus.corpus import Item
from bertology.corpus.factors import as_source, factors
from bertology.corpus.faults import Fault, parsed
from bertology.corpus.read import reader
from bertology.corpus.sniff import first_lines
from bertology.corpus.source import Problems
from bertology.corpus.tables import Row, cell, open_table
from bertology.corpus.wording import Words, worded
from bertology.errors import Refusal

LABELS = ("entailment", "neutral", "contradiction")
CATEGORIES: dict[str, tuple[str, ...]] = {
    "lexical semantics": (
        "Lexical entailment",
        "Morphological negation",
        "Factivity",
        "Symmetry/Collectivity",
        "Redundancy",
        "Named entities",
        "Quantifiers",
    ),
    "predicate-argument structure": (
        "Core args",
        "Prepositional phrases",
        "Ellipsis/Implicits",
        "Anaphora/Coreference",
        "Active/Passive",
        "Nominalization",
        "Genitives/Partitives",
        "Datives",
        "Relative clauses",
        "Coordination scope",
        "Intersectivity",
        "Restrictivity",
    ),
    "logic": (
        "Negation",
        "Double negation",
        "Intervals/Numbers",
        "Conjunction",
        "Disjunction",
        "Conditionals",
        "Universal",
        "Existential",
        "Temporal",
        "Upward monotone",
        "Downward monotone",
        "Non-monotone",
    ),
    "knowledge": ("Common sense", "World knowledge"),
}
"""The categories and their sub-types under the names of the official file; other sub-types are read as they stand."""
COLUMNS = (*CATEGORIES, "premise", "hypothesis", "label")
EXAMPLE = """\
Lexical Semantics	Predicate-Argument Structure	Logic	Knowledge	Domain	Premise	Hypothesis	Label
		Negation		Artificial	A dog sleeps.	No dog sleeps.	contradiction
Quantifiers	Core args;Datives			News	All gave her books.	Some gave her books.	entailment"""


def categories_of(item: Item) -> dict[str, tuple[str, ...]]:
    """The sub-types of a pair by their category; none where the item is not of this form."""
    known = factors(item)
    return {name: tuple(known[name].split(",")) for name in CATEGORIES if known.get(name)}


def recognises(path: Path) -> bool:
    """Whether the header has the four categories and the columns of a pair."""
    header = {name.strip().lower() for name in "".join(first_lines(path)[:1]).split("\t")}
    return header >= set(COLUMNS)


@reader(
    "diagnostic",
    about="GLUE's diagnostic set: inference pairs by category and sub-type, TSV",
    example=EXAMPLE,
    recognises=recognises,
)
def read_diagnostic(path: Path, problems: Problems, *, words: Words = "text") -> Iterator[Item]:
    """One item a pair, its id the line's number."""
    table = open_table(path, problems, known=COLUMNS)
    missing = [name for name in COLUMNS if name not in table.names]
    if table.names and missing:
        raise Refusal(
            f"{path} lacks the column {missing[0]!r}",
            f"a header with {', '.join(COLUMNS)}",
            "Take diagnostic-full.tsv, which has the labels; the file for submissions to the leaderboard does not",
        )
    yield from parsed(path, problems, table.rows, partial(_item, words))


def _item(words: Words, line: int, row: Row) -> Item:
    label = cell(row, "label", "label").lower()
    if label not in LABELS:
        raise Fault("unknown label", f"The label is {label!r}", f"one of {', '.join(LABELS)}", "Correct it")
    known = {name: ",".join(_listed(row[name])) for name in CATEGORIES if row[name].strip()}
    if row.get("domain", "").strip():
        known["domain"] = " ".join(_listed(row["domain"]))
    parts = tuple(worded(cell(row, name, name), words) for name in ("premise", "hypothesis"))
    return Item(parts, "pair", label, id=str(line), source=as_source(known))


def _listed(text: str) -> list[str]:
    """What stands between semicolons; signs that an item's source has its own use for become blanks."""
    named = [" ".join(name.replace(",", " ").replace("=", " ").split()) for name in text.split(";")]
    return [name for name in named if name]
