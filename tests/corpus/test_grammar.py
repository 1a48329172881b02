"""Word classes and roles are told under any of their names."""

from __future__ import annotations

import pytest

from bertology.corpus.grammar import (
    ROLES,
    UNIVERSAL_TAGS,
    is_relation,
    negates,
    role,
    stanford_relation,
    universal_relation,
    universal_tag,
)


@pytest.mark.parametrize(("tag", "universal"), [("NOUN", "NOUN"), ("NNS", "NOUN"), ("PRP$", "PRON"), ("VBZ", "VERB")])
def test_tags(tag: str, universal: str) -> None:
    assert universal_tag(tag) == universal


def test_unknown_tags_are_not_guessed() -> None:
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
def test_roles(relation: str, expected: str) -> None:
    assert role(relation) == expected
    assert expected in ROLES


def test_negation() -> None:
    assert all(map(negates, ("not", "Never", "n't", "don't", "won’t", "nothing")))
    assert not any(map(negates, ("another", "knot", "no", "ant")))
    assert negates("ne", "Polarity=Neg|PronType=Ind")
    assert not negates("no", "PronType=Neg")


@pytest.mark.parametrize(
    ("universal", "stanford"), [("obj", "dobj"), ("nmod:poss", "poss"), ("aux:pass", "auxpass"), ("compound", "nn")]
)
def test_relations_with_the_same_edges_have_two_names(universal: str, stanford: str) -> None:
    assert universal_relation(stanford) == universal
    assert stanford_relation(universal) == stanford


def test_relations_whose_edges_differ_keep_their_name() -> None:
    assert [universal_relation(name) for name in ("prep", "pobj", "det")] == ["prep", "pobj", "det"]
    assert [stanford_relation(name) for name in ("case", "obl", "det")] == ["case", "obl", "det"]


def test_known_relations() -> None:
    assert all(is_relation(name) for name in ("nsubj", "nsubj:pass", "acl:relcl", "prep", "discourse", "obl:unmarked"))
    assert not is_relation("colour")
