"""Multiple-choice reading comprehension: who did what, where, when and with which tool (after si2019).

Three or four people each do the same kind of thing to different objects, in different places, on different days, with
different tools. A question asks for one of these, and the options are all values of that kind in the passage. Every
option is thus mentioned once, fits the question equally well and is equally often correct at every position: without
the passage only chance accuracy is possible. Factors: `question` (who, what, where, when, tool) and `options` (3, 4).
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

from bertology.corpus.example import Example
from bertology.corpus.generate import Stratum, generator
from bertology.corpus.phrase_spaces import split_word_list
from bertology.corpus.sample_spaces import SampleSpace, map_space, permutations, product, uniform, union
from bertology.corpus.sentence import sentence_from_text

WOMEN = split_word_list("Anna Mary Laura Susan Emma Julia Helen Alice Clara Nora")
MEN = split_word_list("Paul John Peter David Frank Mark George Robert Simon Henry")
DAYS = split_word_list("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
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
MIN_SENTENCES, MAX_SENTENCES = 3, 6


class EventTemplate(NamedTuple):
    """A kind of event: the forms of its verb, and suitable objects, locations and tools."""

    past_tense: str
    base_form: str
    objects: tuple[str, ...]
    locations: tuple[str, ...]
    tools: tuple[str, ...]


EVENT_TEMPLATES = (
    EventTemplate(
        "painted", "paint",
        ("the chair", "the fence", "the door", "the boat", "the table", "the gate", "the shelf", "the old bench"),
        ("in the garden", "in the yard", "in the garage", "in the cellar", "on the terrace", "behind the school"),
        ("a brush", "a roller", "a sponge", "an old rag", "a piece of cloth", "a spray can"),
    ),
    EventTemplate(
        "repaired", "repair",
        ("the clock", "the radio", "the lamp", "the umbrella", "the toaster", "the kite", "the bicycle", "the tent"),
        ("in the kitchen", "in the workshop", "at the market", "in the attic", "at the office", "on the train"),
        ("a knife", "a screwdriver", "some glue", "a piece of wire", "an iron nail", "some tape"),
    ),
    EventTemplate(
        "sketched", "sketch",
        ("the bridge", "the tower", "the owl", "the castle", "the horses", "the river", "the geese", "the church"),
        ("in the park", "at the museum", "in the library", "on the hill", "at the station", "near the lake"),
        ("a pencil", "a fountain pen", "a piece of chalk", "an orange crayon", "some ink", "a stick of charcoal"),
    ),
    EventTemplate(
        "opened", "open",
        ("the box", "the parcel", "the jar", "the chest", "the envelope", "the tin", "the crate", "the suitcase"),
        ("in the hall", "in the barn", "at the hotel", "on the ship", "in the shop", "under the bridge"),
        ("a key", "a spoon", "a pair of scissors", "an axe", "a hammer", "a bent fork"),
    ),
)  # fmt: skip


@generator(
    "reading_comprehension",
    description="multiple-choice reading comprehension: who did what, where, when and how; 3 or 4 options",
    # Ids keep the generator's former name: they are part of the hash that orders examples of random splits.
    id_prefix="reading",
)
def reading_comprehension_strata() -> list[Stratum]:
    """Return the strata: five questions, three or four options, all positions of the answer, equally frequent."""
    return [
        Stratum(
            {"question": "when" if question == "day" else question, "options": str(n_options)},
            union(*((1, _examples(event, question, n_options, label)) for event in EVENT_TEMPLATES)),
            weight=12 // n_options,
        )
        for question in QUESTIONS
        for n_options in (3, 4)
        for label in range(n_options)
    ]


def _examples(event: EventTemplate, question: str, n_options: int, label: int) -> SampleSpace[Example]:
    """Return passages with `n_options` facts and a question about one of them, with the answer at index `label`."""
    values = (WOMEN + MEN, event.objects, event.locations, DAYS, event.tools)
    parts: list[SampleSpace[Any]] = [permutations(value, n_options) for value in values]
    parts += [
        uniform(_layouts(n_options)),
        uniform(range(n_options)),
        permutations(range(n_options - 1), n_options - 1),
    ]

    def to_example(elements: tuple[Any, ...]) -> Example:
        *columns, (opening, layout), answer, order = elements
        facts = [_fact(event, row) for row in zip(*columns, strict=True)]
        sentences = [text.format(**fact) for fact, texts in zip(facts, layout, strict=True) for text in texts]
        distractors = [fact for index, fact in enumerate(facts) if index != answer]
        options = [distractors[index][question] for index in order]
        options.insert(label, facts[answer][question])
        passage = " ".join([opening, *sentences]).strip()
        texts = (passage, QUESTIONS[question].format(**facts[answer]), *options)
        return Example(tuple(sentence_from_text(text) for text in texts), "choice", str(label))

    return map_space(product(*parts), to_example)


def _fact(event: EventTemplate, row: tuple[str, ...]) -> dict[str, str]:
    who, what, where, day, tool = row
    pronoun = "She" if who in WOMEN else "He"
    fact = {"who": who, "what": what, "where": where, "day": day, "tool": tool}
    return fact | {"pronoun": pronoun, "past": event.past_tense, "base": event.base_form}


def _layouts(n_facts: int) -> list[tuple[str, tuple[tuple[str, ...], ...]]]:
    """Return combinations of an optional opening and a layout per fact that have three to six sentences."""
    return [
        (opening, layout)
        for opening, layout in itertools.product(OPENINGS, itertools.product(LAYOUTS, repeat=n_facts))
        if MIN_SENTENCES <= sum(map(len, layout)) + bool(opening) <= MAX_SENTENCES
    ]
