"""Map part-of-speech tags and dependency relations between annotation schemes."""

from __future__ import annotations

from typing import Annotated, Literal

Subtypes = Literal["included", "separate", "merged"]
"""How the subtypes of a relation (`nsubj:pass`) are counted; see `relation_labels`."""
SubtypesOption = Annotated[
    Subtypes,
    "Subtypes of relations: `included` in their relation and also counted alone, `separate` (nsubj is without "
    "nsubj:pass, as in Stanford Dependencies), or `merged` (nsubj:pass counts only as nsubj).",
]

UNIVERSAL_TAGS: tuple[str, ...] = (
    "NOUN", "PROPN", "PRON", "VERB", "AUX", "ADJ", "ADV", "ADP", "DET", "NUM", "CCONJ", "SCONJ", "PART", "INTJ",
    "PUNCT", "SYM", "X",
)  # fmt: skip

_PENN: dict[str, str] = {
    "NN": "NOUN", "NNS": "NOUN", "NNP": "PROPN", "NNPS": "PROPN", "PRP": "PRON", "PRP$": "PRON", "WP": "PRON",
    "WP$": "PRON", "EX": "PRON", "VB": "VERB", "VBD": "VERB", "VBG": "VERB", "VBN": "VERB", "VBP": "VERB",
    "VBZ": "VERB", "MD": "AUX", "JJ": "ADJ", "JJR": "ADJ", "JJS": "ADJ", "RB": "ADV", "RBR": "ADV", "RBS": "ADV",
    "WRB": "ADV", "IN": "ADP", "RP": "ADP", "DT": "DET", "PDT": "DET", "WDT": "DET", "CD": "NUM", "CC": "CCONJ",
    "TO": "PART", "POS": "PART", "UH": "INTJ", "SYM": "SYM", "#": "SYM", "$": "SYM", "FW": "X", "LS": "X",
    ".": "PUNCT", ",": "PUNCT", ":": "PUNCT", "``": "PUNCT", "''": "PUNCT", '"': "PUNCT", "(": "PUNCT", ")": "PUNCT",
    "-LRB-": "PUNCT", "-RRB-": "PUNCT", "HYPH": "PUNCT", "NFP": "PUNCT", "ADD": "X", "GW": "X", "XX": "X",
}  # fmt: skip

_RELATIONS_BY_ROLE: dict[str, tuple[str, ...]] = {
    "subject": ("nsubj", "csubj", "nsubjpass", "csubjpass", "expl", "obl:agent", "agent"),
    "object": ("obj", "iobj", "dobj", "dative", "attr", "oprd"),
    "oblique": ("obl", "prep", "pobj", "npadvmod", "tmod"),
    "predicate": ("root",),
    "clause": ("ccomp", "xcomp", "advcl", "acl", "parataxis", "rcmod", "partmod", "pcomp", "relcl"),
    "adjective or adverb": ("amod", "advmod", "neg", "quantmod"),
    "noun modifier": ("nmod", "appos", "nummod", "num", "poss", "possessive"),
    "function word": ("aux", "auxpass", "cop", "mark", "det", "case", "cc", "clf", "prt", "predet", "preconj"),
    "conjunct": ("conj",),
    "part of a name or compound": ("compound", "flat", "fixed", "goeswith", "nn", "number", "mwe"),
    "punctuation": ("punct",),
    "other": (),
}
ROLES: tuple[str, ...] = tuple(_RELATIONS_BY_ROLE)
_ROLE_BY_RELATION = {relation: role for role, relations in _RELATIONS_BY_ROLE.items() for relation in relations}

_UNIVERSAL_BY_STANFORD: dict[str, str] = {
    "dobj": "obj", "nn": "compound", "num": "nummod", "poss": "nmod:poss", "prt": "compound:prt",
    "auxpass": "aux:pass", "nsubjpass": "nsubj:pass", "csubjpass": "csubj:pass", "rcmod": "acl:relcl", "mwe": "fixed",
    "predet": "det:predet", "preconj": "cc:preconj",
}  # fmt: skip
_STANFORD_BY_UNIVERSAL = {universal: stanford for stanford, universal in _UNIVERSAL_BY_STANFORD.items()}
_FURTHER_RELATIONS = frozenset(
    {"discourse", "vocative", "dislocated", "list", "orphan", "reparandum", "dep", "infmod", "advcl", "acomp", "abbrev"}
)

_NEGATIONS = frozenset({"neither", "nor", "not", "never", "none", "nothing", "nowhere", "cannot"})
_CONTRACTED_NOT = ("n't", "n’t")


def universal_tag(tag: str) -> str | None:
    """Return the universal tag of a universal or Penn Treebank tag, None for any other tag."""
    return tag if tag in UNIVERSAL_TAGS else _PENN.get(tag)


def grammatical_role(relation: str) -> str:
    """Return the grammatical role of a relation of Universal or Stanford Dependencies, ignoring subtypes."""
    base = relation.split(":")[0].lower()
    return _ROLE_BY_RELATION.get(relation.lower()) or _ROLE_BY_RELATION.get(base, "other")


def is_negation(word: str, morphology: str | None = None) -> bool:
    """Whether a word is a negation: of the closed class, a contracted *not*, or annotated with negative polarity."""
    lowered = word.lower()
    return lowered in _NEGATIONS or lowered.endswith(_CONTRACTED_NOT) or "Polarity=Neg" in (morphology or "").split("|")


def universal_relation(relation: str) -> str:
    """Return the Universal name of a Stanford relation whose edges are the same in both schemes; keep other names.

    The edges of prepositions differ: `prep` and `pobj` point in the opposite direction of `case` and `obl` or `nmod`.
    """
    return _UNIVERSAL_BY_STANFORD.get(relation, relation)


def stanford_relation(relation: str) -> str:
    """Return the Stanford name of a Universal relation whose edges are the same in both schemes; keep other names."""
    return _STANFORD_BY_UNIVERSAL.get(relation, relation)


def relation_labels(relation: str, subtypes: Subtypes = "included") -> tuple[str, ...]:
    """Return the names that a relation counts under: its own, and with subtypes `included` that of its supertype."""
    supertype = relation.split(":")[0]
    match subtypes:
        case "included":
            return (supertype, relation) if supertype != relation else (relation,)
        case "separate":
            return (relation,)
        case "merged":
            return (supertype,)


def is_relation(relation: str) -> bool:
    """Whether a relation is part of Universal or Stanford Dependencies, ignoring subtypes."""
    base = relation.split(":")[0].lower()
    return base in _ROLE_BY_RELATION or relation.lower() in _ROLE_BY_RELATION or base in _FURTHER_RELATIONS
