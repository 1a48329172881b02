"""Labelled spans and span pairs from the annotations of a corpus, for edge probing (tenney2019edge)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from types import MappingProxyType
from typing import Literal

from bertology.analyses.probing.dataset import CaseExtractor, ProbeCase, ProbeDataset, span_dataset
from bertology.analyses.probing.train_test_split import TrainTestSplit
from bertology.corpus.sentence import Sentence, Span
from bertology.encoder.encoder import Encoder
from bertology.encoder.token_batch import RecordedInput
from bertology.recording.recording import Recording

Edge = Literal["upos", "relation", "entity", "chunk", "role", "coreference"]


@dataclass(frozen=True)
class EdgeTask:
    """An edge probing task: the annotations it needs, its name, and a function from a sentence to its cases."""

    annotations: tuple[str, ...]
    name: str
    description: str
    extract: Callable[[Sentence], Iterator[ProbeCase]]


def edge_dataset(
    recording: Recording,
    encoder: Encoder | None,
    split: TrainTestSplit,
    edge: Edge,
    min_examples: int,
    *,
    analysis_name: str,
) -> ProbeDataset:
    """The dataset of an edge probing task; corpora without its annotations are refused."""
    return span_dataset(
        recording,
        encoder,
        split,
        edge_case_extractor(edge),
        min_examples,
        analysis_name=analysis_name,
        annotations=EDGES[edge].annotations,
    )


def edge_case_extractor(edge: Edge) -> CaseExtractor:
    """The function from a recorded input to the cases of its segments."""

    def extract_cases(recorded_input: RecordedInput) -> list[ProbeCase]:
        cases: list[ProbeCase] = []
        offset = 0
        for segment in recorded_input.text.segments:
            for case in EDGES[edge].extract(segment):
                cases.append(case._replace(spans=tuple((start + offset, end + offset) for start, end in case.spans)))
            offset += len(segment)
        return cases

    return extract_cases


def _pos_cases(sentence: Sentence) -> Iterator[ProbeCase]:
    for word, tag in enumerate(sentence.pos or ()):
        yield ProbeCase(tag, sentence.words[word].lower(), ((word, word + 1),))


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
        predicate = (frame.predicate, frame.predicate + 1)
        for argument in frame.arguments:
            yield ProbeCase(
                argument.label,
                sentence.words[frame.predicate].lower(),
                (predicate, (argument.start, argument.end)),
            )


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


EDGES: Mapping[Edge, EdgeTask] = MappingProxyType(
    {
        "upos": EdgeTask(("pos",), "part of speech", "part of speech of a word", _pos_cases),
        "relation": EdgeTask(
            ("governors", "relations"), "dependency relation", "relation of a word to its governor", _relation_cases
        ),
        "entity": EdgeTask(("entities",), "entity", "entity type of a span", lambda s: _span_cases(s, s.entities)),
        "chunk": EdgeTask(("chunks",), "chunk", "chunk type of a span", lambda s: _span_cases(s, s.chunks)),
        "role": EdgeTask(("frames",), "semantic role", "role of an argument of a predicate", _role_cases),
        "coreference": EdgeTask(
            ("mentions",), "coreference", "whether two mentions refer to the same entity", _coreference_cases
        ),
    }
)
