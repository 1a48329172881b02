"""What is each partner trained and judged on? Sources, labels and splits; every split is the same on every machine."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from bertology.corpus.bio import encode
from bertology.corpus.builtin import corpus_named
from bertology.corpus.corpus import Item
from bertology.corpus.generate import generate
from bertology.corpus.read import read
from bertology.corpus.sentence import Sentence, Span

SPLIT_SEED = 2019
GENERATED_PAIRS = 4_000

NAMES = ("PER", "LOC", "ORG", "MISC")
TAGS = ("O", *(f"{place}-{name}" for name in NAMES for place in "BI"))
ENTAILMENT = ("entailment", "neutral", "contradiction")
POLARITY = {"0": "negative", "1": "positive"}

UNKNOWN = "?"
"""Stands for a class outside our scheme: neither an entity nor certainly none, so its words are not learnt from."""

COARSE: Mapping[str, str] = {
    "person": "PER", "politician": "PER", "researcher": "PER", "PER": "PER",
    "location": "LOC", "country": "LOC", "LOC": "LOC",
    "corporation": "ORG", "group": "ORG", "organisation": "ORG", "politicalparty": "ORG", "university": "ORG",
    "ORG": "ORG",
    "creative-work": "MISC", "product": "MISC", "election": "MISC", "event": "MISC", "conference": "MISC",
    "programlang": "MISC", "misc": "MISC", "MISC": "MISC",
    "algorithm": UNKNOWN, "field": UNKNOWN, "metrics": UNKNOWN, "task": UNKNOWN,
    "DATE": "",
}  # fmt: skip
"""Every class of every source in ours; technical terms of CrossNER are unknown, dates are no names."""


@dataclass(frozen=True)
class Material:
    """Items to learn from, to decide when to stop by, and to judge by; the last never decide anything."""

    labels: tuple[str, ...]
    train: list[Item]
    stop: list[Item]
    dev: dict[str, list[Item]]


def sentiment(data: Path) -> Material:
    """Reviews as negative or positive: MR sentences and whole IMDB reviews, 70 / 10 / 20 of each."""
    sources = {name: _polarised(read(data / "sentiment" / name, "labelled").items) for name in ("mr", "imdb")}
    return _shared_out(("negative", "positive"), sources)


def pairs(data: Path) -> Material:
    """Premise and hypothesis: SNLI and MNLI, and pairs made by the project's own templates, 70 / 10 / 20 of each."""
    names = ("snli", "mnli_matched", "mnli_mismatched")
    sources: dict[str, Sequence[Item]] = {name: read(data / "nli" / name, "pairs").items for name in names}
    sources["generated"] = generate("nli", size=GENERATED_PAIRS, seed=SPLIT_SEED).items
    return _shared_out(ENTAILMENT, sources)


def ner(data: Path) -> Material:
    """Names of four kinds: WNUT-17 and CrossNER to learn from, WNUT's development part and our own corpus to judge."""
    folder = data / "ner"
    crossner = [folder / f"crossner-{domain}" / f"{part}.txt"
                for domain in ("ai", "politics") for part in ("train", "dev", "test")]  # fmt: skip
    learnt = [_coarse(item) for path in (folder / "wnut17train.conll", *crossner) for item in read(path, "columns")]
    kept = _as_many_without_names(learnt)
    train, stop, rest = split(kept, (0.9, 0.1, 0.0))
    wnut = [_coarse(item) for item in read(folder / "emerging.dev.conll", "columns")]
    english = [_coarse(item) for item in corpus_named("english")]
    return Material(TAGS, train, stop + rest, {"wnut": wnut, "english": english})


TASKS: dict[str, Callable[[Path], Material]] = {"sentiment": sentiment, "ner": ner, "pairs": pairs}


def split(items: Sequence[Item], shares: tuple[float, float, float]) -> tuple[list[Item], list[Item], list[Item]]:
    """The items in three parts of about these shares; items with the same first text go to the same part."""
    groups: dict[str, list[Item]] = {}
    for item in items:
        groups.setdefault(item.parts[0].text, []).append(item)
    ordered = [groups[text] for text in sorted(groups)]
    random.Random(SPLIT_SEED).shuffle(ordered)
    flat = [item for group in ordered for item in group]
    ends = [0, *(round(len(flat) * sum(shares[: n + 1])) for n in range(2)), len(flat)]
    starts = [_group_start(flat, end) for end in ends]
    first, second, third = (flat[a:b] for a, b in pairwise(starts))
    return first, second, third


def majority(items: Sequence[Item]) -> str:
    """The commonest class."""
    return Counter(str(item.label) for item in items).most_common(1)[0][0]


def _group_start(items: Sequence[Item], place: int) -> int:
    """The end of the group that `place` lies in, so that no group is torn."""
    while 0 < place < len(items) and items[place - 1].parts[0].text == items[place].parts[0].text:
        place += 1
    return place


def _shared_out(labels: tuple[str, ...], sources: Mapping[str, Sequence[Item]]) -> Material:
    parts = {name: split(items, (0.7, 0.1, 0.2)) for name, items in sources.items()}
    return Material(
        labels,
        train=[item for train, _, _ in parts.values() for item in train],
        stop=[item for _, stop, _ in parts.values() for item in stop],
        dev={name: dev for name, (_, _, dev) in parts.items()},
    )


def _polarised(items: Sequence[Item]) -> list[Item]:
    return [replace(item, label=POLARITY[str(item.label)]) for item in items]


def _coarse(item: Item) -> Item:
    sentence = item.parts[0]
    spans = [Span(s.start, s.end, COARSE[s.label]) for s in sentence.entities or ()]
    named = tuple(span for span in spans if span.label)
    return replace(item, parts=(_with_names(sentence, named),))


def _with_names(sentence: Sentence, spans: tuple[Span, ...]) -> Sentence:
    return replace(sentence, entities=spans, tags=encode(spans, len(sentence)))


def _as_many_without_names(items: Sequence[Item]) -> list[Item]:
    """All sentences with a name, and at most half as many without, so that training costs no more than it must."""
    with_names = [item for item in items if item.parts[0].entities]
    without = [item for item in items if not item.parts[0].entities]
    random.Random(SPLIT_SEED).shuffle(without)
    return with_names + without[: len(with_names) // 2]
