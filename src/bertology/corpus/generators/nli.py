"""Template-generated NLI pairs in which neither premise nor hypothesis alone reveals the label.

A premise states three facts about three people or groups: one that entails the form of the hypothesis, one neutral to
it and one that contradicts it; the hypothesis is about one of the three. Premises, hypotheses and their shared words
thus have the same distribution under all labels: only both together determine it. Quantifiers and numerals have their
logical meaning ("at least two" does not exclude "all"). Factor: `phenomenon`; all phenomena are equally frequent.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from bertology.corpus.example import Example
from bertology.corpus.generate import Stratum, generator
from bertology.corpus.phrase_spaces import split_word_list
from bertology.corpus.sample_spaces import SampleSpace, map_space, permutations, product, uniform
from bertology.corpus.sentence import sentence_from_text

LABELS = ("entailment", "neutral", "contradiction")

NAMES = split_word_list(
    "Anna Paul Mary John Laura Peter Susan David Emma Frank Julia Mark Helen George Alice Robert Clara Simon Nora Henry"
)
GROUPS = split_word_list(
    "boys girls teachers nurses drivers dancers singers farmers guests sailors pilots waiters children women men"
)
KINDS = {
    "flower": ("rose", "tulip", "daisy", "lily"),
    "tool": ("hammer", "saw", "wrench", "axe"),
    "bird": ("parrot", "owl", "goose", "canary"),
    "vehicle": ("bicycle", "truck", "van", "motorcycle"),
    "musical instrument": ("violin", "piano", "trumpet", "oboe"),
    "garment": ("shirt", "coat", "skirt", "apron"),
}
QUALITIES = ("old", "beautiful", "expensive", "unusual")
ACTIVITIES = {
    "danced": "dance", "sang": "sing", "cooked": "cook", "swam": "swim", "slept": "sleep", "worked": "work",
    "laughed": "laugh", "left": "leave",
}  # fmt: skip
DEEDS = {
    "bought a lamp": "buy a lamp", "called an uncle": "call an uncle", "locked the door": "lock the door",
    "fed the geese": "feed the geese", "closed the window": "close the window", "paid the bill": "pay the bill",
    "washed an apron": "wash an apron", "sold the house": "sell the house", "wrote a letter": "write a letter",
}  # fmt: skip
POSITIVE_IMPLICATIVES = ("did not forget to", "remembered to", "managed to", "did not fail to")
NON_IMPLICATIVES = ("wanted to", "hoped to", "planned to", "did not promise to")
NEGATIVE_IMPLICATIVES = ("forgot to", "did not remember to", "did not manage to", "failed to")
"""Verbs that imply the event, leave it open, or imply its negation; each list has negated and plain forms."""
QUANTIFIERS = {
    "All": (("Each", "Every one"), ("At least two", "At least one"), ("None", "Not all", "Only one")),
    "Most": (("All", "Almost all", "Each"), ("At least two", "At least one"), ("None", "Hardly any", "Only one")),
    "Some": (("All", "Most", "Several"), ("At most five", "No more than six"), ("None", "Not one")),
    "None": (("Not one", "Not a single one"), ("At most two", "No more than three"), ("Some", "Most", "All")),
}
"""Quantifier of the hypothesis -> quantifiers that entail it, are neutral to it, and contradict it."""
TRANSITIVE_VERBS = {
    "thanked": "thank", "called": "call", "helped": "help", "visited": "visit", "followed": "follow",
    "invited": "invite", "praised": "praise", "blamed": "blame",
}  # fmt: skip
AGENTS = split_word_list("nurse teacher doctor baker pilot actor engineer officer judge neighbour")
NUMBERS = split_word_list("zero one two three four five six seven eight nine ten eleven twelve")
GOODS = split_word_list("books apples chairs knives stamps mice geese loaves")
ROOMS = split_word_list("room house kitchen office cabin tent")
SCALES = {
    "cleanliness": (("clean", "spotless"), ("dirty", "filthy")),
    "size": (("large", "huge"), ("small", "tiny")),
    "age": (("old", "ancient"), ("new", "brand-new")),
    "temperature": (("hot", "boiling"), ("cold", "freezing")),
    "light": (("bright", "dazzling"), ("dark", "pitch-dark")),
}
"""Both ends of a scale: an adjective, and a stronger one that entails it."""


class NliTemplate(NamedTuple):
    """A hypothesis about {x}, and facts that entail it, are neutral to it and contradict it."""

    hypothesis: str
    entailment: str
    neutral: str
    contradiction: str


@generator("nli", description="template-generated NLI pairs: hypernyms, quantifiers, negation, passive, numerals ...")
def nli_strata() -> list[Stratum]:
    """Return the strata of seven phenomena and three labels, equally frequent."""
    phenomena: dict[str, tuple[Callable[[], Iterator[NliTemplate]], tuple[str, ...]]] = {
        "hypernyms": (_hypernyms, NAMES),
        "quantifiers": (_quantifiers, GROUPS),
        "negation": (_negation, NAMES),
        "conjunction": (_conjunction, NAMES),
        "passive": (_passive, NAMES),
        "numerals": (_numerals, NAMES),
        "antonyms": (_antonyms, NAMES),
    }
    return [
        Stratum({"phenomenon": name}, _pairs(list(dict.fromkeys(templates())), entities, label))
        for name, (templates, entities) in phenomena.items()
        for label in LABELS
    ]


def _pairs(templates: list[NliTemplate], entities: tuple[str, ...], label: str) -> SampleSpace[Example]:
    """Return the templates with three entities and any order of facts; the hypothesis is about one with the label."""
    parts: list[SampleSpace[Any]] = [uniform(templates), permutations(entities, 3), permutations(LABELS, 3)]

    def to_example(elements: tuple[Any, ...]) -> Example:
        template, names, order = elements
        facts = ((getattr(template, relation), x) for relation, x in zip(order, names, strict=True))
        premise = " ".join(fact.format(x=x) for fact, x in facts)
        hypothesis = template.hypothesis.format(x=names[order.index(label)])
        return Example((sentence_from_text(premise), sentence_from_text(hypothesis)), "pair", label)

    return map_space(product(*parts), to_example)


def _indefinite(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


def _hypernyms() -> Iterator[NliTemplate]:
    be = "{{x}}'s present was {}.".format
    for kind, other_kind in itertools.permutations(KINDS, 2):
        for member, quality, non_member in itertools.product(KINDS[kind], QUALITIES, KINDS[other_kind]):
            yield NliTemplate(be(_indefinite(kind)), be(_indefinite(member)), be(quality), be(_indefinite(non_member)))
    for kind, members in KINDS.items():
        for member, quality, sibling in itertools.product(members, QUALITIES, members):
            if member != sibling:
                nouns = (member, f"{quality} {member}", kind, sibling)
                yield NliTemplate(*(be(_indefinite(noun)) for noun in nouns))


def _quantifiers() -> Iterator[NliTemplate]:
    for quantifier, relations in QUANTIFIERS.items():
        for activity, *quantifiers in itertools.product(ACTIVITIES, *relations):
            yield NliTemplate(*(f"{word} of the {{x}} {activity}." for word in (quantifier, *quantifiers)))


def _negation() -> Iterator[NliTemplate]:
    for (past, base), positive, neutral, negative in itertools.product(
        DEEDS.items(), POSITIVE_IMPLICATIVES, NON_IMPLICATIVES, NEGATIVE_IMPLICATIVES
    ):
        facts = [f"{{x}} {verb} {base}." for verb in (positive, neutral, negative)]
        yield NliTemplate(f"{{x}} {past}.", *facts)
        yield NliTemplate(f"{{x}} did not {base}.", *reversed(facts))


def _conjunction() -> Iterator[NliTemplate]:
    for (first, base), (second, second_base) in itertools.product(ACTIVITIES.items(), repeat=2):
        if first == second:
            continue
        for pair, bases in (((first, second), (base, second_base)), ((second, first), (second_base, base))):
            both = ["{{x}} {} and {}.".format(*pair), "{{x}} both {} and {}.".format(*pair)]
            either = ["{{x}} {} or {}.".format(*pair), "{{x}} either {} or {}.".format(*pair)]
            neither = ["{{x}} neither {} nor {}.".format(*pair), "{{x}} did not {} or {}.".format(*bases)]
            for facts in itertools.product(both, either, neither):
                yield NliTemplate(f"{{x}} {first}.", *facts)
                yield NliTemplate(f"{{x}} did not {base}.", *reversed(facts))


def _passive() -> Iterator[NliTemplate]:
    for (past, base), agent in itertools.product(TRANSITIVE_VERBS.items(), AGENTS):
        active, passive = f"The {agent} {past} {{x}}.", f"{{x}} was {past} by the {agent}."
        reverse = (f"{{x}} {past} the {agent}.", f"The {agent} was {past} by {{x}}.")
        denied = (f"The {agent} did not {base} {{x}}.", f"{{x}} was not {past} by the {agent}.")
        for neutral, contradiction in itertools.product(reverse, denied):
            yield NliTemplate(active, passive, neutral, contradiction)
            yield NliTemplate(passive, active, neutral, contradiction)


def _numerals() -> Iterator[NliTemplate]:
    for goods, limit in itertools.product(GOODS, range(3, 10)):
        for below, above in itertools.product((limit - 1, limit), (limit + 1, limit + 2)):
            for quantities in (
                (("more than", limit), ("exactly", above), ("at least", below), ("exactly", below)),
                (("fewer than", limit + 1), ("exactly", below), ("at most", above), ("exactly", above)),
            ):
                texts = (f"{{x}} bought {amount} {NUMBERS[number]} {goods}." for amount, number in quantities)
                yield NliTemplate(*texts)


def _antonyms() -> Iterator[NliTemplate]:
    adjectives = {scale: tuple(itertools.chain(*ends)) for scale, ends in SCALES.items()}
    for room, (scale, other_scale) in itertools.product(ROOMS, itertools.permutations(SCALES, 2)):
        for end, opposite in (SCALES[scale], SCALES[scale][::-1]):
            for neutral, contradiction in itertools.product(adjectives[other_scale], opposite):
                words = (end[0], end[1], neutral, contradiction)
                yield NliTemplate(*(f"{{x}}'s {room} was {word}." for word in words))
