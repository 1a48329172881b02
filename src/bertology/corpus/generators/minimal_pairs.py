"""Minimal pairs for agreement and binding: an acceptable and an unacceptable sentence that differ in one word.

Agreement (linzen2016, marvin2018): a subject, up to three nouns between it and the verb, all of the same number as the
subject or all of the other, and one of four kinds of verb. Binding (marvin2018, warstadt2020): a reflexive that agrees
with its subject in gender or number, and an intervening noun that agrees with the subject or with the wrong pronoun; in
`c_command` the noun is inside the subject and always agrees with the wrong one ("the queen's brother hurt himself").

Both sentences have the marked words `target` (where they differ), `antecedent` and `distractor`, determiner and noun
together. Factors: `paradigm` (agreement/prepositional, binding/gender ...; equally frequent), `structure`, `verb` (be,
have, do, present), `number`, `gender`, `intervening` (nouns between subject and target) and `attractors` (intervening
nouns that agree with the wrong form). Present-tense verbs exclude those whose base form is also their past (`read`):
both sentences would be acceptable.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Literal

from bertology.corpus.example import Example
from bertology.corpus.generate import Stratum, balance_strata, generator
from bertology.corpus.open_sesame_grammar import NUMBERS, OPPOSITE_NUMBER, ROLES, GrammaticalNumber
from bertology.corpus.phrase_spaces import Phrase, PhraseWord, phrases, sequence, split_word_list, to_natural_sentence
from bertology.corpus.sample_spaces import SampleSpace, map_space, permutations

SUBJECTS: Mapping[GrammaticalNumber, tuple[str, ...]] = {
    "singular": split_word_list(
        "author guard pilot teacher farmer doctor child man woman thief lady boss student singer dancer nurse"
    ),
    "plural": split_word_list(
        "authors guards pilots teachers farmers doctors children men women thieves ladies bosses students singers "
        "dancers nurses"
    ),
}
VERBS: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
    "be": ("is", "are", split_word_list("tired happy late angry ready tall young famous")),
    "have": ("has", "have", split_word_list("arrived left slept eaten moved smiled waited returned")),
    "do": (
        "does",
        "do",
        tuple(f"not {verb}" for verb in split_word_list("sleep smile dance swim read complain travel agree")),
    ),
}
"""Auxiliary -> its singular form, its plural form, and possible continuations."""
PRESENT_VERBS = {
    "sleeps": "sleep", "smiles": "smile", "dances": "dance", "swims": "swim", "complains": "complain",
    "travels": "travel", "agrees": "agree", "waits": "wait", "laughs": "laugh", "sings": "sing", "watches": "watch",
}  # fmt: skip
ADVERBIALS = ("every day", "at night", "on Sundays", "in the garden", "with pleasure", "too often")
PREPOSITIONS = ("near", "behind", "beside", "opposite")
PAST_VERBS = split_word_list("liked helped admired followed met visited ignored praised")

PEOPLE: Mapping[tuple[str, GrammaticalNumber], tuple[str, ...]] = {
    ("masculine", "singular"): split_word_list("king prince monk actor waiter man boy wizard"),
    ("masculine", "plural"): split_word_list("kings princes monks actors waiters men boys wizards"),
    ("feminine", "singular"): split_word_list("queen princess nun actress waitress woman girl witch"),
    ("feminine", "plural"): split_word_list("queens princesses nuns actresses waitresses women girls witches"),
}
KINSHIP_NOUNS = {"masculine": ("brother", "father", "uncle", "son", "nephew", "grandfather"),
             "feminine": ("sister", "mother", "aunt", "daughter", "niece", "grandmother")}  # fmt: skip
REFLEXIVES = {"masculine": "himself", "feminine": "herself"}
OPPOSITE_GENDER = {"masculine": "feminine", "feminine": "masculine"}
REFLEXIVE_VERBS = split_word_list("hurt praised blamed defended described admired hated trusted")
PATTERNS = ("prepositional", "object_relative", "subject_relative")


@generator("minimal_pairs", description="minimal pairs for agreement (0 to 3 attractors) and reflexive binding")
def minimal_pair_strata(*, paradigm: Literal["all", "agreement", "binding"] = "all") -> list[Stratum]:
    """Return the strata of the paradigms of agreement, binding or all, equally frequent."""
    agreement = [_agreement_strata(structure) for structure in ("simple", *PATTERNS)]
    binding = [_binding_strata("gender"), _binding_strata("number"), _c_command_strata()]
    return balance_strata(*(agreement if paradigm != "binding" else []), *(binding if paradigm != "agreement" else []))


def _agreement_strata(structure: str) -> Iterator[Stratum]:
    """Cross number, kind of verb, and number and agreement of the intervening nouns."""
    depths = (0,) if structure == "simple" else (1, 2, 3)
    for number, verb, depth in product(NUMBERS, (*VERBS, "present"), depths):
        for distractor_number in (number, OPPOSITE_NUMBER[number])[: 1 + bool(depth)]:
            factors = {
                "paradigm": f"agreement/{structure}",
                "structure": structure,
                "verb": verb,
                "number": number,
                "intervening": str(depth),
                "attractors": str(depth * (distractor_number != number)),
            }
            subject = _subject(structure, SUBJECTS[number], SUBJECTS[distractor_number], depth)
            yield Stratum(factors, _pairs(subject, *_verbs(verb, number)))


def _verbs(verb: str, number: GrammaticalNumber) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return the correct forms, the wrong forms in the same order, and possible continuations."""
    if verb == "present":
        singular, plural, tails = tuple(PRESENT_VERBS), tuple(PRESENT_VERBS.values()), ADVERBIALS
    else:
        singular_form, plural_form, tails = VERBS[verb]
        singular, plural = (singular_form,), (plural_form,)
    return (singular, plural, tails) if number == "singular" else (plural, singular, tails)


