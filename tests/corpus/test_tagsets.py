"""Tags and relations of different annotation schemes are mapped to each other."""

from __future__ import annotations

from typing import get_args

import pytest

from bertology.corpus.tagsets import (
    ROLES,
    UNIVERSAL_TAGS,
    Subtypes,
    grammatical_role,
    is_negation,
    is_relation,
    relation_labels,
    stanford_relation,
    universal_relation,
    universal_tag,
)


@pytest.mark.parametrize(("tag", "universal"), [("NOUN", "NOUN"), ("NNS", "NOUN"), ("PRP$", "PRON"), ("VBZ", "VERB")])
def test_the_universal_tag_of_a_tag(tag: str, universal: str) -> None:
    assert universal_tag(tag) == universal


def test_an_unknown_tag_has_no_universal_tag() -> None:
    assert universal_tag("NN-X") is None
    assert len(UNIVERSAL_TAGS) == len(set(UNIVERSAL_TAGS)) == 17


@pytest.mark.parametrize(
    ("relation", "expected"),
    [
        ("nsubj", "subject"),
        ("nsubj:pass", "subject"),
        ("obl:agent", "subject"),
        ("obl", "oblique"),
        ("obl:tmod", "oblique"),
        ("dobj", "object"),
        ("ROOT", "predicate"),
        ("acl:relcl", "clause"),
        ("nmod:poss", "noun modifier"),
        ("aux:pass", "function word"),
        ("vocative", "other"),
    ],
)
def test_the_grammatical_role_of_a_relation(relation: str, expected: str) -> None:
    assert grammatical_role(relation) == expected
    assert expected in ROLES


def test_negations_are_recognised() -> None:
    assert all(map(is_negation, ("not", "Never", "n't", "don't", "won’t", "nothing")))
    assert not any(map(is_negation, ("another", "knot", "no", "ant")))
    assert is_negation("ne", "Polarity=Neg|PronType=Ind")
    assert not is_negation("no", "PronType=Neg")


@pytest.mark.parametrize(
    ("universal", "stanford"), [("obj", "dobj"), ("nmod:poss", "poss"), ("aux:pass", "auxpass"), ("compound", "nn")]
)
def test_relations_with_the_same_edges_have_two_names(universal: str, stanford: str) -> None:
    assert universal_relation(stanford) == universal
    assert stanford_relation(universal) == stanford


def test_relations_whose_edges_differ_keep_their_name() -> None:
    assert [universal_relation(name) for name in ("prep", "pobj", "det")] == ["prep", "pobj", "det"]
    assert [stanford_relation(name) for name in ("case", "obl", "det")] == ["case", "obl", "det"]


def test_relations_are_recognised() -> None:
    assert all(is_relation(name) for name in ("nsubj", "nsubj:pass", "acl:relcl", "prep", "discourse", "obl:unmarked"))
    assert not is_relation("colour")


def test_subtypes_count_under_their_relation_alone_or_both() -> None:
    assert relation_labels("nsubj:pass") == ("nsubj", "nsubj:pass")
    assert relation_labels("nsubj:pass", "separate") == ("nsubj:pass",)
    assert relation_labels("nsubj:pass", "merged") == ("nsubj",)
    assert {relation_labels("nsubj", subtypes) for subtypes in get_args(Subtypes)} == {("nsubj",)}
