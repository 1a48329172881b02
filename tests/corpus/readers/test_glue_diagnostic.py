"""The GLUE diagnostic set: several categories per pair, several sub-types per category, malformed rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.corpus.checks import ReaderSample, assert_offsets_match

from bertology.corpus.example import Example
from bertology.corpus.read import read
from bertology.corpus.readers.glue_diagnostic import CATEGORIES, example_categories
from bertology.corpus.sentence import sentence_from_text

HEADER = "Lexical Semantics\tPredicate-Argument Structure\tLogic\tKnowledge\tDomain\tPremise\tHypothesis\tLabel\n"
SAMPLE = (
    HEADER
    + "\t\tNegation\t\tArtificial\tThe lamp is on.\tThe lamp is not on.\tcontradiction\n"
    + "Lexical entailment;Quantifiers\tCore args\t\tWorld knowledge\tNews\tAll owls fly.\tSome birds fly.\tentailment\n"
    + '\t\t\t\tReddit\t"Well," she said.\tShe was well.\tneutral\n'
)


@pytest.fixture
def sample(tmp_path: Path) -> ReaderSample:
    return ReaderSample(tmp_path, "glue_diagnostic", "diagnostic-full.tsv")


def test_a_pair_can_be_in_several_categories_or_in_none(sample: ReaderSample) -> None:
    corpus = sample.read(SAMPLE)
    assert_offsets_match(corpus)
    assert [example.label for example in corpus] == ["contradiction", "entailment", "neutral"]
    assert [example.kind for example in corpus] == ["pair"] * 3
    assert [example_categories(example) for example in corpus] == [
        {"logic": ("Negation",)},
        {
            "lexical semantics": ("Lexical entailment", "Quantifiers"),
            "predicate-argument structure": ("Core args",),
            "knowledge": ("World knowledge",),
        },
        {},
    ]
    assert [example.factors["domain"] for example in corpus] == ["Artificial", "News", "Reddit"]
    assert corpus[1].segments[1].text == "Some birds fly."
    assert corpus[2].segments[0].text == '"Well," she said.'


def test_the_header_determines_the_format_in_any_order_of_columns(sample: ReaderSample) -> None:
    assert read(sample.write(SAMPLE)).format == "glue_diagnostic"
    rows = [line.split("\t")[::-1] for line in SAMPLE.splitlines()]
    reordered = "\n".join("\t".join(row) for row in rows)
    assert sample.read(reordered).examples == sample.read(SAMPLE).examples
    plain = "Premise\tHypothesis\tLabel\nA b.\tC d.\tneutral\n"
    assert read(sample.write(plain)).format == "pairs"


def test_examples_of_other_corpora_have_no_category() -> None:
    assert example_categories(Example((sentence_from_text("A."), sentence_from_text("B.")), "pair", "neutral")) == {}


def test_a_file_without_labels_is_refused_with_the_name_of_the_right_file(sample: ReaderSample) -> None:
    sample.assert_refused("index\tPremise\tHypothesis\n0\tA.\tB.\n", "diagnostic-full.tsv")
    sample.assert_refused(HEADER.replace("\tLabel", "") + "\t\tNegation\t\tNews\tA.\tB.\n", "'label'")


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
def test_a_malformed_row_is_refused_or_counted(bad: str, reason: str, sample: ReaderSample) -> None:
    sample.assert_malformed(SAMPLE + bad, reason, line=5, n_examples=3)


def test_separators_are_removed_from_names(sample: ReaderSample) -> None:
    row = "Odd, = name; ;\t\t\t\tA;B\tA.\tB.\tneutral\n"
    (example,) = sample.read(HEADER + row)
    assert example_categories(example) == {"lexical semantics": ("Odd name",)}
    assert example.factors["domain"] == "A B"


def test_there_are_33_official_sub_types() -> None:
    assert [len(names) for names in CATEGORIES.values()] == [7, 12, 12, 2]
