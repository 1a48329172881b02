"""Errors as one paragraph in JSON: what was found, what was expected, what to do; never a path or a traceback."""

from __future__ import annotations

import re

from pydantic import BaseModel

from bertology.errors import ExplainedError, Refusal
from bertology.input_files import path_exists

_PATH = re.compile(r"(?<![\w.:/])(/[^\s/'\"`,;:()]+)((?:/[^\s/'\"`,;:()]+)+)")


class Problem(BaseModel):
    """A refused request; `paragraph` is the three sentences together."""

    problem: str
    expected: str
    remedy: str
    paragraph: str


class ApiError(Exception):
    """A refusal with the status of its answer."""

    def __init__(self, status: int, refusal: Refusal) -> None:
        super().__init__(str(refusal))
        self.status = status
        self.refusal = refusal


def describe_problem(error: ExplainedError) -> Problem:
    """The error without paths of the server's machine."""
    parts = [hide_paths(text) for text in (error.problem, error.expected, error.remedy)]
    return Problem(
        problem=parts[0], expected=parts[1], remedy=parts[2], paragraph=str(Refusal(parts[0], parts[1], parts[2]))
    )


def hide_paths(text: str) -> str:
    """The text with the last part of absolute paths only."""
    return _PATH.sub(_last_part, text)


def _last_part(match: re.Match[str]) -> str:
    is_path = path_exists(match[1])
    return match[2].rpartition("/")[2] if is_path else match[0]


def internal_error() -> Refusal:
    """What a client is told of a mistake of the program; the traceback is in the log of the server."""
    return Refusal(
        "The server failed to answer this request",
        "an answer: this is a mistake in bertology, not in the request",
        "The terminal of `bertology serve` shows what failed; please report it",
    )
