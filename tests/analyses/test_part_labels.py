"""Labels of parts: what differs between them is named, what is the same is not."""

from __future__ import annotations

from dataclasses import dataclass

from bertology.analyses.part_labels import part_labels
from bertology.corpus.read import as_corpus


@dataclass(frozen=True)
class Config:
    seed: int
    epochs: int = 3


@dataclass(frozen=True)
class Job:
    config: Config
    frozen_layers: int | None


def test_what_differs_is_named() -> None:
    jobs = [Job(Config(seed), frozen) for frozen in (None, 2) for seed in (0, 1)]
    labels = part_labels("train", [{"job": job, "encoder": object()} for job in jobs])
    assert labels[0] == "part 1 of 4 of train (seed 0, frozen_layers None)"
    assert labels[3] == "part 4 of 4 of train (seed 1, frozen_layers 2)"
    assert len(set(labels)) == 4


def test_examples_are_named_by_their_words_and_lists_by_their_first_number() -> None:
    texts = ["The cat sat.", "A dog barked " + "very " * 20 + "loudly."]
    examples = as_corpus(texts).examples
    labels = part_labels("search", [{"example": example, "gold": 1} for example in examples])
    assert labels[0] == "part 1 of 2 of search (example 'The cat sat .')"
    assert labels[1].endswith("very ve ...')") and len(labels[1]) < 110
    assert part_labels("score", [{"rows": [4, 5]}, {"rows": [6, 7]}])[1] == "part 2 of 2 of score (rows 6 ...)"
    assert part_labels("score", [{"rows": object()}]) == ["part 1 of 1 of score"]
