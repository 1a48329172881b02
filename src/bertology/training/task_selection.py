"""Tasks by name: select the examples a task can use, and build it with their labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from bertology.corpus.bio import SPAN_TAG_ANNOTATIONS, TAG_ANNOTATIONS, encode, word_tags
from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example, SkippedExample
from bertology.errors import Refusal, unknown_name
from bertology.training.tasks.dependency_parsing import DependencyParsing
from bertology.training.tasks.multiple_choice import MultipleChoice
from bertology.training.tasks.question_answering import QuestionAnswering
from bertology.training.tasks.task import Task
from bertology.training.tasks.text_classification import TextClassification
from bertology.training.tasks.token_classification import TokenClassification, sort_tags

TaskName = Literal["sentence", "pair", "token", "dependency", "qa", "choice"]
TASKS: tuple[TaskName, ...] = get_args(TaskName)

MAX_CLASSES = 1_000


@dataclass(frozen=True)
class TaskRequirement:
    """What a task needs of an example, as text and as a test."""

    description: str
    is_met: Callable[[Example], bool]


REQUIREMENTS: dict[TaskName, TaskRequirement] = {
    "sentence": TaskRequirement(
        "labelled texts", lambda example: example.kind == "sentence" and example.label is not None
    ),
    "pair": TaskRequirement(
        "labelled pairs of texts", lambda example: example.kind == "pair" and example.label is not None
    ),
    "token": TaskRequirement("sentences with a tag per word", lambda example: example.kind == "sentence"),
    "dependency": TaskRequirement(
        "sentences with governors and relations",
        lambda example: (
            example.kind == "sentence" and None not in (example.segments[0].governors, example.segments[0].relations)
        ),
    ),
    "qa": TaskRequirement(
        "questions about a passage, with answer spans",
        lambda example: example.kind == "question" and example.segments[1].answer_spans is not None,
    ),
    "choice": TaskRequirement(
        "questions with options", lambda example: example.kind == "choice" and example.label is not None
    ),
}


def select_examples(corpus: Corpus, name: str, label: str | None = None) -> tuple[Corpus, str | None]:
    """The examples that a task can use, and the name of the label; refused if there are none.

    The label is a label of the examples by name or, for `token`, an annotation, a word label or a span label.
    """
    if name not in REQUIREMENTS:
        raise unknown_name("task", name, TASKS)
    if name == "token":
        label = _resolve_word_label(corpus, label)
        corpus = replace(corpus, examples=tuple(_with_tags(example, label) for example in corpus))
    elif name in ("sentence", "pair") and (label or corpus.label_names.examples):
        corpus = corpus.with_label(label or "")
    elif label is not None:
        raise Refusal(
            f"--label was given with --task {name}", "--label with --task sentence, pair or token", "Omit --label"
        )
    requirement = REQUIREMENTS[name]
    usable = tuple(
        example
        for example in corpus
        if requirement.is_met(example)
        and all(map(len, example.segments))
        and (name != "token" or _has_tags(example, label))
    )
    if not usable:
        kinds = ", ".join(f"{count} {kind}" for kind, count in Counter(example.kind for example in corpus).items())
        raise Refusal(
            f"{corpus.name} has no examples for the task {name} (examples: {kinds}; annotations: "
            f"{corpus.annotation_list})",
            requirement.description,
            "Choose another task or corpus; `bertology list corpora` shows the formats",
        )
    n_unusable = len(corpus) - len(usable)
    skipped = (*corpus.skipped, *(SkippedExample("unusable for the task", "") for _ in range(n_unusable)))
    return replace(corpus, examples=usable, skipped=skipped), label


def build_task(name: str, examples: Sequence[Example], label: str | None) -> Task:
    """The task with the labels of its training examples."""
    match name:
        case "sentence" | "pair":
            return TextClassification(name, _class_labels({str(example.label) for example in examples}))
        case "token":
            tags = _tag_field(label)
            return TokenClassification(
                sort_tags({tag for example in examples for tag in getattr(example.segments[0], tags)}), tags
            )
        case "dependency":
            return DependencyParsing(
                sort_tags({relation for example in examples for relation in example.segments[0].relations or ()})
            )
        case "qa":
            return QuestionAnswering(allow_no_answer=any(not example.segments[1].answer_spans for example in examples))
        case _:
            return MultipleChoice()


def infer_task(corpus: Corpus, label: str = "") -> TaskName:
    """The first task that most of a corpus is annotated for: `token` for a treebank, `sentence` for labelled texts.

    With the name of a label, the task is one that has it.
    """
    if label in corpus.label_names.examples:
        corpus = corpus.with_label(label)
    elif label in corpus.label_names.words or label in corpus.label_names.spans:
        return "token"
    for name in ("choice", "qa", "pair", "sentence"):
        if 2 * sum(map(REQUIREMENTS[name].is_met, corpus)) > len(corpus):
            return name
    return "token"


def _class_labels(labels: set[str]) -> tuple[str, ...]:
    are_scores = all("." in label and label.replace(".", "", 1).lstrip("-").isdecimal() for label in labels)
    if are_scores or not 2 <= len(labels) <= MAX_CLASSES:
        problem = "The labels are scores" if are_scores else f"There are {len(labels)} different labels"
        raise Refusal(
            f"{problem}, for example {', '.join(sorted(labels)[:3])}",
            f"2 to {MAX_CLASSES} classes",
            "Name the column of the label with --label NAME",
        )
    are_numbers = all(label.isdecimal() for label in labels)
    return tuple(sorted(labels, key=int) if are_numbers else sorted(labels))


def _resolve_word_label(corpus: Corpus, label: str | None) -> str:
    """The annotation, word label or span label that `token` predicts; without a name, the first that there is."""
    names = corpus.label_names
    known = [*(name for name in TAG_ANNOTATIONS if corpus.annotations[name]), *names.words, *names.spans]
    if label is None and known:
        return known[0]
    if label is None or (label in TAG_ANNOTATIONS and label not in known):
        raise Refusal(
            f"The task token needs the annotation {label or ' or '.join(TAG_ANNOTATIONS)}; {corpus.name} has "
            f"{corpus.annotation_list}",
            "a corpus with a tag per word",
            "Use CoNLL columns, a table of words or a treebank, or choose another label with --label",
        )
    if label not in known:
        raise unknown_name("label for the task token", label, known, remedy="Choose one with --label")
    return label


def _with_tags(example: Example, label: str) -> Example:
    """The example with spans as BIO tags, or with its word labels, in `tags`; None if the text lacks the label."""
    if _tag_field(label) != "tags" or label == "tags":
        return example
    sentence = example.segments[0]
    if label in sentence.word_labels:
        tags = sentence.word_labels[label]
    elif label in sentence.span_labels:
        tags = encode(sentence.span_labels[label], len(sentence))
    else:
        tags = word_tags(sentence, label) if label in SPAN_TAG_ANNOTATIONS else None
    return replace(example, segments=(replace(sentence, tags=tags), *example.segments[1:]))


def _has_tags(example: Example, label: str | None) -> bool:
    """Whether every word has a tag."""
    tags: Sequence[str] | None = getattr(example.segments[0], _tag_field(label))
    return tags is not None and all(tags)


def _tag_field(label: str | None) -> str:
    """The annotation that holds the tags: `tags` for spans and for labels by name, which `_with_tags` sets."""
    return str(label) if label in TAG_ANNOTATIONS and label not in SPAN_TAG_ANNOTATIONS else "tags"
