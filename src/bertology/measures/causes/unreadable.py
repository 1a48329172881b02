"""Si et al.'s attacks with data that nobody can read, on multiple choice (si2019): only words that mislead are added.

The question and the right option stay as they are; so do the words of the passage. A shuffle is tried again until its
degree (edit distance to the original order by length) reaches a threshold, whose value the paper does not give; for
AddSent2Pas-Shuffle also while a distractor stands in one piece in what is added. There are seven; an attack called
AddAns2Pas, sometimes cited, is not in the paper.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from bertology.corpus.corpus import Item, joined
from bertology.corpus.sentence import Sentence
from bertology.measures.causes.perturbations import Shuffling, shuffle
from bertology.measures.causes.rewording import of_words, reworded, sentences_within, slots


@dataclass(frozen=True)
class Rule:
    """How an attack goes about it.

    With `shared`, one sentence is drawn for all distractors of a question, as in the paper's example; without, one for
    each, as its text has it.
    """

    shuffling: Shuffling = field(default_factory=Shuffling)
    shared: bool = False


@dataclass(frozen=True)
class Misled:
    """An attacked item, the degree of each shuffle, and how many shuffles fell short of what was asked of them."""

    item: Item
    degrees: tuple[float, ...] = ()
    short: int = 0


Attack = Callable[[Item, Random, Rule], Misled]


def add_to_passage(item: Item, draw: Random, rule: Rule) -> Misled:
    """AddSent2Pas-Shuffle: the words of the question and of all distractors, shuffled, behind the passage.

    A distractor of one word cannot be kept from standing there in one piece; it counts as fallen short.
    """
    passage, question = item.parts[:2]
    others = [option for place, option in enumerate(item.parts[2:]) if place != _right(item)]
    words = joined((question, *others)).words
    order = shuffle(words, draw, rule.shuffling, avoiding=[option.words for option in others if len(option) > 1])
    added = of_words(question, [words[place] for place in order.places])
    short = not order.met or any(len(option) < 2 for option in others)
    return Misled(replace(item, parts=(joined((passage, added)), *item.parts[1:])), (order.degree,), int(short))


def add_sentence(item: Item, draw: Random, rule: Rule) -> Misled:
    """AddSent2Opt: a sentence of the passage behind each distractor."""
    return _with_distractors(item, [joined(pair) for pair in _with_sentences(item, draw, rule)])


def add_sentence_shuffled(item: Item, draw: Random, rule: Rule) -> Misled:
    """AddSent2Opt-Shuffle: the words of each distractor and of a sentence of the passage, shuffled."""
    return _shuffled(item, [joined(pair) for pair in _with_sentences(item, draw, rule)], draw, rule)


def sentence_shuffled(item: Item, draw: Random, rule: Rule) -> Misled:
    """Sent2Opt-Shuffle: a sentence of the passage, shuffled, in place of each distractor."""
    return _shuffled(item, [sentence for _, sentence in _with_sentences(item, draw, rule)], draw, rule)


def add_answer(item: Item, draw: Random, rule: Rule) -> Misled:
    """AddAns2Opt: the right answer behind each distractor."""
    return _with_distractors(item, [joined((option, _answer(item))) for option in _distractors(item)])


def add_answer_shuffled(item: Item, draw: Random, rule: Rule) -> Misled:
    """AddAns2Opt-Shuffle: the words of each distractor and of the right answer, shuffled."""
    return _shuffled(item, [joined((option, _answer(item))) for option in _distractors(item)], draw, rule)


def answer_shuffled(item: Item, draw: Random, rule: Rule) -> Misled:
    """Ans2Opt-Shuffle: the right answer, shuffled, in place of each distractor.

    An answer that no shuffle changes would be a second right answer: its distractors stay, and fall short.
    """
    return _shuffled(item, [_answer(item)] * len(_distractors(item)), draw, rule)


UNREADABLE: dict[str, Attack] = {
    "AddSent2Pas-Shuffle": add_to_passage,
    "AddSent2Opt-Shuffle": add_sentence_shuffled,
    "AddAns2Opt-Shuffle": add_answer_shuffled,
    "Sent2Opt-Shuffle": sentence_shuffled,
    "Ans2Opt-Shuffle": answer_shuffled,
    "AddSent2Opt": add_sentence,
    "AddAns2Opt": add_answer,
}
"""In the order of the paper's table 2."""


def _right(item: Item) -> int:
    return int(item.label or 0)


def _answer(item: Item) -> Sentence:
    return item.parts[2 + _right(item)]


def _distractors(item: Item) -> list[Sentence]:
    return [option for place, option in enumerate(item.parts[2:]) if place != _right(item)]


def _with_sentences(item: Item, draw: Random, rule: Rule) -> list[tuple[Sentence, Sentence]]:
    """Each distractor with a sentence of the passage drawn at random."""
    passage = item.parts[0]
    parts, words = sentences_within(passage), slots(passage)
    if not parts:
        return [(option, option) for option in _distractors(item)]
    one = draw.choice(parts)
    drawn = [one if rule.shared else draw.choice(parts) for _ in _distractors(item)]
    return [
        (option, reworded(passage, words[part.start : part.stop]))
        for option, part in zip(_distractors(item), drawn, strict=True)
    ]


def _shuffled(item: Item, wanted: Sequence[Sentence], draw: Random, rule: Rule) -> Misled:
    """The item with these words, shuffled, for distractors; what no shuffle changes leaves its distractor as it was."""
    made: list[Sentence] = []
    degrees: list[float] = []
    short = 0
    for option, text in zip(_distractors(item), wanted, strict=True):
        order = shuffle(text.words, draw, rule.shuffling)
        made.append(of_words(option, [text.words[p] for p in order.places]) if order.degree else option)
        degrees.append(order.degree)
        short += not order.met
    return replace(_with_distractors(item, made), degrees=tuple(degrees), short=short)


def _with_distractors(item: Item, made: Sequence[Sentence]) -> Misled:
    options = list(made)
    options.insert(_right(item), _answer(item))
    return Misled(replace(item, parts=(*item.parts[:2], *options)))
