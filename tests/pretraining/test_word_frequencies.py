from __future__ import annotations

from collections import Counter

from pretraining.word_frequencies import count_forms, frequency_list


def test_contractions_and_hyphenated_words_are_counted_whole_and_by_parts() -> None:
    forms = count_forms(["I don’t know the well-known O'Hara's dog...", "Mr. Smith went to the U.S. in May."])
    expected = {
        "don't": 1, "do": 1, "n't": 1, "well-known": 1, "well": 1, "known": 1, "o'hara's": 1, "o'hara": 1, "'s": 1,
        "...": 1, "mr.": 1, "mr": 1, "u.s.": 1, "the": 2, "may": 1, "may.": 0,
    }  # fmt: skip
    assert {form: forms[form] for form in expected} == expected


def test_the_list_groups_forms_by_count() -> None:
    assert frequency_list(Counter({"a": 3, "c": 2, "b": 2, "d": 1})) == "3 a\n2 b c\n"
