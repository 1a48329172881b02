"""Tasks by name: select the examples a task can use, and build it with their labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from bertology.corpus.bio import SPAN_TAG_ANNOTATIONS, TAG_ANNOTATIONS, word_tags
from bertology.corpus.corpus import Corpus, Example, SkippedExample
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


def select_examples(corpus: Corpus, name: str, annotation: str | None = None) -> tuple[Corpus, str | None]:
    """The examples that a task can use, and the annotation that `token` predicts; refused if there are none."""
    if name not in REQUIREMENTS:
        raise unknown_name("task", name, TASKS)
    if name == "token":
        annotation = _resolve_annotation(corpus, annotation)
        corpus = replace(corpus, examples=tuple(_with_span_tags(example, annotation) for example in corpus))
    elif annotation is not None:
        raise Refusal(
            f"--annotation was given with --task {name}", "--annotation only with --task token", "Omit --annotation"
        )
    requirement = REQUIREMENTS[name]
    usable = tuple(
        example
        for example in corpus
        if requirement.is_met(example) and all(map(len, example.segments)) and _has_annotation(example, annotation)
    )
    if not usable:
        kinds = ", ".join(f"{count} {kind}" for kind, count in Counter(example.kind for example in corpus).items())
        annotations = ", ".join(sorted(corpus.annotations)) or "none"
        raise Refusal(
            f"{corpus.name} has no examples for the task {name} (examples: {kinds}; annotations: {annotations})",
            requirement.description,
            "Choose another task or corpus; `bertology list corpora` shows the formats",
        )
    n_unusable = len(corpus) - len(usable)
    skipped = (*corpus.skipped, *(SkippedExample("unusable for the task", "") for _ in range(n_unusable)))
    return replace(corpus, examples=usable, skipped=skipped), annotation


def build_task(name: str, examples: Sequence[Example], annotation: str | None) -> Task:
    """The task with the labels of its training examples."""
    match name:
        case "sentence" | "pair":
            return TextClassification(name, _class_labels({str(example.label) for example in examples}))
        case "token":
            assert annotation is not None, "`select_examples` resolves the annotation"
            tags = tag_annotation(annotation)
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


def infer_task(corpus: Corpus) -> TaskName:
    """The first task that most of a corpus is annotated for: `token` for a treebank, `sentence` for labelled texts."""
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
            "Check which column holds the label: --format-option label=NAME",
        )
    are_numbers = all(label.isdecimal() for label in labels)
    return tuple(sorted(labels, key=int) if are_numbers else sorted(labels))


def _resolve_annotation(corpus: Corpus, annotation: str | None) -> str:
    if annotation is not None and annotation not in TAG_ANNOTATIONS:
        raise unknown_name("annotation for the task token", annotation, TAG_ANNOTATIONS)
    available = [name for name in TAG_ANNOTATIONS if corpus.annotations[name]]
    if annotation is None and available:
        return available[0]
    if annotation is None or annotation not in available:
        raise Refusal(
            f"The task token needs the annotation {annotation or ' or '.join(TAG_ANNOTATIONS)}; {corpus.name} has "
            f"{', '.join(sorted(corpus.annotations)) or 'none'}",
            "a corpus with a tag per word",
            "Use CoNLL columns or a treebank, or choose another annotation with --annotation",
        )
    return annotation


def _with_span_tags(example: Example, annotation: str) -> Example:
    """The example with spans as BIO tags in `tags`, None if the text lacks this annotation."""
    if annotation not in SPAN_TAG_ANNOTATIONS:
        return example
    sentence = example.segments[0]
    tagged = replace(sentence, tags=word_tags(sentence, annotation))
    return replace(example, segments=(tagged, *example.segments[1:]))


def _has_annotation(example: Example, annotation: str | None) -> bool:
    return annotation is None or getattr(example.segments[0], tag_annotation(annotation)) is not None


def tag_annotation(annotation: str) -> str:
    """The annotation that holds the tags: `tags` for spans, which are converted to BIO tags."""
    return "tags" if annotation in SPAN_TAG_ANNOTATIONS else annotation
