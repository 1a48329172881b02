"""GLUE's diagnostic file: several categories a pair, several sub-types a category, and what is broken."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.corpus.checks import Reading, assert_surfaces

from bertology.corpus.corpus import Item
from bertology.corpus.factors import factors
from bertology.corpus.read import read
from bertology.corpus.readers.diagnostic import CATEGORIES, categories_of
from bertology.corpus.sentence import from_text

HEADER = "Lexical Semantics\tPredicate-Argument Structure\tLogic\tKnowledge\tDomain\tPremise\tHypothesis\tLabel\n"
SAMPLE = (
    HEADER
    + "\t\tNegation\t\tArtificial\tThe lamp is on.\tThe lamp is not on.\tcontradiction\n"
    + "Lexical entailment;Quantifiers\tCore args\t\tWorld knowledge\tNews\tAll owls fly.\tSome birds fly.\tentailment\n"
    + '\t\t\t\tReddit\t"Well," she said.\tShe was well.\tneutral\n'
)


@pytest.fixture
def sample(tmp_path: Path) -> Reading:
    return Reading(tmp_path, "diagnostic", "diagnostic-full.tsv")


def test_a_pair_may_belong_to_several_categories_or_to_none(sample: Reading) -> None:
    corpus = sample.read(SAMPLE)
    assert_surfaces(corpus)
    assert [item.label for item in corpus] == ["contradiction", "entailment", "neutral"]
    assert [item.kind for item in corpus] == ["pair"] * 3
    assert [categories_of(item) for item in corpus] == [
        {"logic": ("Negation",)},
        {
            "lexical semantics": ("Lexical entailment", "Quantifiers"),
            "predicate-argument structure": ("Core args",),
            "knowledge": ("World knowledge",),
        },
        {},
    ]
    assert [factors(item)["domain"] for item in corpus] == ["Artificial", "News", "Reddit"]
    assert corpus[1].parts[1].text == "Some birds fly."
    assert corpus[2].parts[0].text == '"Well," she said.'


def test_the_header_tells_the_format_whatever_the_order_of_columns(sample: Reading) -> None:
    assert read(sample.write(SAMPLE)).format == "diagnostic"
    rows = [line.split("\t")[::-1] for line in SAMPLE.splitlines()]
    turned = "\n".join("\t".join(row) for row in rows)
    assert sample.read(turned).items == sample.read(SAMPLE).items
    plain = "Premise\tHypothesis\tLabel\nA b.\tC d.\tneutral\n"
    assert read(sample.write(plain)).format == "pairs"


def test_items_of_other_forms_have_no_category() -> None:
    assert categories_of(Item((from_text("A."), from_text("B.")), "pair", "neutral")) == {}


def test_the_file_without_labels_is_refused_with_the_name_of_the_right_one(sample: Reading) -> None:
    sample.refused("index\tPremise\tHypothesis\n0\tA.\tB.\n", "diagnostic-full.tsv")
    sample.refused(HEADER.replace("\tLabel", "") + "\t\tNegation\t\tNews\tA.\tB.\n", "'label'")


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("\t\tNegation\t\tNews\tA.\tB.\n", "wrong column count"),
        ("\t\tNegation\t\tNews\t\tB.\tneutral\n", "missing premise"),
        ("\t\tNegation\t\tNews\tA.\t \tneutral\n", "missing hypothesis"),
        ("\t\tNegation\t\tNews\tA.\tB.\t\n", "missing label"),
        ("\t\tNegation\t\tNews\tA.\tB.\tmaybe\n", "unknown label"),
    ],
)
def test_a_broken_row_is_refused_or_counted(bad: str, reason: str, sample: Reading) -> None:
    sample.bad(SAMPLE + bad, reason, line=5, kept=3)


def test_names_that_would_break_the_source_are_kept_apart(sample: Reading) -> None:
    row = "Odd, = name; ;\t\t\t\tA;B\tA.\tB.\tneutral\n"
    (item,) = sample.read(HEADER + row)
    assert categories_of(item) == {"lexical semantics": ("Odd name",)}
    assert factors(item)["domain"] == "A B"


def test_the_official_names_are_33() -> None:
    assert [len(names) for names in CATEGORIES.values()] == [7, 12, 12, 2]
