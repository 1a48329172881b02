"""Every attack by name, what it does to an item of each kind, and the same item edited at random as far."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from bertology.corpus.corpus import Item, Kind
from bertology.corpus.sentence import Sentence
from bertology.errors import unknown_name
from bertology.maths.edit_distance import edit_distance
from bertology.measures.causes.perturbations import (
    edited_at_random,
    mistyped,
    sentences_shuffled,
    without_function_words,
    words_shuffled,
)
from bertology.measures.causes.rewording import without_words
from bertology.measures.causes.unreadable import UNREADABLE, Misled, Rule

Places = Mapping[Kind, tuple[int, ...]]
TEXTS: Places = {"sentence": (0,), "pair": (0, 1), "question": (0, 1), "choice": (0, 1), "minimal_pair": (0, 1)}


@dataclass(frozen=True)
class Settings:
    """What the attacks can be told: how thoroughly to shuffle, and the share of words with a slip."""

    rule: Rule = field(default_factory=Rule)
    slips: float = 0.2


Change = Callable[[Sentence, Random, Settings], Sentence]


@dataclass(frozen=True)
class Attack:
    """A way to change an item: `about` in a few words, and the kinds of item it can be done to."""

    name: str
    about: str
    kinds: frozenset[Kind]
    change: Callable[[Item, Random, Settings], Misled]

    def __call__(self, item: Item, settings: Settings, seed: int) -> Misled:
        """The attacked item; the same item, attack and seed give the same."""
        return self.change(item, drawing(item, self.name, seed), settings)


def attacks_named(names: str, kinds: Collection[Kind]) -> list[Attack]:
    """The attacks of a list with commas, or `all` that can be done to items of these kinds."""
    able = {name: attack for name, attack in ATTACKS.items() if attack.kinds & set(kinds)}
    if names == "all":
        return list(able.values())
    wanted = [name.strip() for name in names.split(",")]
    for name in wanted:
        if name not in able:
            raise unknown_name("attack on such items", name, able)
    return [able[name] for name in wanted]


def drawing(item: Item, *about: object) -> Random:
    """A generator that depends on what the item says and on what it is for, not on where the item stands."""
    texts = "\n".join(part.text for part in item.parts)
    return Random(hashlib.sha256(f"{item.label}\n{texts}\n{about}".encode()).digest())


def random_form(original: Item, attacked: Item, vocabulary: Sequence[str], seed: int) -> Item:
    """The original with every part that was attacked edited at random as far as it was: `edited_at_random`."""
    draw = drawing(original, "random edit", seed, [part.text for part in attacked.parts])
    parts = [
        edited_at_random(one, other, vocabulary, draw) if one.words != other.words else one
        for one, other in zip(original.parts, attacked.parts, strict=True)
    ]
    return replace(original, parts=tuple(parts))


def words_changed(original: Item, attacked: Item) -> int:
    """The edit distance in words over all parts."""
    return sum(edit_distance(one.words, other.words) for one, other in zip(original.parts, attacked.parts, strict=True))


def vocabulary_of(items: Sequence[Item]) -> list[str]:
    """Every word of letters as often as it is there, in an order of its own."""
    return sorted(word for item in items for part in item.parts for word in part.words if word.isalpha())


def _of_parts(name: str, about: str, places: Places, change: Change) -> Attack:
    def attack(item: Item, draw: Random, settings: Settings) -> Misled:
        chosen = places[item.kind]
        parts = [change(p, draw, settings) if place in chosen else p for place, p in enumerate(item.parts)]
        return Misled(replace(item, parts=tuple(parts)))

    return Attack(name, about, frozenset(places), attack)


def _respaced(sentence: Sentence, draw: Random, settings: Settings) -> Sentence:
    return sentence.respaced()


def _shuffled(sentence: Sentence, draw: Random, settings: Settings) -> Sentence:
    return words_shuffled(sentence, draw, settings.rule.shuffling)


def _reordered(sentence: Sentence, draw: Random, settings: Settings) -> Sentence:
    return sentences_shuffled(sentence, draw)


def _bare(sentence: Sentence, draw: Random, settings: Settings) -> Sentence:
    return without_function_words(sentence)


def _noisy(sentence: Sentence, draw: Random, settings: Settings) -> Sentence:
    return mistyped(sentence, draw, settings.slips)


def _removed(sentence: Sentence, draw: Random, settings: Settings) -> Sentence:
    return without_words(sentence)


def _unreadable(name: str) -> Attack:
    def attack(item: Item, draw: Random, settings: Settings) -> Misled:
        return UNREADABLE[name](item, draw, settings.rule)

    about = (UNREADABLE[name].__doc__ or "").splitlines()[0].partition(": ")[2].rstrip(".")
    return Attack(name, about, frozenset({"choice"}), attack)


PASSAGES: Places = {"question": (1,), "choice": (0,)}
QUESTIONS: Places = {"question": (0,), "choice": (1,)}
LONG_TEXTS: Places = {"sentence": (0,), "pair": (0, 1), "question": (1,), "choice": (0,)}

ATTACKS: dict[str, Attack] = {
    attack.name: attack
    for attack in (
        _of_parts("spaces", "the same words, a space between them: a control", TEXTS, _respaced),
        _of_parts("words shuffled", "the words of every text in another order", TEXTS, _shuffled),
        _of_parts("first shuffled", "the words of the first text", {"pair": (0,)}, _shuffled),
        _of_parts("second shuffled", "the words of the second text", {"pair": (1,)}, _shuffled),
        _of_parts("passage shuffled", "the words of the passage", PASSAGES, _shuffled),
        _of_parts("question shuffled", "the words of the question", QUESTIONS, _shuffled),
        _of_parts("sentences shuffled", "sentences in another order, each whole", LONG_TEXTS, _reordered),
        _of_parts("no function words", "articles, auxiliaries, prepositions, pronouns left out", TEXTS, _bare),
        _of_parts("slips", "a mistyped letter in some longer words", TEXTS, _noisy),
        _of_parts("no first", "the second text alone: hypothesis only", {"pair": (0,)}, _removed),
        _of_parts("no second", "the first text alone: premise only", {"pair": (1,)}, _removed),
        _of_parts("no question", "nothing in place of the question", QUESTIONS, _removed),
        _of_parts("no passage", "nothing in place of the passage", {"choice": (0,)}, _removed),
        _of_parts("options alone", "neither passage nor question", {"choice": (0, 1)}, _removed),
        *map(_unreadable, UNREADABLE),
    )
}
