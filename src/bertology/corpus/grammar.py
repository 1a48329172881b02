"""Word classes and grammatical roles under the names different annotations give them."""

from __future__ import annotations

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

_ROLES: dict[str, tuple[str, ...]] = {
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
ROLES: tuple[str, ...] = tuple(_ROLES)
_ROLE_OF = {relation: role for role, relations in _ROLES.items() for relation in relations}

_UNIVERSAL_OF: dict[str, str] = {
    "dobj": "obj", "nn": "compound", "num": "nummod", "poss": "nmod:poss", "prt": "compound:prt",
    "auxpass": "aux:pass", "nsubjpass": "nsubj:pass", "csubjpass": "csubj:pass", "rcmod": "acl:relcl", "mwe": "fixed",
    "predet": "det:predet", "preconj": "cc:preconj",
}  # fmt: skip
_STANFORD_OF = {universal: stanford for stanford, universal in _UNIVERSAL_OF.items()}
_FURTHER_RELATIONS = frozenset(
    {"discourse", "vocative", "dislocated", "list", "orphan", "reparandum", "dep", "infmod", "advcl", "acomp", "abbrev"}
)

_NEGATIONS = frozenset({"neither", "nor", "not", "never", "none", "nothing", "nowhere", "cannot"})
_NOT = ("n't", "n’t")


def universal_tag(tag: str) -> str | None:
    """The universal tag of a universal or Penn Treebank tag; None where it is neither."""
    return tag if tag in UNIVERSAL_TAGS else _PENN.get(tag)


def role(relation: str) -> str:
    """The role of a word by its relation to its head, from Universal or Stanford Dependencies; subtypes go along."""
    base = relation.split(":")[0].lower()
    return _ROLE_OF.get(relation.lower()) or _ROLE_OF.get(base, "other")


def negates(word: str, features: str | None = None) -> bool:
    """Whether a word negates: one of the closed class, a contracted *not*, or annotated with negative polarity."""
    lowered = word.lower()
    return lowered in _NEGATIONS or lowered.endswith(_NOT) or "Polarity=Neg" in (features or "").split("|")


def universal_relation(relation: str) -> str:
    """The Universal name of a Stanford relation that has the same edges under both; others stay as they are.

    Prepositions and their objects do not: `prep` and `pobj` hang the other way round from `case` and `obl` or `nmod`.
    """
    return _UNIVERSAL_OF.get(relation, relation)


def stanford_relation(relation: str) -> str:
    """The Stanford name of a Universal relation that has the same edges under both; others stay as they are."""
    return _STANFORD_OF.get(relation, relation)


def is_relation(relation: str) -> bool:
    """Whether a relation is one of Universal or Stanford Dependencies, subtypes included."""
    base = relation.split(":")[0].lower()
    return base in _ROLE_OF or relation.lower() in _ROLE_OF or base in _FURTHER_RELATIONS
