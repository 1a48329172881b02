"""The grammar and design of Open Sesame: determiners, animals, auxiliaries, prepositions, relative clauses (lin2019).

The structures and closed word lists are the published ones, with three differences. `fish`, whose plural equals its
singular, is replaced, so that every noun shows its number. A noun has at most `MAX_ADJECTIVES` adjectives, where the
published grammar has no limit, so that sentences can be counted; as published, each further adjective has a
probability of two thirds. Sentences are in lower case without punctuation, with words separated by spaces.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from bertology.corpus.example import Example
from bertology.corpus.phrase_spaces import Phrase, phrases, sequence, split_word_list, to_marked_sentence
from bertology.corpus.sample_spaces import SampleSpace, map_space, union

GrammaticalNumber = Literal["singular", "plural"]
NUMBERS: tuple[GrammaticalNumber, GrammaticalNumber] = ("singular", "plural")
OPPOSITE_NUMBER: Mapping[GrammaticalNumber, GrammaticalNumber] = {"singular": "plural", "plural": "singular"}
ROLES = ("target", "antecedent", "distractor")

AGREEMENT_CELLS = {
    f"agr.{cell}": condition
    for condition, cells in {
        "A0": (0, 1, 2, 3),
        "A1": (4, 5, 10, 11),
        "A2": (6, 7, 8, 9),
        "A3": (12, 13, 18, 19),
        "A4": (14, 15, 16, 17),
    }.items()
    for cell in cells
}
"""Published file of each cell of the design -> its condition in table 2 of the paper (lin2019)."""
REFLEXIVE_CELLS = {f"refl.{number}": f"R{number}" for number in range(9)}

MAX_ADJECTIVES = 6
ANIMALS: Mapping[GrammaticalNumber, tuple[str, ...]] = {
    "singular": split_word_list("bird bee ant duck lion dog tiger worm horse cat bear wolf mouse"),
    "plural": split_word_list("birds bees ants ducks lions dogs tigers worms horses cats bears wolves mice"),
}
POSSESSIVES = split_word_list("my your our her")
MODALS = split_word_list("can will would could")
INFLECTED_AUXILIARY: Mapping[GrammaticalNumber, str] = {"singular": "does", "plural": "do"}
INTRANSITIVE = split_word_list("cry smile sleep swim wait move change read eat")
TRANSITIVE = split_word_list("dress kick hit hurt clean love accept remember comfort")
PREPOSITIONS = split_word_list("around near with upon by behind above below")
RELATIVE_PRONOUNS = ("who", "that")
QUALITIES = split_word_list("big small old young bad good hot cold new little")

determiner = phrases("the", "some", *POSSESSIVES)
noun = phrases(*ANIMALS["singular"], *ANIMALS["plural"])
modal = phrases(*MODALS)
intransitive = phrases(*INTRANSITIVE)
transitive = phrases(*TRANSITIVE)
preposition = phrases(*PREPOSITIONS)
relative = phrases(*RELATIVE_PRONOUNS)

RELATIVE_CLAUSES = ("intransitive_relative", "object_relative", "subject_relative")
MODIFIERS = ("plain", "prepositional", *RELATIVE_CLAUSES)


def adjectives() -> SampleSpace[Phrase]:
    """Return sequences of 0 to `MAX_ADJECTIVES` adjectives, each length two thirds as likely as the one below."""
    quality = phrases(*QUALITIES)
    options = [(2**n * 3 ** (MAX_ADJECTIVES - n), sequence(*[quality] * n)) for n in range(MAX_ADJECTIVES + 1)]
    return union(*options)


def nominal() -> SampleSpace[Phrase]:
    """Return nouns with their adjectives."""
    return sequence(adjectives(), noun)


def modifiers() -> dict[str, SampleSpace[Phrase]]:
    """Return the modifiers that can follow a noun: none, a prepositional phrase, or three kinds of relative clause."""
    noun_phrase = sequence(determiner, nominal())
    return {
        "plain": sequence(),
        "prepositional": sequence(preposition, noun_phrase),
        "intransitive_relative": sequence(relative, modal, intransitive),
        "object_relative": sequence(relative, noun_phrase, modal, transitive),
        "subject_relative": sequence(relative, modal, transitive, noun_phrase),
    }


def objects() -> dict[str, SampleSpace[Phrase]]:
    """Return objects of transitive verbs by their modifier."""
    return {name: sequence(determiner, nominal(), modifier) for name, modifier in modifiers().items()}


def predicates(auxiliary: SampleSpace[Phrase]) -> dict[str, tuple[int, SampleSpace[Phrase]]]:
    """Return weights and verb phrases by the modifier of the object; half of them have no object (`none`)."""
    weights = {"plain": 6, "prepositional": 6} | dict.fromkeys(RELATIVE_CLAUSES, 2)
    with_object = {name: (weights[name], sequence(auxiliary, transitive, object)) for name, object in objects().items()}
    return {"none": (18, sequence(auxiliary, intransitive))} | with_object


def to_examples(
    space: SampleSpace[Phrase], label: str | None = None, roles: tuple[str, ...] = ROLES
) -> SampleSpace[Example]:
    """Convert a space of phrases to a space of examples with marked words."""
    return map_space(space, lambda phrase: Example((to_marked_sentence(phrase, roles),), label=label))
