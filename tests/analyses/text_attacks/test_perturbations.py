"""Perturbations of a text do what they say, keep answers intact, and are reproducible."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from bertology.analyses.text_attacks.perturbations import (
    NEGATIONS,
    add_typos,
    contains_sequence,
    misspell,
    random_edit_of_equal_size,
    remove_function_words,
    shuffle,
    shuffle_sentences,
    shuffle_words,
)
from bertology.analyses.text_attacks.word_edits import (
    EditedWord,
    apply_edits,
    identity_edits,
    movable_units,
    sentence_ranges,
)
from bertology.corpus.sentence import Sentence, Span, sentence_from_text, sentence_from_words
from bertology.numerics.edit_distance import edit_distance

TEXT = 'The cat saw the dog. "It ran away!" Mr. Smith did not see it, and nobody told him.'
MIN_DISTANCE = 0.6
VOCABULARY = ["house", "river", "green", "seven", "walks", "The", "cat"]


def with_answer(text: str, start: int, end: int) -> Sentence:
    return replace(sentence_from_text(text), answer_spans=(Span(start, end),))


def answer(sentence: Sentence) -> tuple[str, ...]:
    assert sentence.answer_spans is not None
    (span,) = sentence.answer_spans
    return sentence.words[span.start : span.end]


def test_identity_edits_give_the_same_text() -> None:
    sentence = sentence_from_text(TEXT)
    assert apply_edits(sentence, identity_edits(sentence)) == sentence


def test_edits_keep_word_annotations_and_intact_answers() -> None:
    sentence = replace(
        sentence_from_words(["a", "b", "c", "d"]),
        pos=("A", "B", "C", "D"),
        answer_spans=(Span(1, 3),),
        governors=(1, -1, 1, 1),
    )
    moved = apply_edits(sentence, [EditedWord("d", 3), EditedWord("b", 1), EditedWord("c", 2), EditedWord("a", 0)])
    assert moved.words == ("d", "b", "c", "a") and moved.pos == ("D", "B", "C", "A")
    assert moved.answer_spans == (Span(1, 3),) and moved.governors is None
    assert moved.text == "d b c a" and [moved.text[a:b] for a, b in moved.offsets] == list(moved.words)
    assert apply_edits(sentence, [EditedWord("c", 2), EditedWord("b", 1)]).answer_spans == ()
    assert apply_edits(sentence, [EditedWord("a", 0), EditedWord("x")]).pos is None


def test_sentences_end_at_full_stops_and_line_breaks() -> None:
    text = sentence_from_text(TEXT + "\nW: Yes")
    sentences = [" ".join(text.words[index] for index in indices) for indices in sentence_ranges(text)]
    assert sentences == [
        "The cat saw the dog .", '" It ran away ! "', "Mr . Smith did not see it , and nobody told him .", "W : Yes",
    ]  # fmt: skip
    assert sentence_ranges(sentence_from_words([])) == []


def test_shuffled_words_are_complete_and_far_enough() -> None:
    sentence = sentence_from_text(TEXT)
    shuffled = shuffle_words(sentence, Random(0), MIN_DISTANCE)
    assert Counter(shuffled.words) == Counter(sentence.words)
    assert edit_distance(sentence.words, shuffled.words) / len(sentence) >= MIN_DISTANCE
    assert (
        shuffle_words(sentence, Random(0), MIN_DISTANCE) == shuffled != shuffle_words(sentence, Random(1), MIN_DISTANCE)
    )
    assert shuffle_words(sentence_from_text("Yes"), Random(0), MIN_DISTANCE) == sentence_from_text("Yes")


def test_an_answer_is_never_split_or_changed() -> None:
    sentence = with_answer("He went to New York City with his old friend on Monday.", 3, 6)
    for seed in range(20):
        rng = Random(seed)
        longer = apply_edits(sentence, [*identity_edits(sentence), *map(EditedWord, "xyz")])
        for perturbed in (
            shuffle_words(sentence, rng, MIN_DISTANCE),
            shuffle_sentences(sentence, rng),
            remove_function_words(sentence),
            add_typos(sentence, rng, 1.0),
            random_edit_of_equal_size(sentence, shuffle_words(sentence, rng, MIN_DISTANCE), VOCABULARY, rng),
            random_edit_of_equal_size(sentence, longer, VOCABULARY, rng),
        ):
            assert answer(perturbed) == ("New", "York", "City")
    overlapping = replace(sentence, answer_spans=(Span(3, 5), Span(4, 6), Span(8, 9)))
    assert [len(unit) for unit in movable_units(overlapping)].count(3) == 1


def test_a_shuffle_reaches_the_minimum_distance_and_avoids_forbidden_sequences() -> None:
    words = ["what", "did", "ann", "see", "a", "red", "dog", "a", "cat"]
    forbidden = [["a", "red", "dog"], ["a", "cat"]]
    for seed in range(50):
        order = shuffle(words, Random(seed), 0.7, forbidden)
        shuffled = [words[index] for index in order.permutation]
        assert order.reached_minimum and order.distance == edit_distance(words, shuffled) / len(words) >= 0.7
        assert sorted(order.permutation) == list(range(len(words)))
        assert not any(contains_sequence(shuffled, sequence) for sequence in forbidden)


def test_a_shuffle_that_cannot_reach_the_minimum_says_so() -> None:
    assert shuffle(["a"], Random(0), MIN_DISTANCE) == ([0], 0.0, False)
    assert shuffle(["a", "a"], Random(0), MIN_DISTANCE).distance == 0.0
    unavoidable = shuffle(["a", "b", "c"], Random(0), MIN_DISTANCE, [["b"]])
    assert not unavoidable.reached_minimum and unavoidable.distance > 0
    assert not shuffle(["a", "b", "c", "d", "a", "b"], Random(0), 1.0, max_attempts=3).reached_minimum


def test_a_contained_sequence_is_contiguous() -> None:
    assert contains_sequence("abc", "bc") and not contains_sequence("abc", "ac")
    assert not contains_sequence([], ["a"])


def test_sentences_are_shuffled_intact() -> None:
    text = sentence_from_text("One is here. Two is there! Three?")
    shuffled = shuffle_sentences(text, Random(0))
    assert shuffled.words != text.words
    sentences = {text.words[indices.start : indices.stop] for indices in sentence_ranges(text)}
    assert {shuffled.words[indices.start : indices.stop] for indices in sentence_ranges(shuffled)} == sentences
    single = sentence_from_text("Only one sentence.")
    assert shuffle_sentences(single, Random(0)) == single


def test_function_words_are_removed_and_negations_stay() -> None:
    sentence = sentence_from_text("The cat did not see it, and nobody told him.")
    assert remove_function_words(sentence).words == ("cat", "not", "see", ",", "nobody", "told", ".")
    tagged = replace(sentence_from_text("The can is not here"), pos=("DET", "NOUN", "AUX", "PART", "ADV"))
    assert remove_function_words(tagged).words == ("can", "not", "here")
    assert remove_function_words(sentence_from_text("It was he.")) == sentence_from_text("It was he.")
    assert "not" in NEGATIONS


def test_typos_keep_first_and_last_letters() -> None:
    rng = Random(0)
    for word in ("word", "Letter", "aaaa", "sentences"):
        for _ in range(50):
            misspelt = misspell(word, rng)
            assert misspelt != word and misspelt[0] == word[0] and misspelt[-1] == word[-1]
            assert abs(len(misspelt) - len(word)) <= 1 and edit_distance(word, misspelt) <= 2
    sentence = sentence_from_text("the quick brown foxes jumped over the lazy dogs again and again today")
    n_changed = sum(a != b for a, b in zip(sentence.words, add_typos(sentence, rng, 0.5).words, strict=True))
    assert n_changed == round(0.5 * sum(len(word) >= 4 for word in sentence.words))
    assert add_typos(sentence, rng, 0.0) == sentence


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
def test_random_edits_have_the_length_and_distance_of_the_attack(attacked: str) -> None:
    original, perturbed = sentence_from_text("the cat saw the dog ."), sentence_from_text(attacked)
    for seed in range(10):
        edited = random_edit_of_equal_size(original, perturbed, VOCABULARY, Random(seed))
        assert edit_distance(original.words, edited.words) == edit_distance(original.words, perturbed.words)
        assert len(edited) == (len(perturbed) or len(original))
    assert random_edit_of_equal_size(original, perturbed, ["the", "Cat"], Random(0)) == original
