"""Dependency relations in words: `obj` from the dependent to the governor is "object → verb"."""

from __future__ import annotations

from bertology.analyses.head_selection.functions import TO_DEPENDENT, TO_GOVERNOR

ALL_RELATIONS = "all but root and punct"
RELATION_ENDS: dict[str, tuple[str, str]] = {
    "acl": ("clause", "noun"),
    "acl:relcl": ("relative clause", "noun"),
    "advcl": ("adverbial clause", "verb"),
    "advmod": ("adverb", "modified word"),
    "amod": ("adjective", "noun"),
    "appos": ("apposition", "noun"),
    "aux": ("auxiliary", "verb"),
    "aux:pass": ("passive auxiliary", "verb"),
    "case": ("preposition", "noun"),
    "cc": ("conjunction", "conjunct"),
    "ccomp": ("clausal complement", "verb"),
    "compound": ("compound part", "noun"),
    "compound:prt": ("particle", "verb"),
    "conj": ("conjunct", "first conjunct"),
    "cop": ("copula", "predicate"),
    "csubj": ("clausal subject", "verb"),
    "det": ("determiner", "noun"),
    "expl": ("expletive", "verb"),
    "iobj": ("indirect object", "verb"),
    "mark": ("subordinator", "verb"),
    "nmod": ("noun modifier", "noun"),
    "nmod:poss": ("possessor", "noun"),
    "nsubj": ("subject", "verb"),
    "nsubj:pass": ("passive subject", "verb"),
    "nummod": ("number", "noun"),
    "obj": ("object", "verb"),
    "obl": ("oblique", "verb"),
    "punct": ("punctuation", "governor"),
    "xcomp": ("open complement", "verb"),
    ALL_RELATIONS: ("dependent", "governor"),
}
"""Dependent and governor of relations of Universal Dependencies, as a grammar names their usual words."""


def relation_name(relation: str, direction: str) -> str:
    """The relation as an arrow from the attending to the attended word."""
    dependent, governor = RELATION_ENDS.get(relation, (relation, "governor"))
    if direction == TO_GOVERNOR:
        return f"{dependent} → {governor}"
    return f"{governor} → {dependent}" if direction == TO_DEPENDENT else f"{relation}, {direction}"


def function_name(function: str) -> str:
    """A function of a head; a relation with its direction (`obj, dependent to governor`) becomes an arrow."""
    relation, comma, direction = function.rpartition(", ")
    return relation_name(relation, direction) if comma else function
