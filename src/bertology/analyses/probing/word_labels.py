"""Word properties a probe can predict: one label per word, from the annotations or the word labels of a corpus."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, Literal

from bertology.analyses.probing.dataset import ProbeCase, ProbeTask
from bertology.corpus.corpus import Corpus
from bertology.corpus.sentence import ROOT, Sentence, Span
from bertology.errors import Refusal, unknown_name

Label = Literal[
    "pos", "xpos", "relation", "governor_direction", "entity", "chunk", "role", "mention", "tag", "sense", "number"
]
LabelOption = Annotated[
    Label | str, "Word property to predict, or the name of a word or span label of the corpus (a column of its file)."
]
OUTSIDE = "O"


def word_task(label: str, corpus: Corpus) -> ProbeTask:
    """The task of a label: a word or span label of the corpus under its own name, or else one of `WORD_LABELS`."""
    names = corpus.label_names
    if label in names.words:
        return _word_task((), label, lambda s: [name or None for name in s.word_labels.get(label, ())])
    if label in names.spans:
        return _word_task(
            (), label, lambda s: _span_labels(s.span_labels[label], len(s)) if label in s.span_labels else ()
        )
    return _annotation_task(label, corpus, WORD_LABELS)


def check_word_label(corpus: Corpus, options: Mapping[str, Any]) -> None:
    """Refuse a corpus without the label that is to be predicted."""
    word_task(options["label"], corpus)


def check_annotations(task: ProbeTask, label: str, corpus: Corpus) -> None:
    """Refuse a corpus without the annotations of a task, naming the labels it has."""
    missing = [name for name in task.annotations if not corpus.annotations[name]]
    if missing:
        raise Refusal(
            f"--label {label} needs the annotation {', '.join(missing)}; {corpus.name} has {corpus.annotation_list}",
            f"a corpus annotated with {', '.join(task.annotations)}, or with the label {label!r}",
            "Choose another corpus or one of its labels with --label; a column of a table of words (TSV, CSV or JSON "
            "lines) is a label under its own name",
        )


def unknown_label(label: str, corpus: Corpus, tasks: Mapping[str, ProbeTask]) -> Refusal:
    """The refusal of a label that the corpus does not have, with those it has."""
    names = corpus.label_names
    known = {*names.words, *names.spans, *annotated_labels(corpus, tasks)}
    if label in names.examples:
        return Refusal(
            f"{label!r} is a label of the examples of {corpus.name}, not of words or spans",
            f"a label of words or spans: {', '.join(sorted(known)) or 'it has none'}",
            f"Use it with probes/sentence --label {label}",
        )
    if not known:
        return Refusal(
            f"There is no label called {label!r}: {corpus.name} has no labels of words or spans",
            "words with labels or annotations",
            "Choose another --corpus, such as a table with one word per line and a column of labels; in Python, name "
            "them with bertology.corpus(..., word_labels=...)",
        )
    return unknown_name(f"label of {corpus.name}", label, known, remedy="Choose one with --label")


def annotated_labels(corpus: Corpus, tasks: Mapping[str, ProbeTask]) -> list[str]:
    """The labels that come from the annotations of the corpus."""
    return [name for name, task in tasks.items() if all(corpus.annotations[a] for a in task.annotations)]


def _annotation_task(label: str, corpus: Corpus, tasks: Mapping[str, ProbeTask]) -> ProbeTask:
    if label not in tasks:
        raise unknown_label(label, corpus, tasks)
    check_annotations(tasks[label], label, corpus)
    return tasks[label]


def _word_task(
    annotations: tuple[str, ...], name: str, extract_labels: Callable[[Sentence], Sequence[str | None]]
) -> ProbeTask:
    """The task of a function from a sentence to one label per word; control types are lower-cased forms."""

    def extract(sentence: Sentence) -> Iterator[ProbeCase]:
        for word, label in enumerate(extract_labels(sentence)):
            if label is not None:
                yield ProbeCase(label, sentence.words[word].lower(), ((word, word + 1),))

    return ProbeTask(annotations, name, extract)


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


WORD_LABELS: Mapping[str, ProbeTask] = MappingProxyType(
    {
        "pos": _word_task(("pos",), "universal part of speech", lambda s: s.pos or ()),
        "xpos": _word_task(("xpos",), "treebank-specific part of speech", lambda s: s.xpos or ()),
        "relation": _word_task(("relations",), "relation to the governor, without its subtype", _relation_labels),
        "governor_direction": _word_task(
            ("governors",),
            "whether the governor is before or after the word; root if there is none",
            _governor_directions,
        ),
        "entity": _word_task(("entities",), "entity type, O outside", lambda s: _span_labels(s.entities or (), len(s))),
        "chunk": _word_task(("chunks",), "chunk type, O outside", lambda s: _span_labels(s.chunks or (), len(s))),
        "role": _word_task(("frames",), "role of the shortest argument around the word, predicate, or O", _role_labels),
        "mention": _word_task(("mentions",), "whether the word is in a mention of an entity", _mention_labels),
        "tag": _word_task(("tags",), "tag of a tagged corpus", lambda s: s.tags or ()),
        "sense": _word_task(("senses",), "word sense, where annotated", lambda s: s.senses or ()),
        "number": _word_task(("morphology",), "grammatical number, where marked", _number_labels),
    }
)
