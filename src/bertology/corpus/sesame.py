"""Open Sesame's grammar: determiners, animals, auxiliaries, prepositional phrases and relative clauses (lin2019).

The structures and closed word lists are the published ones, with three differences. `fish`, whose plural looks like
its singular, is replaced, so that every noun shows its number. A noun has at most `ADJECTIVES` adjectives, where the
published grammar sets no limit, so that the sentences can be counted; as there, one more is twice as likely as none.
Sentences are lower case without punctuation, words between blanks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from bertology.corpus.corpus import Item
from bertology.corpus.phrases import Phrase, listed, marked, sequence, word
from bertology.corpus.spaces import Space, either, mapped

Number = Literal["singular", "plural"]
NUMBERS: tuple[Number, Number] = ("singular", "plural")
OTHER: Mapping[Number, Number] = {"singular": "plural", "plural": "singular"}
ROLES = ("target", "antecedent", "distractor")

ADJECTIVES = 6
ANIMALS: Mapping[Number, tuple[str, ...]] = {
    "singular": listed("bird bee ant duck lion dog tiger worm horse cat bear wolf mouse"),
    "plural": listed("birds bees ants ducks lions dogs tigers worms horses cats bears wolves mice"),
}
POSSESSIVES = listed("my your our her")
MODALS = listed("can will would could")
INFLECTED: Mapping[Number, str] = {"singular": "does", "plural": "do"}
INTRANSITIVE = listed("cry smile sleep swim wait move change read eat")
TRANSITIVE = listed("dress kick hit hurt clean love accept remember comfort")
PREPOSITIONS = listed("around near with upon by behind above below")
RELATIVES = ("who", "that")
QUALITIES = listed("big small old young bad good hot cold new little")

determiner = word("the", "some", *POSSESSIVES)
noun = word(*ANIMALS["singular"], *ANIMALS["plural"])
modal = word(*MODALS)
intransitive = word(*INTRANSITIVE)
transitive = word(*TRANSITIVE)
preposition = word(*PREPOSITIONS)
relative = word(*RELATIVES)

RELATIVE_CLAUSES = ("intransitive_relative", "object_relative", "subject_relative")
MODIFIERS = ("plain", "prepositional", *RELATIVE_CLAUSES)


def adjectives() -> Space[Phrase]:
    """No adjective or up to `ADJECTIVES`, each more two thirds as likely."""
    quality = word(*QUALITIES)
    options = [(2**n * 3 ** (ADJECTIVES - n), sequence(*[quality] * n)) for n in range(ADJECTIVES + 1)]
    return either(*options)


def nominal() -> Space[Phrase]:
    """A noun with its adjectives."""
    return sequence(adjectives(), noun)


def modifiers() -> dict[str, Space[Phrase]]:
    """What may follow a noun: nothing, a prepositional phrase, or one of three relative clauses."""
    other = sequence(determiner, nominal())
    return {
        "plain": sequence(),
        "prepositional": sequence(preposition, other),
        "intransitive_relative": sequence(relative, modal, intransitive),
        "object_relative": sequence(relative, other, modal, transitive),
        "subject_relative": sequence(relative, modal, transitive, other),
    }


def objects() -> dict[str, Space[Phrase]]:
    """What may follow a transitive verb: an object with any modifier."""
    return {name: sequence(determiner, nominal(), after) for name, after in modifiers().items()}


def predicates(auxiliary: Space[Phrase]) -> dict[str, tuple[int, Space[Phrase]]]:
    """Verb phrases with their weights by the object's modifier: half of them have no object (`none`)."""
    weights = {"plain": 6, "prepositional": 6} | dict.fromkeys(RELATIVE_CLAUSES, 2)
    with_object = {name: (weights[name], sequence(auxiliary, transitive, object)) for name, object in objects().items()}
    return {"none": (18, sequence(auxiliary, intransitive))} | with_object


def item(phrase: Phrase, label: str | None = None, roles: tuple[str, ...] = ROLES) -> Item:
    """The phrase as a sentence with its marks."""
    return Item((marked(phrase, roles),), label=label)


def items(space: Space[Phrase], label: str | None = None, roles: tuple[str, ...] = ROLES) -> Space[Item]:
    """A space of phrases as a space of items."""
    return mapped(space, lambda phrase: item(phrase, label, roles))
