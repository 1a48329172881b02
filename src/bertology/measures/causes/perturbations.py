"""What can be done to a text: its order destroyed, words left out, letters mistyped, words replaced at random.

Each is a pure function of a text and a seeded generator. What must stay right stays: the words of an answer are neither
changed nor torn apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from bertology.corpus.phrases import listed
from bertology.corpus.sentence import Sentence
from bertology.maths.edit_distance import edit_distance
from bertology.measures.causes.rewording import (
    NEW,
    Slot,
    in_answers,
    kept_together,
    reworded,
    sentences_within,
    slots,
)

FUNCTION_TAGS = frozenset({"ADP", "AUX", "CCONJ", "DET", "PART", "PRON", "SCONJ"})
NEGATIONS = frozenset({"not", "n't", "n’t", "no", "never", "nor", "neither", "without", "none", "nobody", "nothing"})
FUNCTION_WORDS = frozenset(
    listed("""
    a an the this that these those some any each every either all both such what which whose who whom whoever one there
    i me my mine myself you your yours yourself yourselves he him his himself she her hers herself it its itself we us
    our ours ourselves they them their theirs themselves oneself to ca wo 'm 's 're 've 'll 'd ’m ’s ’re ’ve ’ll ’d
    am is are was were be been being do does did have has had having will would shall should can could may might must
    and or but if because as while although though unless until since whether than so when where why how ought
    of in on at by for with about against between into through during before after above below from up down out off
    over under again toward towards upon among within across behind beyond near along around per via
    """)
)
SHORTEST_MISTYPED = 4
LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class Shuffling:
    """How thoroughly words are shuffled: the edit distance to the original order by length that must be reached.

    After `tries` shuffles the furthest of them is taken, whether it reaches `degree` or not.
    """

    degree: float = 0.6
    tries: int = 100


class Order(NamedTuple):
    """An order of places, the degree of its shuffle (0 as it was, 1 nothing in place) and whether it is far enough."""

    places: list[int]
    degree: float
    met: bool


def shuffle(words: Sequence[str], draw: Random, rule: Shuffling, avoiding: Sequence[Sequence[str]] = ()) -> Order:
    """Places in another order, far enough from the first and with none of the sequences to avoid in one piece.

    An order is tried again until both hold; one that avoids them is preferred to one that is further away.
    """
    best, best_by = Order(list(range(len(words))), 0.0, False), (False, 0.0)
    for _ in range(rule.tries if len(set(words)) > 1 else 0):
        places = list(range(len(words)))
        draw.shuffle(places)
        said = [words[place] for place in places]
        degree = edit_distance(words, said) / len(words)
        clean = not any(within(said, some) for some in avoiding)
        if (clean, degree) > best_by:
            best, best_by = Order(places, degree, clean and degree >= rule.degree), (clean, degree)
        if best.met:
            break
    return best


def within(words: Sequence[str], some: Sequence[str]) -> bool:
    """Whether the words have these in one piece, in order."""
    size = len(some)
    return any(list(words[start : start + size]) == list(some) for start in range(len(words) - size + 1))


def words_shuffled(sentence: Sentence, draw: Random, rule: Shuffling) -> Sentence:
    """The words in another order; the words of an answer stay together."""
    units = kept_together(sentence)
    order = shuffle([" ".join(sentence.words[p] for p in unit) for unit in units], draw, rule)
    own = slots(sentence)
    return reworded(sentence, [own[place] for unit in order.places for place in units[unit]])


def sentences_shuffled(sentence: Sentence, draw: Random) -> Sentence:
    """The sentences of the text in another order, if it has several; each stays as it is."""
    parts = sentences_within(sentence)
    if len({sentence.words[part.start : part.stop] for part in parts}) < 2:
        return sentence
    order = list(range(len(parts)))
    while [parts[place] for place in order] == parts:
        draw.shuffle(order)
    own = slots(sentence)
    return reworded(sentence, [own[place] for part in order for place in parts[part]])


def without_function_words(sentence: Sentence) -> Sentence:
    """The text without articles, auxiliaries, prepositions, pronouns and conjunctions; negations stay.

    By parts of speech where they are known, else by a list of English words. A text of nothing else stays as it is.
    """
    answers = in_answers(sentence)
    tags = sentence.pos or ("",) * len(sentence)
    kept = [
        slot
        for slot, tag in zip(slots(sentence), tags, strict=True)
        if slot.source in answers or slot.word.lower() in NEGATIONS or not _is_function(slot.word, tag)
    ]
    return reworded(sentence, kept) if any(any(map(str.isalnum, slot.word)) for slot in kept) else sentence


def mistyped(sentence: Sentence, draw: Random, share: float) -> Sentence:
    """A slip in this share of the words of four letters and more: two letters swapped, one lost, doubled or another.

    The first and the last letter stay, and so does every word of an answer.
    """
    answers = in_answers(sentence)
    long = [p for p, w in enumerate(sentence.words) if len(w) >= SHORTEST_MISTYPED and w.isalpha() and p not in answers]
    chosen = (
        set(draw.sample(long, min(len(long), max(1, round(share * len(long)))))) if long and share > 0 else set[int]()
    )
    changed = [Slot(slip(s.word, draw), s.source) if s.source in chosen else s for s in slots(sentence)]
    return reworded(sentence, changed)


def slip(word: str, draw: Random) -> str:
    """The word with one slip between its first and last letter."""
    while True:
        place = draw.randrange(1, len(word) - 1)
        match draw.randrange(4):
            case 0 if place + 1 < len(word) - 1:
                typed = word[:place] + word[place + 1] + word[place] + word[place + 2 :]
            case 1:
                typed = word[:place] + word[place + 1 :]
            case 2:
                typed = word[:place] + word[place] + word[place:]
            case _:
                typed = word[:place] + draw.choice(LETTERS) + word[place + 1 :]
        if typed != word:
            return typed


def edited_at_random(original: Sentence, attacked: Sentence, vocabulary: Sequence[str], draw: Random) -> Sentence:
    """The original, as long as the attacked text and as far from it in words, edited at random places.

    New words are drawn from the vocabulary, none that the original has, so that the edit distance is just the same.
    Where the attack took all words away, all are replaced instead. Words of an answer stay.
    """
    own = {word.lower() for word in original.words}
    others = [word for word in vocabulary if word.lower() not in own]
    distance = edit_distance(original.words, attacked.words)
    if not others or not distance:
        return original
    growth = len(attacked) - len(original) if len(attacked) else 0
    free = [place for place in range(len(original)) if place not in in_answers(original)]
    lost = set(draw.sample(free, min(len(free), max(0, -growth))))
    left = [place for place in free if place not in lost]
    replaced = set(draw.sample(left, min(len(left), distance - abs(growth))))
    wanted = [
        Slot(draw.choice(others), NEW) if slot.source in replaced else slot
        for slot in slots(original)
        if slot.source not in lost
    ]
    for _ in range(growth):
        wanted.insert(_outside(wanted, original, draw), Slot(draw.choice(others), NEW))
    return reworded(original, wanted)


def _outside(wanted: Sequence[Slot], original: Sentence, draw: Random) -> int:
    """A place to put a word in, not within an answer."""
    within_answer = {place for span in original.answers or () for place in range(span.start + 1, span.end)}
    allowed = [p for p in range(len(wanted) + 1) if p == len(wanted) or wanted[p].source not in within_answer]
    return draw.choice(allowed)


def _is_function(word: str, tag: str) -> bool:
    return tag in FUNCTION_TAGS if tag else word.lower() in FUNCTION_WORDS
