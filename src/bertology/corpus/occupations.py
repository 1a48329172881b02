"""The forty occupations of WinoBias (zhao2018), for finding the one that its brackets leave unmarked."""

from __future__ import annotations

from bertology.corpus.sentence import Sentence, Span

_NAMES = """
driver supervisor janitor cook mover laborer worker chief developer carpenter manager lawyer farmer salesperson
physician guard analyst mechanic sheriff ceo attendant cashier teacher nurse assistant secretary auditor cleaner
receptionist clerk counselor designer hairdresser writer housekeeper baker accountant editor librarian tailor
"""
OCCUPATIONS: frozenset[str] = frozenset(_NAMES.split())
_BEFORE = frozenset({"the", "a", "an"})


def other_occupation(sentence: Sentence) -> Span | None:
    """The first occupation outside the words marked as antecedent, with its article; None where there is none."""
    marked = sentence.marks.get("antecedent", ())
    for word, form in enumerate(sentence.words):
        if form.lower() not in OCCUPATIONS or word in marked:
            continue
        start = word
        while start > 0 and word - start < 2 and sentence.words[start].lower() not in _BEFORE:
            start -= 1
        return Span(start if sentence.words[start].lower() in _BEFORE else word, word + 1)
    return None
