"""Multiple-choice reading: who did what, where, when and with what, in a short passage (after si2019's question).

Three or four people each do the same kind of thing to another object, in another place, on another day, with another
tool; a question asks for one of these, and the options are all the passage's answers of that kind. Every option is thus
mentioned once, fits the question as well as any other and is the right one as often, wherever it stands: without the
passage there is only chance. Factors: `question` (who, what, where, when, tool) and `options` (3, 4).
"""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

from bertology.corpus.corpus import Item
from bertology.corpus.generate import Stratum, generator
from bertology.corpus.phrases import listed
from bertology.corpus.sentence import from_text
from bertology.corpus.spaces import Space, among, arrangements, either, mapped
from bertology.corpus.spaces import product as joint

WOMEN = listed("Anna Mary Laura Susan Emma Julia Helen Alice Clara Nora")
MEN = listed("Paul John Peter David Frank Mark George Robert Simon Henry")
DAYS = listed("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
OPENINGS = (
    "", "It was a busy week.", "The weather was fine for once.", "Nobody had planned any of this.",
    "Some of the neighbours still talk about that week.", "It had rained for a long time.",
)  # fmt: skip
LAYOUTS = (
    ("On {day}, {who} {past} {what} {where} with {tool}.",),
    ("{who} {past} {what} with {tool} {where} on {day}.",),
    ("{who} {past} {what} on {day}.", "{pronoun} did it {where} with {tool}."),
    ("{who} was {where} on {day}.", "{pronoun} {past} {what} there with {tool}."),
)
QUESTIONS = {
    "who": "Who {past} {what}?",
    "what": "What did {who} {base}?",
    "where": "Where did {who} {base} {what}?",
    "day": "When did {who} {base} {what}?",
    "tool": "What did {who} use to {base} {what}?",
}
SHORTEST, LONGEST = 3, 6


class Scene(NamedTuple):
    """One kind of deed: its verb, and the objects, places and tools that go with it."""

    past: str
    base: str
    objects: tuple[str, ...]
    places: tuple[str, ...]
    tools: tuple[str, ...]


SCENES = (
    Scene(
        "painted", "paint",
        ("the chair", "the fence", "the door", "the boat", "the table", "the gate", "the shelf", "the old bench"),
        ("in the garden", "in the yard", "in the garage", "in the cellar", "on the terrace", "behind the school"),
        ("a brush", "a roller", "a sponge", "an old rag", "a piece of cloth", "a spray can"),
    ),
    Scene(
        "repaired", "repair",
        ("the clock", "the radio", "the lamp", "the umbrella", "the toaster", "the kite", "the bicycle", "the tent"),
        ("in the kitchen", "in the workshop", "at the market", "in the attic", "at the office", "on the train"),
        ("a knife", "a screwdriver", "some glue", "a piece of wire", "an iron nail", "some tape"),
    ),
    Scene(
        "sketched", "sketch",
        ("the bridge", "the tower", "the owl", "the castle", "the horses", "the river", "the geese", "the church"),
        ("in the park", "at the museum", "in the library", "on the hill", "at the station", "near the lake"),
        ("a pencil", "a fountain pen", "a piece of chalk", "an orange crayon", "some ink", "a stick of charcoal"),
    ),
    Scene(
        "opened", "open",
        ("the box", "the parcel", "the jar", "the chest", "the envelope", "the tin", "the crate", "the suitcase"),
        ("in the hall", "in the barn", "at the hotel", "on the ship", "in the shop", "under the bridge"),
        ("a key", "a spoon", "a pair of scissors", "an axe", "a hammer", "a bent fork"),
    ),
)  # fmt: skip


@generator("reading", about="multiple-choice reading: who did what, where, when and with what, 3 or 4 options")
def reading() -> list[Stratum]:
    """Five questions, three and four options, every position of the right one: equally frequent."""
    return [
        Stratum(
            {"question": "when" if question == "day" else question, "options": str(count)},
            either(*((1, _items(scene, question, count, label)) for scene in SCENES)),
            weight=12 // count,
        )
        for question in QUESTIONS
        for count in (3, 4)
        for label in range(count)
    ]


def _items(scene: Scene, question: str, count: int, label: int) -> Space[Item]:
    """Passages with `count` facts, each in turn asked for, its answer at the place `label` among the options."""
    values = (WOMEN + MEN, scene.objects, scene.places, DAYS, scene.tools)
    parts: list[Space[Any]] = [arrangements(value, count) for value in values]
    parts += [among(_layouts(count)), among(range(count)), arrangements(range(count - 1), count - 1)]

    def item(chosen: tuple[Any, ...]) -> Item:
        *columns, (opening, layout), asked, order = chosen
        facts = [_fact(scene, row) for row in zip(*columns, strict=True)]
        sentences = [text.format(**fact) for fact, texts in zip(facts, layout, strict=True) for text in texts]
        others = [fact for place, fact in enumerate(facts) if place != asked]
        options = [others[place][question] for place in order]
        options.insert(label, facts[asked][question])
        passage = " ".join([opening, *sentences]).strip()
        texts = (passage, QUESTIONS[question].format(**facts[asked]), *options)
        return Item(tuple(from_text(text) for text in texts), "choice", str(label))

    return mapped(joint(*parts), item)


def _fact(scene: Scene, row: tuple[str, ...]) -> dict[str, str]:
    who, what, where, day, tool = row
    pronoun = "She" if who in WOMEN else "He"
    fact = {"who": who, "what": what, "where": where, "day": day, "tool": tool}
    return fact | {"pronoun": pronoun, "past": scene.past, "base": scene.base}


def _layouts(count: int) -> list[tuple[str, tuple[tuple[str, ...], ...]]]:
    """An opening or none, and a layout for each fact, three to six sentences in all."""
    return [
        (opening, layout)
        for opening, layout in product(OPENINGS, product(LAYOUTS, repeat=count))
        if SHORTEST <= sum(map(len, layout)) + bool(opening) <= LONGEST
    ]
