"""Labelled spans and span pairs from the annotations of a corpus, for edge probing (tenney2019edge)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations
from types import MappingProxyType
from typing import Any, Literal

from bertology.analyses.probing.dataset import ProbeCase, ProbeTask
from bertology.analyses.probing.word_labels import WORD_LABELS, check_annotations, unknown_label, word_task
from bertology.corpus.corpus import Corpus
from bertology.corpus.sentence import Sentence, Span

Edge = Literal["pos", "relation", "entity", "chunk", "role", "coreference"]


def edge_task(label: str, corpus: Corpus) -> ProbeTask:
    """The task of a label: a span or word label of the corpus under its own name, or else one of `EDGES`."""
    if label in corpus.label_names.spans:
        return ProbeTask((), label, lambda s: _span_cases(s, s.span_labels.get(label)), f"{label} of a span")
    if label in corpus.label_names.words:
        return word_task(label, corpus)
    tasks: Mapping[str, ProbeTask] = {**EDGES}
    if label not in tasks:
        raise unknown_label(label, corpus, tasks)
    check_annotations(tasks[label], label, corpus)
    return tasks[label]


def check_edge_label(corpus: Corpus, options: Mapping[str, Any]) -> None:
    """Refuse a corpus without the label that is to be predicted."""
    edge_task(options["label"], corpus)


def _relation_cases(sentence: Sentence) -> Iterator[ProbeCase]:
    if sentence.governors is None or sentence.relations is None:
        return
    for word, (governor, relation) in enumerate(zip(sentence.governors, sentence.relations, strict=True)):
        if governor >= 0:
            label = relation.partition(":")[0]
            yield ProbeCase(label, sentence.words[word].lower(), ((word, word + 1), (governor, governor + 1)))


def _span_cases(sentence: Sentence, spans: tuple[Span, ...] | None) -> Iterator[ProbeCase]:
    for span in spans or ():
        last_word = sentence.words[min(max(span.end, span.start + 1), len(sentence)) - 1]
        yield ProbeCase(span.label, last_word.lower(), ((span.start, span.end),))


def _role_cases(sentence: Sentence) -> Iterator[ProbeCase]:
    for frame in sentence.frames or ():
        word, predicate = sentence.words[frame.predicate].lower(), (frame.predicate, frame.predicate + 1)
        for argument in frame.arguments:
            yield ProbeCase(argument.label, word, (predicate, (argument.start, argument.end)))


def _coreference_cases(sentence: Sentence) -> Iterator[ProbeCase]:
    """All pairs of mentions of one entity, and a random sample of as many pairs of mentions of different entities."""
    mentions = sorted(
        {
            (mention.start, mention.end): mention for mention in sentence.mentions or () if mention.end > mention.start
        }.values(),
        key=lambda mention: (mention.start, mention.end),
    )
    same = [pair for pair in combinations(mentions, 2) if pair[0].label == pair[1].label]
    different = [pair for pair in combinations(mentions, 2) if pair[0].label != pair[1].label]
    sample = sorted(different, key=lambda pair: _sampling_key(sentence, pair))[: len(same)]
    for label, pairs in (("same", same), ("other", sample)):
        for first, second in pairs:
            last_word = sentence.words[second.end - 1].lower()
            yield ProbeCase(label, last_word, ((first.start, first.end), (second.start, second.end)))


def _sampling_key(sentence: Sentence, pair: tuple[Span, Span]) -> bytes:
    bounds = [(span.start, span.end) for span in pair]
    return hashlib.sha256(f"{bounds} {' '.join(sentence.words)}".encode()).digest()


EDGES: Mapping[Edge, ProbeTask] = MappingProxyType(
    {
        "pos": replace(WORD_LABELS["pos"], name="part of speech", description="part of speech of a word"),
        "relation": ProbeTask(
            ("governors", "relations"), "dependency relation", _relation_cases, "relation of a word to its governor"
        ),
        "entity": ProbeTask(("entities",), "entity", lambda s: _span_cases(s, s.entities), "entity type of a span"),
        "chunk": ProbeTask(("chunks",), "chunk", lambda s: _span_cases(s, s.chunks), "chunk type of a span"),
        "role": ProbeTask(("frames",), "semantic role", _role_cases, "role of an argument of a predicate"),
        "coreference": ProbeTask(
            ("mentions",), "coreference", _coreference_cases, "whether two mentions refer to the same entity"
        ),
    }
)
