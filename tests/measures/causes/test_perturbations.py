"""Each change of a text does what it says, keeps what it must, and is the same for the same seed."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from bertology.corpus.sentence import Sentence, Span, from_text, sentence
from bertology.maths.edit_distance import edit_distance
from bertology.measures.causes.perturbations import (
    NEGATIONS,
    Shuffling,
    edited_at_random,
    mistyped,
    sentences_shuffled,
    shuffle,
    slip,
    within,
    without_function_words,
    words_shuffled,
)
from bertology.measures.causes.rewording import Slot, kept_together, reworded, sentences_within, slots

TEXT = 'The cat saw the dog. "It ran away!" Mr. Smith did not see it, and nobody told him.'
RULE = Shuffling()
VOCABULARY = ["house", "river", "green", "seven", "walks", "The", "cat"]


def answered(text: str, start: int, end: int) -> Sentence:
    return replace(from_text(text), answers=(Span(start, end),))


def answer(part: Sentence) -> tuple[str, ...]:
    assert part.answers is not None
    (span,) = part.answers
    return part.words[span.start : span.end]


def test_a_text_in_its_own_words_is_the_text() -> None:
    part = from_text(TEXT)
    assert reworded(part, slots(part)) == part


def test_rewording_keeps_what_is_known_of_single_words_and_whole_answers() -> None:
    part = replace(sentence(["a", "b", "c", "d"]), pos=("A", "B", "C", "D"), answers=(Span(1, 3),), heads=(1, -1, 1, 1))
    turned = reworded(part, [Slot("d", 3), Slot("b", 1), Slot("c", 2), Slot("a", 0)])
    assert turned.words == ("d", "b", "c", "a") and turned.pos == ("D", "B", "C", "A")
    assert turned.answers == (Span(1, 3),) and turned.heads is None
    assert turned.text == "d b c a" and [turned.text[a:b] for a, b in turned.offsets] == list(turned.words)
    assert reworded(part, [Slot("c", 2), Slot("b", 1)]).answers == ()
    assert reworded(part, [Slot("a", 0), Slot("x")]).pos is None


def test_sentences_end_at_full_stops_and_lines() -> None:
    part = from_text(TEXT + "\nW: Yes")
    said = [" ".join(part.words[p] for p in places) for places in sentences_within(part)]
    assert said == [
        "The cat saw the dog .", '" It ran away ! "', "Mr . Smith did not see it , and nobody told him .", "W : Yes",
    ]  # fmt: skip
    assert sentences_within(sentence([])) == []


def test_words_are_shuffled_far_enough_and_none_is_lost() -> None:
    part = from_text(TEXT)
    other = words_shuffled(part, Random(0), RULE)
    assert Counter(other.words) == Counter(part.words)
    assert edit_distance(part.words, other.words) / len(part) >= RULE.degree
    assert words_shuffled(part, Random(0), RULE) == other != words_shuffled(part, Random(1), RULE)
    assert words_shuffled(from_text("Yes"), Random(0), RULE) == from_text("Yes")


def test_an_answer_is_never_torn_apart_or_changed() -> None:
    part = answered("He went to New York City with his old friend on Monday.", 3, 6)
    for seed in range(20):
        draw = Random(seed)
        for other in (
            words_shuffled(part, draw, RULE),
            sentences_shuffled(part, draw),
            without_function_words(part),
            mistyped(part, draw, 1.0),
            edited_at_random(part, words_shuffled(part, draw, RULE), VOCABULARY, draw),
            edited_at_random(part, reworded(part, [*slots(part), *map(Slot, "xyz")]), VOCABULARY, draw),
        ):
            assert answer(other) == ("New", "York", "City")
    overlapping = replace(part, answers=(Span(3, 5), Span(4, 6), Span(8, 9)))
    assert [len(unit) for unit in kept_together(overlapping)].count(3) == 1


def test_a_shuffle_is_tried_until_it_is_far_enough_and_avoids_what_it_must() -> None:
    words = ["what", "did", "ann", "see", "a", "red", "dog", "a", "cat"]
    avoided = [["a", "red", "dog"], ["a", "cat"]]
    for seed in range(50):
        order = shuffle(words, Random(seed), Shuffling(0.7), avoided)
        said = [words[place] for place in order.places]
        assert order.met and order.degree == edit_distance(words, said) / len(words) >= 0.7
        assert sorted(order.places) == list(range(len(words)))
        assert not any(within(said, some) for some in avoided)


def test_what_cannot_be_reached_is_told() -> None:
    assert shuffle(["a"], Random(0), RULE) == ([0], 0.0, False)
    assert shuffle(["a", "a"], Random(0), RULE).degree == 0.0
    unavoidable = shuffle(["a", "b", "c"], Random(0), RULE, [["b"]])
    assert not unavoidable.met and unavoidable.degree > 0
    assert not shuffle(["a", "b", "c", "d", "a", "b"], Random(0), Shuffling(1.0, tries=3)).met


def test_within_means_in_one_piece() -> None:
    assert within("abc", "bc") and not within("abc", "ac")
    assert not within([], ["a"])


def test_sentences_are_shuffled_whole() -> None:
    part = from_text("One is here. Two is there! Three?")
    other = sentences_shuffled(part, Random(0))
    assert other.words != part.words
    whole = {part.words[s.start : s.stop] for s in sentences_within(part)}
    assert {other.words[s.start : s.stop] for s in sentences_within(other)} == whole
    alone = from_text("Only one sentence.")
    assert sentences_shuffled(alone, Random(0)) == alone


def test_function_words_go_and_negations_stay() -> None:
    part = from_text("The cat did not see it, and nobody told him.")
    assert without_function_words(part).words == ("cat", "not", "see", ",", "nobody", "told", ".")
    tagged = replace(from_text("The can is not here"), pos=("DET", "NOUN", "AUX", "PART", "ADV"))
    assert without_function_words(tagged).words == ("can", "not", "here")
    assert without_function_words(from_text("It was he.")) == from_text("It was he.")
    assert "not" in NEGATIONS


def test_slips_keep_first_and_last_letters() -> None:
    draw = Random(0)
    for word in ("word", "Letter", "aaaa", "sentences"):
        for _ in range(50):
            typed = slip(word, draw)
            assert typed != word and typed[0] == word[0] and typed[-1] == word[-1]
            assert abs(len(typed) - len(word)) <= 1 and edit_distance(word, typed) <= 2
    part = from_text("the quick brown foxes jumped over the lazy dogs again and again today")
    changed = sum(a != b for a, b in zip(part.words, mistyped(part, draw, 0.5).words, strict=True))
    assert changed == round(0.5 * sum(len(word) >= 4 for word in part.words))
    assert mistyped(part, draw, 0.0) == part


@pytest.mark.parametrize(
    "attacked",
    [
        "cat the saw dog the .",
        "the cat",
        "",
        "the cat saw the dog . and so on",
        "another text",
        "the cat saw the dog .",
    ],
)
def test_random_edits_are_as_long_and_as_far(attacked: str) -> None:
    part = from_text("the cat saw the dog .")
    other = from_text(attacked)
    for seed in range(10):
        found = edited_at_random(part, other, VOCABULARY, Random(seed))
        assert edit_distance(part.words, found.words) == edit_distance(part.words, other.words)
        assert len(found) == (len(other) or len(part))
    assert edited_at_random(part, other, ["the", "Cat"], Random(0)) == part
