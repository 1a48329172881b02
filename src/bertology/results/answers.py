"""Answers of a result: what was predicted for each item, to compare models item by item; written as CSV or JSON lines.

An answer is a record. `item` identifies the item (the id of the example, or its number from 1, and the word or span);
`series` is `model` or the name of a baseline; `gold` and `prediction` are labels, scores and losses are numbers;
`correct` is between 0 and 1. Further fields, such as `layer`, `seed` or `condition`, say when the answer was given.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bertology.atomic_files import check_writable, write_atomically
from bertology.errors import Refusal

if TYPE_CHECKING:
    from bertology.results.result import Result

Answer = dict[str, Any]
AnswerSource = Callable[[], Iterable[Answer]]
"""Lists the answers when they are asked for, because there can be millions."""

SUFFIXES = (".csv", ".jsonl")


def check_answers_writable(path: Path) -> None:
    """Refuse, before any computation, a file that cannot be written: unknown suffix or missing folder."""
    if path.suffix.lower() not in SUFFIXES:
        ending = f"ends in {path.suffix!r}" if path.suffix else "has no suffix"
        raise Refusal(
            f"{path} {ending}, which is not a format of answers",
            f"one of: {', '.join(SUFFIXES)}",
            "Give the file one of these suffixes",
        )
    check_writable(path)


def save_answers(result: Result, path: Path) -> int:
    """Write the answers of a result in the format of the file's suffix; the number of answers."""
    check_answers_writable(path)
    source = {f"run_{name}": value for name, value in result.source_fields().items()}
    answers = [answer | source for answer in result.answers()]
    if not answers:
        raise Refusal(
            f"{result.analysis} has no answers to single items with these options",
            "an analysis with items, in the view that scores them",
            "Leave out --answers, or choose another view with --show",
        )
    if path.suffix.lower() == ".jsonl":
        text = "".join(json.dumps(answer, ensure_ascii=False) + "\n" for answer in answers)
    else:
        stream = io.StringIO()
        columns = dict.fromkeys(name for answer in answers for name in answer)
        writer = csv.DictWriter(stream, list(columns), lineterminator="\n")
        writer.writeheader()
        writer.writerows(answers)
        text = stream.getvalue()
    write_atomically(path, text.encode("utf-8", "replace"))
    return len(answers)
