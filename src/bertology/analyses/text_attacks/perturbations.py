"""Perturbations of a text: shuffled words or sentences, removed function words, typos, random replacements.

Each is a pure function of a text and a seeded generator. The words of an answer are neither changed nor separated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Annotated, NamedTuple

from bertology.analyses.text_attacks.word_edits import (
    NO_SOURCE,
    EditedWord,
    answer_words,
    apply_edits,
    identity_edits,
    movable_units,
    sentence_ranges,
)
from bertology.corpus.phrase_spaces import split_word_list
from bertology.corpus.sentence import Sentence
from bertology.number_ranges import PROPORTION
from bertology.numerics.edit_distance import edit_distance

FUNCTION_TAGS = frozenset({"ADP", "AUX", "CCONJ", "DET", "PART", "PRON", "SCONJ"})
NEGATIONS = frozenset({"not", "n't", "n’t", "no", "never", "nor", "neither", "without", "none", "nobody", "nothing"})
FUNCTION_WORDS = frozenset(
    split_word_list("""
    a an the this that these those some any each every either all both such what which whose who whom whoever one there
    i me my mine myself you your yours yourself yourselves he him his himself she her hers herself it its itself we us
    our ours ourselves they them their theirs themselves oneself to ca wo 'm 's 're 've 'll 'd ’m ’s ’re ’ve ’ll ’d
    am is are was were be been being do does did have has had having will would shall should can could may might must
    and or but if because as while although though unless until since whether than so when where why how ought
    of in on at by for with about against between into through during before after above below from up down out off
    over under again toward towards upon among within across behind beyond near along around per via
    """)
)
MIN_TYPO_LENGTH = 4
LETTERS = "abcdefghijklmnopqrstuvwxyz"


MAX_SHUFFLES = 100
"""Attempts to shuffle a text; if none reaches the minimum distance, the one with the largest distance is used."""

ShuffleDistanceOption = Annotated[
    float,
    PROPORTION,
    "Shuffle until the edit distance divided by length reaches this value, 0 to 1 (Si et al. give none).",
]


@dataclass(frozen=True)
class AttackConfig:
    """Settings of the attacks.

    With `same_distractor` all distractors of a question get the same sampled sentence, as in the paper's example;
    otherwise each gets its own, as in its text.
    """

    shuffle_distance: ShuffleDistanceOption = 0.6
    same_distractor: Annotated[
        bool, "Use one sampled sentence for all distractors of a question, as in Si et al.'s example."
    ] = False
    typo_rate: Annotated[float, PROPORTION, "Proportion of longer words that get a typo, 0 to 1."] = 0.2


class ShuffledOrder(NamedTuple):
    """A permutation, its edit distance divided by length (1: no word in place), and whether that is enough."""

    permutation: list[int]
    distance: float
    reached_minimum: bool


def shuffle(
    words: Sequence[str],
    rng: Random,
    min_distance: float,
    forbidden: Sequence[Sequence[str]] = (),
    *,
    max_attempts: int = MAX_SHUFFLES,
) -> ShuffledOrder:
    """A permutation with at least the minimum distance that contains none of the forbidden sequences.

    If no attempt fulfils both, one without forbidden sequences is preferred to one with a larger distance.
    """
    best, best_rank = ShuffledOrder(list(range(len(words))), 0.0, False), (False, 0.0)
    for _ in range(max_attempts if len(set(words)) > 1 else 0):
        permutation = list(range(len(words)))
        rng.shuffle(permutation)
        shuffled = [words[index] for index in permutation]
        distance = edit_distance(words, shuffled) / len(words)
        is_allowed = not any(contains_sequence(shuffled, sequence) for sequence in forbidden)
        if (is_allowed, distance) > best_rank:
            reached = is_allowed and distance >= min_distance
            best, best_rank = ShuffledOrder(permutation, distance, reached), (is_allowed, distance)
        if best.reached_minimum:
            break
    return best


def contains_sequence(words: Sequence[str], sequence: Sequence[str]) -> bool:
    """Whether the words of a sequence stand next to each other, in order."""
    size = len(sequence)
    return any(list(words[start : start + size]) == list(sequence) for start in range(len(words) - size + 1))


def shuffle_words(sentence: Sentence, rng: Random, min_distance: float) -> Sentence:
    """The words in another order; the words of an answer stay together."""
    units = movable_units(sentence)
    order = shuffle([" ".join(sentence.words[index] for index in unit) for unit in units], rng, min_distance)
    words = identity_edits(sentence)
    return apply_edits(sentence, [words[index] for unit in order.permutation for index in units[unit]])


def shuffle_sentences(sentence: Sentence, rng: Random) -> Sentence:
    """The sentences of a text in another order, if it has several different ones."""
    ranges = sentence_ranges(sentence)
    if len({sentence.words[words.start : words.stop] for words in ranges}) < 2:
        return sentence
    order = list(range(len(ranges)))
    while [ranges[index] for index in order] == ranges:
        rng.shuffle(order)
    words = identity_edits(sentence)
    return apply_edits(sentence, [words[index] for number in order for index in ranges[number]])


def remove_function_words(sentence: Sentence) -> Sentence:
    """The text without articles, auxiliaries, prepositions, pronouns and conjunctions; negations stay.

    Function words are recognised by part of speech if annotated, else by a list of English words. A text without other
    words is not changed.
    """
    answers = answer_words(sentence)
    tags = sentence.pos or ("",) * len(sentence)
    remaining = [
        edit
        for edit, tag in zip(identity_edits(sentence), tags, strict=True)
        if edit.source_index in answers or edit.word.lower() in NEGATIONS or not _is_function_word(edit.word, tag)
    ]
    return apply_edits(sentence, remaining) if any(any(map(str.isalnum, edit.word)) for edit in remaining) else sentence


def add_typos(sentence: Sentence, rng: Random, typo_rate: float) -> Sentence:
    """A typo in this proportion of the words of four letters or more: letters swapped, dropped, doubled or replaced.

    The first and last letter stay, and so do the words of an answer.
    """
    answers = answer_words(sentence)
    eligible = [
        index
        for index, word in enumerate(sentence.words)
        if len(word) >= MIN_TYPO_LENGTH and word.isalpha() and index not in answers
    ]
    chosen: set[int] = set()
    if eligible and typo_rate > 0:
        chosen = set(rng.sample(eligible, min(len(eligible), max(1, round(typo_rate * len(eligible))))))
    edits = [
        EditedWord(misspell(edit.word, rng), edit.source_index) if edit.source_index in chosen else edit
        for edit in identity_edits(sentence)
    ]
    return apply_edits(sentence, edits)


def misspell(word: str, rng: Random) -> str:
    """The word with one typo between its first and last letter."""
    while True:
        index = rng.randrange(1, len(word) - 1)
        match rng.randrange(4):
            case 0 if index + 1 < len(word) - 1:
                misspelt = word[:index] + word[index + 1] + word[index] + word[index + 2 :]
            case 1:
                misspelt = word[:index] + word[index + 1 :]
            case 2:
                misspelt = word[:index] + word[index] + word[index:]
            case _:
                misspelt = word[:index] + rng.choice(LETTERS) + word[index + 1 :]
        if misspelt != word:
            return misspelt


def random_edit_of_equal_size(
    original: Sentence, attacked: Sentence, vocabulary: Sequence[str], rng: Random
) -> Sentence:
    """The original edited at random, with the length of the attacked text and its edit distance in words.

    New words are sampled from the vocabulary without the words of the original, so that the edit distance is exact. If
    the attack removed all words, all are replaced instead. Words of an answer stay.
    """
    original_words = {word.lower() for word in original.words}
    new_words = [word for word in vocabulary if word.lower() not in original_words]
    distance = edit_distance(original.words, attacked.words)
    if not new_words or not distance:
        return original
    growth = len(attacked) - len(original) if len(attacked) else 0
    editable = [index for index in range(len(original)) if index not in answer_words(original)]
    removed = set(rng.sample(editable, min(len(editable), max(0, -growth))))
    remaining = [index for index in editable if index not in removed]
    replaced = set(rng.sample(remaining, min(len(remaining), distance - abs(growth))))
    edits = [
        EditedWord(rng.choice(new_words), NO_SOURCE) if edit.source_index in replaced else edit
        for edit in identity_edits(original)
        if edit.source_index not in removed
    ]
    for _ in range(growth):
        edits.insert(_insertion_index(edits, original, rng), EditedWord(rng.choice(new_words), NO_SOURCE))
    return apply_edits(original, edits)


def _insertion_index(edits: Sequence[EditedWord], original: Sentence, rng: Random) -> int:
    """A random index at which a word can be inserted without splitting an answer."""
    within_answer = {index for span in original.answer_spans or () for index in range(span.start + 1, span.end)}
    allowed = [
        index
        for index in range(len(edits) + 1)
        if index == len(edits) or edits[index].source_index not in within_answer
    ]
    return rng.choice(allowed)


def _is_function_word(word: str, tag: str) -> bool:
    return tag in FUNCTION_TAGS if tag else word.lower() in FUNCTION_WORDS
