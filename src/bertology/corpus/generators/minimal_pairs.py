"""Minimal pairs for agreement and binding: an acceptable and an unacceptable sentence, one word apart.

Agreement (linzen2016, marvin2018): a subject, up to three nouns between it and the verb, which all have its number or
all have the other one, and one of four kinds of verb. Binding (marvin2018, warstadt2020): a reflexive that agrees with
its subject in gender or number, and a noun between them that matches the subject or the wrong pronoun; in `c_command`
it always matches the wrong one, from inside the subject ("the queen's brother hurt himself").

Both sides carry the marks `target` (where they differ), `antecedent` and `distractor`, determiner and noun together.
Factors: `paradigm` (agreement/prepositional, binding/gender ...; equally frequent), `structure`, `verb` (be, have, do,
present), `number`, `gender`, `intervening` (nouns between) and `attractors` (those that agree with the wrong word).
No verb whose plain form is also its past (`read`) is among the present ones: both sides would be acceptable.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

from bertology.corpus.corpus import Item
from bertology.corpus.generate import Stratum, balanced, generator, one_of
from bertology.corpus.phrases import Phrase, Token, listed, sequence, word, written
from bertology.corpus.sesame import NUMBERS, OTHER, ROLES, Number
from bertology.corpus.spaces import Space, arrangements, mapped

SUBJECTS: Mapping[Number, tuple[str, ...]] = {
    "singular": listed(
        "author guard pilot teacher farmer doctor child man woman thief lady boss student singer dancer nurse"
    ),
    "plural": listed(
        "authors guards pilots teachers farmers doctors children men women thieves ladies bosses students singers "
        "dancers nurses"
    ),
}
VERBS: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
    "be": ("is", "are", listed("tired happy late angry ready tall young famous")),
    "have": ("has", "have", listed("arrived left slept eaten moved smiled waited returned")),
    "do": ("does", "do", tuple(f"not {verb}" for verb in listed("sleep smile dance swim read complain travel agree"))),
}
"""Auxiliaries: the form after a singular subject, after a plural one, and what may follow."""
PRESENT = {
    "sleeps": "sleep", "smiles": "smile", "dances": "dance", "swims": "swim", "complains": "complain",
    "travels": "travel", "agrees": "agree", "waits": "wait", "laughs": "laugh", "sings": "sing", "watches": "watch",
}  # fmt: skip
WHEN = ("every day", "at night", "on Sundays", "in the garden", "with pleasure", "too often")
PREPOSITIONS = ("near", "behind", "beside", "opposite")
PAST = listed("liked helped admired followed met visited ignored praised")

PEOPLE: Mapping[tuple[str, Number], tuple[str, ...]] = {
    ("masculine", "singular"): listed("king prince monk actor waiter man boy wizard"),
    ("masculine", "plural"): listed("kings princes monks actors waiters men boys wizards"),
    ("feminine", "singular"): listed("queen princess nun actress waitress woman girl witch"),
    ("feminine", "plural"): listed("queens princesses nuns actresses waitresses women girls witches"),
}
RELATIVES = {"masculine": ("brother", "father", "uncle", "son", "nephew", "grandfather"),
             "feminine": ("sister", "mother", "aunt", "daughter", "niece", "grandmother")}  # fmt: skip
REFLEXIVES = {"masculine": "himself", "feminine": "herself"}
OTHER_GENDER = {"masculine": "feminine", "feminine": "masculine"}
REFLEXIVE_VERBS = listed("hurt praised blamed defended described admired hated trusted")
PATTERNS = ("prepositional", "object_relative", "subject_relative")
PARADIGMS = ("all", "agreement", "binding")


@generator("minimal_pairs", about="minimal pairs for agreement (0 to 3 attractors) and for binding of reflexives")
def minimal_pairs(*, paradigm: str = "all") -> list[Stratum]:
    """`paradigm`: agreement, binding or all of them; within it every paradigm is equally frequent."""
    one_of("paradigm", paradigm, PARADIGMS)
    agreement = [_agreement(structure) for structure in ("simple", *PATTERNS)]
    binding = [_binding("gender"), _binding("number"), _c_command()]
    return balanced(*(agreement if paradigm != "binding" else []), *(binding if paradigm != "agreement" else []))


def _agreement(structure: str) -> Iterator[Stratum]:
    """Every number, kind of verb and count of nouns between; these all have the subject's number or all the other."""
    depths = (0,) if structure == "simple" else (1, 2, 3)
    for number, verb, depth in product(NUMBERS, (*VERBS, "present"), depths):
        for other in (number, OTHER[number])[: 1 + bool(depth)]:
            factors = {
                "paradigm": f"agreement/{structure}",
                "structure": structure,
                "verb": verb,
                "number": number,
                "intervening": str(depth),
                "attractors": str(depth * (other != number)),
            }
            subject = _subject(structure, SUBJECTS[number], SUBJECTS[other], depth)
            yield Stratum(factors, _pairs(subject, *_verbs(verb, number)))