def _pairs(
    subject: SampleSpace[Phrase], acceptable: tuple[str, ...], unacceptable: tuple[str, ...], tails: tuple[str, ...]
) -> SampleSpace[Example]:
    """Return pairs with one of the acceptable words, and its unacceptable counterpart in the second sentence."""
    counterparts = dict(zip(acceptable, unacceptable, strict=True))
    space = sequence(subject, phrases(*acceptable, role="target"), phrases(*tails))

    def pair(phrase: Phrase) -> Example:
        wrong = tuple(w._replace(text=counterparts[w.text]) if w.role == "target" else w for w in phrase)
        return Example((to_natural_sentence(phrase, ROLES), to_natural_sentence(wrong, ROLES)), "minimal_pair")

    return map_space(space, pair)


def _subject(
    structure: str, subjects: tuple[str, ...], distractors: tuple[str, ...], depth: int
) -> SampleSpace[Phrase]:
    """Return subjects with `depth` different nouns after the head noun; inner verbs are in the past, without number.

    `subjects` and `distractors` are the same nouns in the same order, in the number or gender of each role.
    """
    n_verbs = int(structure.endswith("relative"))

    def arrange(words: Phrase) -> Phrase:
        nouns, verb, links = words[: depth + 1], words[depth + 1 :][:n_verbs], words[depth + 1 + n_verbs :]
        chain = [PhraseWord("the", "distractor"), nouns[-1]] if depth else []
        for noun, link in zip(reversed(nouns[1:-1]), links, strict=False):
            chain = [PhraseWord("the", "distractor"), noun, link, *chain]
        opening = {"simple": (), "prepositional": links[-1:]}.get(structure, (PhraseWord("that"),))
        inner = [*verb, *chain] if structure == "subject_relative" else [*chain, *verb]
        return (PhraseWord("the", "antecedent"), nouns[0], *opening, *inner)

    def choose_nouns(indices: tuple[int, ...]) -> Phrase:
        subject, *rest = indices
        return (
            PhraseWord(subjects[subject], "antecedent"),
            *(PhraseWord(distractors[index], "distractor") for index in rest),
        )

    nouns = map_space(permutations(range(len(subjects)), depth + 1), choose_nouns)
    fillers = [phrases(*PAST_VERBS)] * n_verbs + [phrases(*PREPOSITIONS)] * (depth - n_verbs)
    return map_space(sequence(nouns, *fillers), arrange)


def _binding_strata(feature: str) -> Iterator[Stratum]:
    """Cross subjects with no intervening noun, one that agrees with it, or one that agrees with the wrong pronoun."""
    kinds = [kind for kind in PEOPLE if feature == "number" or kind[1] == "singular"]
    for kind in kinds:
        wrong = _opposite_kind(kind, feature)
        for structure in ("simple", *PATTERNS):
            for distractor in (kind, wrong)[: 1 + (structure != "simple")]:
                subject = _subject(structure, PEOPLE[kind], PEOPLE[distractor], int(structure != "simple"))
                yield _binding_stratum(f"binding/{feature}", structure, kind, wrong, subject, int(distractor == wrong))


def _c_command_strata() -> Iterator[Stratum]:
    """Return subjects that contain a noun which agrees with the wrong pronoun but does not c-command it."""
    for gender, kin in KINSHIP_NOUNS.items():
        kind: tuple[str, GrammaticalNumber] = (gender, "singular")
        for feature in ("gender", "number"):
            wrong = _opposite_kind(kind, feature)
            antecedent = phrases(*(f"the {noun}" for noun in kin), role="antecedent")
            distractor = phrases(*(f"the {noun}" for noun in PEOPLE[wrong]), role="distractor")
            subject = sequence(antecedent, phrases("of"), distractor)
            yield _binding_stratum("binding/c_command", "of", kind, wrong, subject, 1)
        wrong = _opposite_kind(kind, "gender")
        possessor = phrases(*(f"the {noun}'s" for noun in PEOPLE[wrong]), role="distractor")
        subject = sequence(possessor, phrases(*kin, role="antecedent"))
        yield _binding_stratum("binding/c_command", "possessive", kind, wrong, subject, 1)


def _binding_stratum(
    paradigm: str,
    structure: str,
    kind: tuple[str, GrammaticalNumber],
    wrong_kind: tuple[str, GrammaticalNumber],
    subject: SampleSpace[Phrase],
    n_attractors: int,
) -> Stratum:
    factors = {
        "paradigm": paradigm,
        "structure": structure,
        "gender": kind[0],
        "number": kind[1],
        "intervening": str(int(structure != "simple")),
        "attractors": str(n_attractors),
    }
    verb = sequence(subject, phrases(*REFLEXIVE_VERBS))
    return Stratum(factors, _pairs(verb, (_reflexive(kind),), (_reflexive(wrong_kind),), ("",)))


def _reflexive(kind: tuple[str, GrammaticalNumber]) -> str:
    return "themselves" if kind[1] == "plural" else REFLEXIVES[kind[0]]


def _opposite_kind(kind: tuple[str, GrammaticalNumber], feature: str) -> tuple[str, GrammaticalNumber]:
    gender, number = kind
    return (OPPOSITE_GENDER[gender], number) if feature == "gender" else (gender, OPPOSITE_NUMBER[number])
