"""Pairs of a premise and a hypothesis whose label neither half gives away: entailment, neutral, contradiction.

A premise states three facts about three people or groups, one that entails the hypothesis' form, one that leaves it
open and one that contradicts it; the hypothesis asks about one of the three. Premise, hypothesis and the words they
share are thus distributed alike under all labels: only reading both tells them apart. Quantifiers and numerals have
their logical sense ("at least two" does not exclude "all"). Factors: `phenomenon`; all are equally frequent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, product
from typing import Any, NamedTuple

from bertology.corpus.corpus import Item
from bertology.corpus.generate import Stratum, generator
from bertology.corpus.phrases import listed
from bertology.corpus.sentence import from_text
from bertology.corpus.spaces import Space, among, arrangements, mapped
from bertology.corpus.spaces import product as joint

LABELS = ("entailment", "neutral", "contradiction")

NAMES = listed(
    "Anna Paul Mary John Laura Peter Susan David Emma Frank Julia Mark Helen George Alice Robert Clara Simon Nora Henry"
)
GROUPS = listed(
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
DONE = ("did not forget to", "remembered to", "managed to", "did not fail to")
OPEN = ("wanted to", "hoped to", "planned to", "did not promise to")
UNDONE = ("forgot to", "did not remember to", "did not manage to", "failed to")
"""What says that a deed was done, leaves it open, or says that it was not; each side has negation and has none."""
QUANTIFIERS = {
    "All": (("Each", "Every one"), ("At least two", "At least one"), ("None", "Not all", "Only one")),
    "Most": (("All", "Almost all", "Each"), ("At least two", "At least one"), ("None", "Hardly any", "Only one")),
    "Some": (("All", "Most", "Several"), ("At most five", "No more than six"), ("None", "Not one")),
    "None": (("Not one", "Not a single one"), ("At most two", "No more than three"), ("Some", "Most", "All")),
}
"""Quantifier of the hypothesis -> those that entail it, leave it open, contradict it."""
TREATED = {
    "thanked": "thank", "called": "call", "helped": "help", "visited": "visit", "followed": "follow",
    "invited": "invite", "praised": "praise", "blamed": "blame",
}  # fmt: skip
AGENTS = listed("nurse teacher doctor baker pilot actor engineer officer judge neighbour")
NUMBERS = listed("zero one two three four five six seven eight nine ten eleven twelve")
GOODS = listed("books apples chairs knives stamps mice geese loaves")
PLACES = listed("room house kitchen office cabin tent")
SCALES = {
    "cleanliness": (("clean", "spotless"), ("dirty", "filthy")),
    "size": (("large", "huge"), ("small", "tiny")),
    "age": (("old", "ancient"), ("new", "brand-new")),
    "temperature": (("hot", "boiling"), ("cold", "freezing")),
    "light": (("bright", "dazzling"), ("dark", "pitch-dark")),
}
"""Each end of a scale: an adjective, and a stronger one that entails it."""


class Frame(NamedTuple):
    """A hypothesis about {x}, and what entails it, leaves it open and contradicts it."""

    hypothesis: str
    entailment: str
    neutral: str
    contradiction: str


@generator("nli", about="inference pairs by templates: hypernyms, quantifiers, negation, passive, numerals ...")
def nli() -> list[Stratum]:
    """Seven phenomena by three labels, equally frequent."""
    frames: dict[str, tuple[Callable[[], Iterator[Frame]], tuple[str, ...]]] = {
        "hypernyms": (_hypernyms, NAMES),
        "quantifiers": (_quantifiers, GROUPS),
        "negation": (_negation, NAMES),
        "conjunction": (_conjunction, NAMES),
        "passive": (_passive, NAMES),
        "numerals": (_numerals, NAMES),
        "antonyms": (_antonyms, NAMES),
    }
    return [
        Stratum({"phenomenon": name}, _pairs(list(dict.fromkeys(make())), entities, label))
        for name, (make, entities) in frames.items()
        for label in LABELS
    ]


def _pairs(frames: list[Frame], entities: tuple[str, ...], label: str) -> Space[Item]:
    """Every frame with three entities and the facts in every order, asked about the entity that has the label."""
    parts: list[Space[Any]] = [among(frames), arrangements(entities, 3), arrangements(LABELS, 3)]

    def item(chosen: tuple[Any, ...]) -> Item:
        frame, people, order = chosen
        facts = {"entailment": frame.entailment, "neutral": frame.neutral, "contradiction": frame.contradiction}
        premise = " ".join(facts[fact].format(x=x) for fact, x in zip(order, people, strict=True))
        hypothesis = frame.hypothesis.format(x=people[order.index(label)])
        return Item((from_text(premise), from_text(hypothesis)), "pair", label)

    return mapped(joint(*parts), item)


def _a(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


def _hypernyms() -> Iterator[Frame]:
    be = "{{x}}'s present was {}.".format
    for kind, other in ((kind, other) for kind in KINDS for other in KINDS if kind != other):
        for member, quality, stranger in product(KINDS[kind], QUALITIES, KINDS[other]):
            yield Frame(be(_a(kind)), be(_a(member)), be(quality), be(_a(stranger)))
    for kind, members in KINDS.items():
        for member, quality, sibling in product(members, QUALITIES, members):
            if member != sibling:
                yield Frame(be(_a(member)), be(_a(f"{quality} {member}")), be(_a(kind)), be(_a(sibling)))


def _quantifiers() -> Iterator[Frame]:
    for quantifier, relations in QUANTIFIERS.items():
        for activity, *others in product(ACTIVITIES, *relations):
            yield Frame(*(f"{word} of the {{x}} {activity}." for word in (quantifier, *others)))


def _negation() -> Iterator[Frame]:
    for (past, base), done, left, undone in product(DEEDS.items(), DONE, OPEN, UNDONE):
        facts = [f"{{x}} {verb} {base}." for verb in (done, left, undone)]
        yield Frame(f"{{x}} {past}.", *facts)
        yield Frame(f"{{x}} did not {base}.", *reversed(facts))


def _conjunction() -> Iterator[Frame]:
    for (first, base), (second, other) in product(ACTIVITIES.items(), repeat=2):
        if first == second:
            continue
        for pair, bases in (((first, second), (base, other)), ((second, first), (other, base))):
            both = ["{{x}} {} and {}.".format(*pair), "{{x}} both {} and {}.".format(*pair)]
            one = ["{{x}} {} or {}.".format(*pair), "{{x}} either {} or {}.".format(*pair)]
            neither = ["{{x}} neither {} nor {}.".format(*pair), "{{x}} did not {} or {}.".format(*bases)]
            for facts in product(both, one, neither):
                yield Frame(f"{{x}} {first}.", *facts)
                yield Frame(f"{{x}} did not {base}.", *reversed(facts))


def _passive() -> Iterator[Frame]:
    for (past, base), agent in product(TREATED.items(), AGENTS):
        active, passive = f"The {agent} {past} {{x}}.", f"{{x}} was {past} by the {agent}."
        reverse = (f"{{x}} {past} the {agent}.", f"The {agent} was {past} by {{x}}.")
        denied = (f"The {agent} did not {base} {{x}}.", f"{{x}} was not {past} by the {agent}.")
        for neutral, contradiction in product(reverse, denied):
            yield Frame(active, passive, neutral, contradiction)
            yield Frame(passive, active, neutral, contradiction)


def _numerals() -> Iterator[Frame]:
    def bought(amount: str, number: int, goods: str) -> str:
        return f"{{x}} bought {amount} {NUMBERS[number]} {goods}."

    for goods, limit in product(GOODS, range(3, 10)):
        low, high = (limit - 1, limit), (limit + 1, limit + 2)
        for below, above in product(low, high):
            more = [bought("exactly", above, goods), bought("at least", below, goods), bought("exactly", below, goods)]
            yield Frame(bought("more than", limit, goods), *more)
            less = [bought("exactly", below, goods), bought("at most", above, goods), bought("exactly", above, goods)]
            yield Frame(bought("fewer than", limit + 1, goods), *less)


def _antonyms() -> Iterator[Frame]:
    adjectives = {scale: tuple(chain(*ends)) for scale, ends in SCALES.items()}
    for place, scale, other in product(PLACES, SCALES, SCALES):
        if scale == other:
            continue
        for end, opposite in (SCALES[scale], SCALES[scale][::-1]):
            for neutral, contradiction in product(adjectives[other], opposite):
                words = (end[0], end[1], neutral, contradiction)
                yield Frame(*(f"{{x}}'s {place} was {word}." for word in words))
