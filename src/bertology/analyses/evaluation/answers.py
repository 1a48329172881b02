"""Answers from counts of correct predictions: one record per example and condition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bertology.corpus.example import Example
from bertology.estimates.metrics import Counts
from bertology.results.answers import Answer


def example_item(example: Example, number: int) -> Answer:
    """The id of an example, or its number (from 0) counted from 1, its texts and its gold label."""
    return {
        "item": example.id or str(number + 1),
        "text": " | ".join(segment.text for segment in example.segments),
        "gold": example.label or "",
    }


def count_answers(examples: Sequence[Example], counts: Counts, condition: Answer) -> Iterator[Answer]:
    """What is correct of each example under a condition.

    `total` is what the score counts in the example (1 for a class; words, entities), `correct` its proportion that is
    right: scores are pooled over all that is counted. Examples without any are left out.
    """
    for number, example in enumerate(examples):
        correct, total = float(counts.correct[number]), float(counts.total[number])
        if total:
            yield example_item(example, number) | condition | {"total": total, "correct": correct / total}


def run_answers(examples: Sequence[Example], runs: Sequence[Counts], condition: Answer) -> Iterator[Answer]:
    """The answers of several runs; `run` is their number from 1."""
    for number, counts in enumerate(runs):
        yield from count_answers(examples, counts, condition | {"run": number + 1})
