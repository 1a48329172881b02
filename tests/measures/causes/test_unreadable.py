"""Si et al.'s seven attacks, one by one: what they change, what they leave, and what they cannot do."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from bertology.corpus.corpus import Item
from bertology.corpus.sentence import from_text
from bertology.measures.causes.attack_list import ATTACKS, Settings, random_form, vocabulary_of, words_changed
from bertology.measures.causes.perturbations import Shuffling, within
from bertology.measures.causes.unreadable import UNREADABLE, Misled, Rule

PASSAGE = "Ann has a red dog. Bob found an old green bag on the hill. It was late in the evening."
OPTIONS = ("a red dog", "an old green bag", "the evening hill", "late")


def item(right: int = 1, options: tuple[str, ...] = OPTIONS[:3]) -> Item:
    return Item(tuple(map(from_text, (PASSAGE, "What did Bob find there?", *options))), "choice", str(right))


def misled(name: str, given: Item | None = None, *, seed: int = 0, rule: Rule | None = None) -> Misled:
    return UNREADABLE[name](given or item(), Random(seed), rule or Rule())


def bag(*texts: str) -> Counter[str]:
    return Counter(word for text in texts for word in from_text(text).words)


def distractors(given: Item) -> list[tuple[str, ...]]:
    return [part.words for place, part in enumerate(given.parts[2:]) if place != int(given.label or 0)]


def test_there_are_seven_and_none_that_the_paper_lacks() -> None:
    assert len(UNREADABLE) == 7 and "AddAns2Pas" not in " ".join(UNREADABLE)


@pytest.mark.parametrize("name", UNREADABLE)
@pytest.mark.parametrize("right", [0, 1, 2])
def test_question_right_option_and_label_stay(name: str, right: int) -> None:
    before, after = item(right), misled(name, item(right)).item
    assert after.label == before.label and after.kind == "choice" and len(after.parts) == len(before.parts)
    assert after.parts[1] == before.parts[1] and after.parts[2 + right] == before.parts[2 + right]
    assert after.parts[0].words[: len(before.parts[0])] == before.parts[0].words
    changed = [one != other for one, other in zip(before.parts, after.parts, strict=True)]
    others = [place for place in range(2, 5) if place != 2 + right]
    assert [place for place, differs in enumerate(changed) if differs] == ([0] if "Pas" in name else others)
    assert misled(name, before).item == misled(name, before).item


def test_the_passage_gets_the_words_of_question_and_distractors() -> None:
    for seed in range(20):
        found = misled("AddSent2Pas-Shuffle", seed=seed)
        added = found.item.parts[0].words[len(from_text(PASSAGE)) :]
        assert Counter(added) == bag("What did Bob find there?", OPTIONS[0], OPTIONS[2])
        assert not any(within(added, from_text(option).words) for option in OPTIONS)
        assert found.short == 0 and found.degrees[0] >= Rule().shuffling.degree


def test_a_distractor_of_one_word_cannot_be_hidden() -> None:
    assert misled("AddSent2Pas-Shuffle", item(1, OPTIONS[1:])).short == 1


@pytest.mark.parametrize("name", ["AddSent2Opt", "AddSent2Opt-Shuffle", "Sent2Opt-Shuffle"])
def test_sentences_of_the_passage(name: str) -> None:
    sentences = [from_text(text + ".").words for text in PASSAGE.rstrip(".").split(". ")]
    found = misled(name).item
    for old, new in zip(distractors(item()), distractors(found), strict=True):
        kept = () if name.startswith("Sent2Opt") else old
        assert any(Counter(new) == Counter((*kept, *some)) for some in sentences)
        if name == "AddSent2Opt":
            assert any(new == (*old, *some) for some in sentences)


def test_one_sentence_for_all_distractors_is_an_option() -> None:
    def same(rule: Rule) -> list[bool]:
        pairs = [distractors(misled("Sent2Opt-Shuffle", seed=seed, rule=rule).item) for seed in range(20)]
        return [Counter(one) == Counter(other) for one, other in pairs]

    assert all(same(Rule(shared=True))) and not all(same(Rule()))


@pytest.mark.parametrize("name", ["AddAns2Opt", "AddAns2Opt-Shuffle", "Ans2Opt-Shuffle"])
def test_the_right_answer(name: str) -> None:
    right = from_text(OPTIONS[1]).words
    for old, new in zip(distractors(item()), distractors(misled(name).item), strict=True):
        assert Counter(new) == Counter((*(() if name.startswith("Ans2Opt") else old), *right))
        assert new != right
        assert name != "AddAns2Opt" or new == (*old, *right)


def test_an_answer_of_one_word_makes_no_second_right_answer() -> None:
    before = item(3, OPTIONS)
    found = misled("Ans2Opt-Shuffle", before)
    assert found.item == before and found.short == 3


def test_degrees_are_reached() -> None:
    for name in UNREADABLE:
        found = misled(name, rule=Rule(Shuffling(0.7)))
        assert all(degree >= 0.7 for degree in found.degrees) and bool(found.degrees) == ("Shuffle" in name)


@pytest.mark.parametrize("name", [name for name, attack in ATTACKS.items() if "choice" in attack.kinds])
def test_random_edits_go_as_far_and_nowhere_else(name: str) -> None:
    others = [f"{a} {b}" for a in ("lamps", "roads") for b in ("sing", "fly")]
    before, vocabulary = item(), [word for text in others for word in text.split()]
    after = ATTACKS[name](before, Settings(), 0).item
    found = random_form(before, after, vocabulary, 0)
    assert words_changed(before, found) == words_changed(before, after)
    assert [a.words != b.words for a, b in zip(before.parts, found.parts, strict=True)] == [
        a.words != b.words for a, b in zip(before.parts, after.parts, strict=True)
    ]


def test_what_is_drawn_depends_on_the_item_alone() -> None:
    assert vocabulary_of([item(), item(0)]) == vocabulary_of([item(0), item()])
    one, other = ATTACKS["words shuffled"](item(), Settings(), 0), ATTACKS["words shuffled"](item(), Settings(), 1)
    assert one.item != other.item
