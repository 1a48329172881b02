"""Errors that are told in one paragraph: `Refusal`, a user's mistake, `MachineError`, a failure of the machine.

`CostError` is work beyond a bound. The command line prints them and exits with status 2, or 1 for a failure of the
machine; any other exception that escapes is a bug. Messages and
results write counts with `count_noun`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable


class LoadWarning(UserWarning):
    """A model was loaded otherwise than its configuration says; the command line prints it as a message."""


class DamagedFileWarning(UserWarning):
    """A stored file was damaged, and what it held is computed again; the command line prints it as a message."""


class ExplainedError(Exception):
    """An error that is told in one paragraph: the problem, what was expected, and a remedy."""

    def __init__(self, problem: str, expected: str, remedy: str, *, location: str = "") -> None:
        super().__init__(problem, expected, remedy)
        self.problem = problem
        self.expected = expected
        self.remedy = remedy
        self.location = location

    def __str__(self) -> str:
        prefix = f"{self.location}: " if self.location else ""
        return one_line(
            f"{prefix}{_sentence(self.problem)} Expected {_sentence(self.expected)} {_sentence(self.remedy)}"
        )


class Refusal(ExplainedError):
    """Input that would give wrong numbers, refused early with a remedy.

    It says something about the model, the corpus or the options, so that a claim may not apply because of it.
    """


class MachineError(ExplainedError):
    """The machine cannot go on, whatever the input: no space, no memory, a folder that cannot be written.

    It is no `Refusal`: it says nothing about a model, and ends the command with its `status`.
    """

    status = 1


class CostError(ExplainedError):
    """Work that is estimated to take longer, or more space, than is allowed: refused before it starts.

    It is no `Refusal`: it says nothing about a model, and ends the command.
    """


class UnusedWorkerWarning(UserWarning):
    """A worker of an engine cannot be used, and the others go on; the command line prints it as a message."""


def one_line(text: str) -> str:
    """The text as one paragraph: what a file or a person put into it can neither break lines nor move the cursor."""
    if text.isprintable():
        return text
    shown = (c if c.isprintable() else " " if c.isspace() else repr(c)[1:-1] for c in text)
    return " ".join("".join(shown).split(" "))


MAX_SENTENCE_LENGTH = 3000
"""A file can hold a name of any length; a message cuts it."""
MAX_LISTED_NAMES = 30
"""Longer lists of names are cut to the closest ones, if there are any and `remedy` says how to list all."""


def unknown_name(kind: str, name: str, valid_names: Iterable[str], *, remedy: str = "") -> Refusal:
    """A refusal of an unknown name that lists the valid names, or the closest of many, and suggests the closest."""
    names = sorted(valid_names)
    closest = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    suggestion = f"Did you mean {closest[0]!r}? " if closest else ""
    is_shortened = bool(closest and remedy and len(names) > MAX_LISTED_NAMES)
    listed = ", ".join(closest if is_shortened else names) or "(none)"
    return Refusal(
        f"There is no {kind} called {name!r}",
        f"one of {len(names)} names, the closest being: {listed}" if is_shortened else f"one of: {listed}",
        suggestion + (remedy or "Choose a name from that list"),
    )


_IRREGULAR = {"halves": "half", "indices": "index", "matrices": "matrix", "analyses": "analysis"}


def count_noun(count: int, plural: str) -> str:
    """A count with its noun, which is given in the plural: "1 skipped example", "2 skipped examples".

    The first plural word of a phrase is its noun, as in "inputs with more tokens".
    """
    return f"{count} {_singular(plural) if count == 1 else plural}"


def _singular(phrase: str) -> str:
    for match in re.finditer(r"[A-Za-z]+", phrase):
        word = _singular_word(match.group())
        if word != match.group():
            return phrase[: match.start()] + word + phrase[match.end() :]
    return phrase


def _singular_word(word: str) -> str:
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if word.endswith("ies"):
        return f"{word[:-3]}y"
    if word.endswith(("sses", "ches", "shes", "xes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def _sentence(text: str) -> str:
    text = text if len(text) <= MAX_SENTENCE_LENGTH else f"{text[:MAX_SENTENCE_LENGTH]} ..."
    return text if text.endswith((".", "?", "!")) else text + "."
