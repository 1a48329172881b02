"""Si et al.'s seven attacks: what each changes, what it leaves intact, and what it cannot do."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from bertology.analyses.text_attacks.distractors import DISTRACTOR_ATTACKS, AttackedExample
from bertology.analyses.text_attacks.perturbations import AttackConfig, contains_sequence
from bertology.analyses.text_attacks.registry import ATTACKS, random_edit, word_edit_distance, word_pool
from bertology.corpus.example import Example
from bertology.corpus.sentence import sentence_from_text

PASSAGE = "Ann has a red dog. Bob found an old green bag on the hill. It was late in the evening."
OPTIONS = ("a red dog", "an old green bag", "the evening hill", "late")


def build_example(gold: int = 1, options: tuple[str, ...] = OPTIONS[:3]) -> Example:
    texts = (PASSAGE, "What did Bob find there?", *options)
    return Example(tuple(map(sentence_from_text, texts)), "choice", str(gold))


def attack(
    name: str, example: Example | None = None, *, seed: int = 0, config: AttackConfig | None = None
) -> AttackedExample:
    return DISTRACTOR_ATTACKS[name][1](example or build_example(), Random(seed), config or AttackConfig())


def bag(*texts: str) -> Counter[str]:
    return Counter(word for text in texts for word in sentence_from_text(text).words)


def distractors(example: Example) -> list[tuple[str, ...]]:
    return [option.words for index, option in enumerate(example.segments[2:]) if index != int(example.label or 0)]


def test_there_are_the_seven_attacks_of_the_paper() -> None:
    assert len(DISTRACTOR_ATTACKS) == 7 and "AddAns2Pas" not in " ".join(DISTRACTOR_ATTACKS)


@pytest.mark.parametrize("name", DISTRACTOR_ATTACKS)
@pytest.mark.parametrize("gold", [0, 1, 2])
def test_question_gold_option_and_label_are_unchanged(name: str, gold: int) -> None:
    before, after = build_example(gold), attack(name, build_example(gold)).example
    assert after.label == before.label and after.kind == "choice" and len(after.segments) == len(before.segments)
    assert after.segments[1] == before.segments[1] and after.segments[2 + gold] == before.segments[2 + gold]
    assert after.segments[0].words[: len(before.segments[0])] == before.segments[0].words
    changed = [i for i, (a, b) in enumerate(zip(before.segments, after.segments, strict=True)) if a != b]
    assert changed == ([0] if "Pas" in name else [index for index in range(2, 5) if index != 2 + gold])
    assert attack(name, before).example == attack(name, before).example


def test_the_passage_gets_the_words_of_question_and_distractors() -> None:
    for seed in range(20):
        attacked = attack("AddSent2Pas-Shuffle", seed=seed)
        added = attacked.example.segments[0].words[len(sentence_from_text(PASSAGE)) :]
        assert Counter(added) == bag("What did Bob find there?", OPTIONS[0], OPTIONS[2])
        assert not any(contains_sequence(added, sentence_from_text(option).words) for option in OPTIONS)
        assert attacked.n_below_minimum == 0
        assert attacked.edit_distances[0] >= AttackConfig().shuffle_distance


def test_a_distractor_of_one_word_always_occurs_intact() -> None:
    assert attack("AddSent2Pas-Shuffle", build_example(1, OPTIONS[1:])).n_below_minimum == 1


@pytest.mark.parametrize("name", ["AddSent2Opt", "AddSent2Opt-Shuffle", "Sent2Opt-Shuffle"])
def test_distractors_get_sentences_of_the_passage(name: str) -> None:
    sentences = [sentence_from_text(text + ".").words for text in PASSAGE.rstrip(".").split(". ")]
    attacked = attack(name).example
    for old, new in zip(distractors(build_example()), distractors(attacked), strict=True):
        prefix = () if name.startswith("Sent2Opt") else old
        assert any(Counter(new) == Counter((*prefix, *sentence)) for sentence in sentences)
        if name == "AddSent2Opt":
            assert any(new == (*old, *sentence) for sentence in sentences)


def test_all_distractors_can_share_one_sentence() -> None:
    def is_shared(config: AttackConfig) -> list[bool]:
        pairs = [distractors(attack("Sent2Opt-Shuffle", seed=seed, config=config).example) for seed in range(20)]
        return [Counter(first) == Counter(second) for first, second in pairs]

    assert all(is_shared(AttackConfig(same_distractor=True))) and not all(is_shared(AttackConfig()))


@pytest.mark.parametrize("name", ["AddAns2Opt", "AddAns2Opt-Shuffle", "Ans2Opt-Shuffle"])
def test_distractors_get_the_correct_answer(name: str) -> None:
    answer = sentence_from_text(OPTIONS[1]).words
    for old, new in zip(distractors(build_example()), distractors(attack(name).example), strict=True):
        assert Counter(new) == Counter((*(() if name.startswith("Ans2Opt") else old), *answer))
        assert new != answer
        assert name != "AddAns2Opt" or new == (*old, *answer)


def test_an_answer_of_one_word_does_not_become_a_second_correct_option() -> None:
    before = build_example(3, OPTIONS)
    attacked = attack("Ans2Opt-Shuffle", before)
    assert attacked.example == before and attacked.n_below_minimum == 3


def test_shuffles_reach_the_minimum_distance() -> None:
    for name in DISTRACTOR_ATTACKS:
        distances = attack(name, config=AttackConfig(shuffle_distance=0.7)).edit_distances
        assert all(distance >= 0.7 for distance in distances) and bool(distances) == ("Shuffle" in name)


@pytest.mark.parametrize("name", [name for name, attack in ATTACKS.items() if "choice" in attack.example_kinds])
def test_random_edits_have_the_same_distance_in_the_same_segments(name: str) -> None:
    before, vocabulary = build_example(), ["lamps", "roads", "sing", "fly"]
    attacked = ATTACKS[name](before, AttackConfig(), 0).example
    edited = random_edit(before, attacked, vocabulary, Random(0))
    assert word_edit_distance(before, edited) == word_edit_distance(before, attacked)
    assert [a.words != b.words for a, b in zip(before.segments, edited.segments, strict=True)] == [
        a.words != b.words for a, b in zip(before.segments, attacked.segments, strict=True)
    ]


def test_random_choices_depend_on_the_text_and_the_seed() -> None:
    assert word_pool([build_example(), build_example(0)]) == word_pool([build_example(0), build_example()])
    first, second = (ATTACKS["shuffled words"](build_example(), AttackConfig(), seed).example for seed in (0, 1))
    assert first != second
    relabelled = ATTACKS["shuffled words"](build_example(0), AttackConfig(), 0).example
    assert relabelled.segments == first.segments
