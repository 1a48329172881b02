"""Which task? By name, with the items that fit it and the labels they have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from bertology.corpus.corpus import Corpus, Item, Skipped
from bertology.corpus.word_tags import LAYERS, SPAN_LAYERS, word_tags
from bertology.errors import Refusal, unknown_name
from bertology.finetuning.tasks.answers import Answers
from bertology.finetuning.tasks.choices import Choices
from bertology.finetuning.tasks.classes import Classes
from bertology.finetuning.tasks.tags import Tags, label_order
from bertology.finetuning.tasks.task import Task
from bertology.finetuning.tasks.trees import Trees

TaskName = Literal["sentence", "pair", "token", "dependency", "qa", "choice"]
TASKS: tuple[TaskName, ...] = get_args(TaskName)

MOST_CLASSES = 1_000


@dataclass(frozen=True)
class _Need:
    """What a task needs of an item, in words and as a test."""

    words: str
    met: Callable[[Item], bool]


NEEDS: dict[TaskName, _Need] = {
    "sentence": _Need("texts with a label", lambda item: item.kind == "sentence" and item.label is not None),
    "pair": _Need("pairs of texts with a label", lambda item: item.kind == "pair" and item.label is not None),
    "token": _Need("sentences with a tag for each word", lambda item: item.kind == "sentence"),
    "dependency": _Need(
        "sentences with heads and relations",
        lambda item: item.kind == "sentence" and None not in (item.parts[0].heads, item.parts[0].relations),
    ),
    "qa": _Need(
        "questions on a passage with answers in it",
        lambda item: item.kind == "question" and item.parts[1].answers is not None,
    ),
    "choice": _Need("questions with options", lambda item: item.kind == "choice" and item.label is not None),
}


def fitting(corpus: Corpus, name: str, layer: str | None = None) -> tuple[Corpus, str | None]:
    """The items that a task can use, and the layer that `token` learns; refused where there are none."""
    if name not in NEEDS:
        raise unknown_name("task", name, TASKS)
    if name == "token":
        layer = _layer_of(corpus, layer)
        corpus = replace(corpus, items=tuple(_tagged(item, layer) for item in corpus))
    elif layer is not None:
        raise Refusal(f"--layer was given for the task {name}", "it with --task token alone", "Leave it out")
    need = NEEDS[name]
    kept = tuple(item for item in corpus if need.met(item) and all(map(len, item.parts)) and _has(item, layer))
    if not kept:
        kinds = ", ".join(f"{count} of kind {kind}" for kind, count in Counter(item.kind for item in corpus).items())
        carried = ", ".join(sorted(corpus.layers)) or "no annotation"
        raise Refusal(
            f"{corpus.name} has nothing for the task {name}: {kinds}, with {carried}",
            need.words,
            "Choose another task or other data; `bertology list corpora` shows the formats",
        )
    left_out = tuple(Skipped("without what the task needs", "") for _ in range(len(corpus) - len(kept)))
    return replace(corpus, items=kept, skipped=(*corpus.skipped, *left_out)), layer


def task_for(name: str, items: Sequence[Item], layer: str | None) -> Task:
    """The task with the labels of the items that are learnt from."""
    match name:
        case "sentence" | "pair":
            return Classes(name, _classes({str(item.label) for item in items}))
        case "token":
            assert layer is not None, "`fitting` has found a layer"
            tags = tag_layer(layer)
            return Tags(label_order({tag for item in items for tag in getattr(item.parts[0], tags)}), tags)
        case "dependency":
            return Trees(label_order({relation for item in items for relation in item.parts[0].relations or ()}))
        case "qa":
            return Answers(may_lack=any(not item.parts[1].answers for item in items))
        case _:
            return Choices()


def guessed_task(corpus: Corpus) -> TaskName:
    """The first task that most of a corpus is annotated for: of a treebank `token`, of texts with labels `sentence`."""
    for name in ("choice", "qa", "pair", "sentence"):
        if 2 * sum(map(NEEDS[name].met, corpus)) > len(corpus):
            return name
    return "token"


def _classes(labels: set[str]) -> tuple[str, ...]:
    scores = all("." in label and label.replace(".", "", 1).lstrip("-").isdecimal() for label in labels)
    if scores or not 2 <= len(labels) <= MOST_CLASSES:
        what = "are scores, such as" if scores else f"are {len(labels)} in number, such as"
        raise Refusal(
            f"The labels of the data {what} {', '.join(sorted(labels)[:3])}",
            f"from 2 to {MOST_CLASSES} classes",
            "Check which column holds the label: --format-option label=NAME",
        )
    numbers = all(label.isdecimal() for label in labels)
    return tuple(sorted(labels, key=int) if numbers else sorted(labels))


def _layer_of(corpus: Corpus, layer: str | None) -> str:
    if layer is not None and layer not in LAYERS:
        raise unknown_name("layer for the task token", layer, LAYERS)
    there = [name for name in LAYERS if corpus.layers[name]]
    if layer is None and there:
        return there[0]
    if layer is None or layer not in there:
        wanted = layer or " or ".join(LAYERS)
        raise Refusal(
            f"The task token needs the annotation {wanted}; {corpus.name} carries "
            f"{', '.join(sorted(corpus.layers)) or 'none'}",
            "a corpus with a tag for each word",
            "Give CoNLL columns or a treebank, or name another layer with --layer",
        )
    return layer


def _tagged(item: Item, layer: str) -> Item:
    """Spans as BIO tags, under `tags`, which has none where the text has no such spans."""
    if layer not in SPAN_LAYERS:
        return item
    part = item.parts[0]
    return replace(item, parts=(replace(part, tags=word_tags(part, layer)), *item.parts[1:]))


def _has(item: Item, layer: str | None) -> bool:
    return layer is None or getattr(item.parts[0], tag_layer(layer)) is not None


def tag_layer(layer: str) -> str:
    """Where the tags of a layer stand: spans are tagged under `tags`."""
    return "tags" if layer in SPAN_LAYERS else layer