def _verbs(verb: str, number: Number) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """The right forms, the wrong ones in the same order, and what may follow."""
    if verb == "present":
        singular, plural, tails = tuple(PRESENT), tuple(PRESENT.values()), WHEN
    else:
        one, many, tails = VERBS[verb]
        singular, plural = (one,), (many,)
    return (singular, plural, tails) if number == "singular" else (plural, singular, tails)


def _pairs(
    subject: Space[Phrase], good: tuple[str, ...], wrong: tuple[str, ...], tails: tuple[str, ...]
) -> Space[Item]:
    """The subject with one of the good words in the acceptable sentence and its wrong partner in the other."""
    replaced = dict(zip(good, wrong, strict=True))
    space = sequence(subject, word(*good, role="target"), word(*tails))

    def pair(phrase: Phrase) -> Item:
        other = tuple(t._replace(text=replaced[t.text]) if t.role == "target" else t for t in phrase)
        return Item((written(phrase, ROLES), written(other, ROLES)), "minimal_pair")

    return mapped(space, pair)


def _subject(structure: str, heads: tuple[str, ...], others: tuple[str, ...], depth: int) -> Space[Phrase]:
    """A subject with `depth` nouns after its head, no noun twice; inner verbs are in the past, which shows no number.

    The two lists hold the same nouns in the same order, in the number or gender that each place asks for.
    """
    verbs = int(structure.endswith("relative"))

    def laid_out(parts: Phrase) -> Phrase:
        nouns, verb, links = parts[: depth + 1], parts[depth + 1 :][:verbs], parts[depth + 1 + verbs :]
        chain = [Token("the", "distractor"), nouns[-1]] if depth else []
        for noun, link in zip(reversed(nouns[1:-1]), links, strict=False):
            chain = [Token("the", "distractor"), noun, link, *chain]
        opening = {"simple": (), "prepositional": links[-1:]}.get(structure, (Token("that"),))
        inner = [*verb, *chain] if structure == "subject_relative" else [*chain, *verb]
        return (Token("the", "antecedent"), nouns[0], *opening, *inner)

    def named(places: tuple[int, ...]) -> Phrase:
        head, *rest = places
        return (Token(heads[head], "antecedent"), *(Token(others[place], "distractor") for place in rest))

    nouns = mapped(arrangements(range(len(heads)), depth + 1), named)
    fillers = [word(*PAST)] * verbs + [word(*PREPOSITIONS)] * (depth - verbs)
    return mapped(sequence(nouns, *fillers), laid_out)


def _binding(feature: str) -> Iterator[Stratum]:
    """A reflexive and its subject, with no noun between them, one like the subject, or one like the wrong pronoun."""
    kinds = [kind for kind in PEOPLE if feature == "number" or kind[1] == "singular"]
    for kind in kinds:
        wrong = _other(kind, feature)
        for structure in ("simple", *PATTERNS):
            for noun in (kind, wrong)[: 1 + (structure != "simple")]:
                subject = _subject(structure, PEOPLE[kind], PEOPLE[noun], int(structure != "simple"))
                yield _bound(f"binding/{feature}", structure, kind, wrong, subject, int(noun == wrong))


def _c_command() -> Iterator[Stratum]:
    """A noun inside the subject agrees with the wrong pronoun, but does not c-command it."""
    for gender, kin in RELATIVES.items():
        kind: tuple[str, Number] = (gender, "singular")
        for feature in ("gender", "number"):
            wrong = _other(kind, feature)
            head, inner = word(*(f"the {noun}" for noun in kin), role="antecedent"), PEOPLE[wrong]
            of = sequence(head, word("of"), word(*(f"the {noun}" for noun in inner), role="distractor"))
            yield _bound("binding/c_command", "of", kind, wrong, of, 1)
        owner = word(*(f"the {noun}'s" for noun in PEOPLE[_other(kind, "gender")]), role="distractor")
        possessive = sequence(owner, word(*kin, role="antecedent"))
        yield _bound("binding/c_command", "possessive", kind, _other(kind, "gender"), possessive, 1)


def _bound(
    paradigm: str,
    structure: str,
    kind: tuple[str, Number],
    wrong: tuple[str, Number],
    subject: Space[Phrase],
    other: int,
) -> Stratum:
    factors = {
        "paradigm": paradigm,
        "structure": structure,
        "gender": kind[0],
        "number": kind[1],
        "intervening": str(int(structure != "simple")),
        "attractors": str(other),
    }
    verb = sequence(subject, word(*REFLEXIVE_VERBS))
    return Stratum(factors, _pairs(verb, (_reflexive(kind),), (_reflexive(wrong),), ("",)))


def _reflexive(kind: tuple[str, Number]) -> str:
    return "themselves" if kind[1] == "plural" else REFLEXIVES[kind[0]]


def _other(kind: tuple[str, Number], feature: str) -> tuple[str, Number]:
    gender, number = kind
    return (OTHER_GENDER[gender], number) if feature == "gender" else (gender, OTHER[number])
