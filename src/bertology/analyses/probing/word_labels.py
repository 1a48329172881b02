"""Word properties a probe can predict: one label per word, taken from the annotations of a corpus."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Literal

from bertology.analyses.probing.dataset import CaseExtractor, ProbeCase, ProbeDataset, span_dataset
from bertology.analyses.probing.train_test_split import TrainTestSplit
from bertology.corpus.sentence import ROOT, Sentence, Span
from bertology.encoder.encoder import Encoder
from bertology.encoder.token_batch import RecordedInput
from bertology.recording.recording import Recording

Label = Literal[
    "upos", "xpos", "relation", "governor_direction", "entity", "chunk", "role", "mention", "tag", "sense", "number"
]
LabelOption = Annotated[
    Label,
    "Word property to predict: upos, xpos, relation, governor_direction, entity, chunk, role, mention, tag, sense or "
    "number.",
]
OUTSIDE = "O"


@dataclass(frozen=True)
class WordLabel:
    """A word property: the annotation it needs, a description, and a function from a sentence to one label per word."""

    annotation: str
    description: str
    extract: Callable[[Sentence], Sequence[str | None]]


def word_dataset(
    recording: Recording,
    encoder: Encoder | None,
    split: TrainTestSplit,
    label: Label,
    min_examples: int,
    *,
    analysis_name: str,
) -> ProbeDataset:
    """The dataset of labelled words; corpora without the annotation are refused."""
    return span_dataset(
        recording,
        encoder,
        split,
        word_case_extractor(label),
        min_examples,
        analysis_name=f"{analysis_name} --label {label}",
        annotations=(WORD_LABELS[label].annotation,),
    )


def word_case_extractor(label: Label) -> CaseExtractor:
    """The function from a recorded input to its labelled words; a word's control type is its lower-cased form."""

    def extract_cases(recorded_input: RecordedInput) -> list[ProbeCase]:
        cases: list[ProbeCase] = []
        offset = 0
        for segment in recorded_input.text.segments:
            for word, name in enumerate(WORD_LABELS[label].extract(segment)):
                if name is not None:
                    cases.append(ProbeCase(name, segment.words[word].lower(), ((offset + word, offset + word + 1),)))
            offset += len(segment)
        return cases

    return extract_cases


def _span_labels(spans: Sequence[Span], length: int) -> list[str | None]:
    """The label of the shortest span around each word."""
    labels: list[str | None] = [OUTSIDE] * length
    for span in sorted(spans, key=lambda span: (span.start - span.end, span.start)):
        labels[span.start : span.end] = [span.label or "in"] * (span.end - span.start)
    return labels


def _relation_labels(sentence: Sentence) -> list[str | None]:
    return [relation.partition(":")[0] for relation in sentence.relations or ()]


def _governor_directions(sentence: Sentence) -> list[str | None]:
    governors = enumerate(sentence.governors or ())
    return ["root" if governor == ROOT else "before" if governor < word else "after" for word, governor in governors]


def _role_labels(sentence: Sentence) -> list[str | None]:
    arguments = [argument for frame in sentence.frames or () for argument in frame.arguments]
    labels = _span_labels(arguments, len(sentence))
    for frame in sentence.frames or ():
        labels[frame.predicate] = "predicate"
    return labels


def _mention_labels(sentence: Sentence) -> list[str | None]:
    spans = [Span(mention.start, mention.end, "mention") for mention in sentence.mentions or ()]
    return _span_labels(spans, len(sentence))


def _number_labels(sentence: Sentence) -> list[str | None]:
    labels: list[str | None] = []
    for morphology in sentence.morphology or ():
        features = dict(pair.split("=", 1) for pair in morphology.split("|") if "=" in pair)
        labels.append(features.get("Number"))
    return labels


WORD_LABELS: Mapping[Label, WordLabel] = MappingProxyType(
    {
        "upos": WordLabel("pos", "universal part of speech", lambda s: s.pos or ()),
        "xpos": WordLabel("xpos", "treebank-specific part of speech", lambda s: s.xpos or ()),
        "relation": WordLabel("relations", "relation to the governor, without its subtype", _relation_labels),
        "governor_direction": WordLabel(
            "governors",
            "whether the governor is before or after the word; root if there is none",
            _governor_directions,
        ),
        "entity": WordLabel("entities", "entity type, O outside", lambda s: _span_labels(s.entities or (), len(s))),
        "chunk": WordLabel("chunks", "chunk type, O outside", lambda s: _span_labels(s.chunks or (), len(s))),
        "role": WordLabel("frames", "role of the shortest argument around the word, predicate, or O", _role_labels),
        "mention": WordLabel("mentions", "whether the word is in a mention of an entity", _mention_labels),
        "tag": WordLabel("tags", "tag of a tagged corpus", lambda s: s.tags or ()),
        "sense": WordLabel("senses", "word sense, where annotated", lambda s: s.senses or ()),
        "number": WordLabel("morphology", "grammatical number, where marked", _number_labels),
    }
)
