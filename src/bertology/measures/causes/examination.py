"""What is a model asked, and how well does it answer? A corpus as sheets of items, each with a loss and a count.

A model with a head of its task is asked that task; one with a masked-language-model head is asked hidden pieces. The
weights stay as they are: nothing here learns. What changes is what runs over a sheet, a model whole or with parts taken
away, and the answers of each are judged alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertology.corpus.corpus import Corpus, Item
from bertology.encoder.encoder import Batch, Encoder, Output
from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.encoder.pieces import Special
from bertology.encoder.task_heads import class_numbers, labels_of
from bertology.errors import Refusal
from bertology.finetuning.choose import NEEDS, TaskName, fitting
from bertology.finetuning.division import ordered
from bertology.finetuning.examples import Example, Seen, pad
from bertology.finetuning.learner import in_rows
from bertology.finetuning.metrics import Counts
from bertology.finetuning.tasks.answers import Answers
from bertology.finetuning.tasks.choices import Choices
from bertology.finetuning.tasks.classes import Classes
from bertology.finetuning.tasks.tags import Tags
from bertology.finetuning.tasks.task import HeadTask
from bertology.recording.entry import Entry
from bertology.recording.frame import Frame
from bertology.recording.objectives import masked_losses, masked_places, masked_positions, masked_scores

Floats = NDArray[np.float64]

MASKED = "mlm"
AT_ONCE = 32
"""Items on a sheet."""
HEADS: dict[str, tuple[TaskName, ...]] = {
    "label": ("sentence", "pair"),
    "token": ("token",),
    "answer_start": ("qa",),
    "choice": ("choice",),
}
"""The tasks that a head of a model can be asked."""


Run = Callable[[Batch], Output]
"""What makes an output of a batch: `encoder.run`, of a model whole or changed."""


@dataclass(frozen=True, eq=False)
class Sheet:
    """Some items as the model is shown them.

    `items` are their places in the examination; a row of `shown` may be one of several options or windows of an item,
    and `rows` says of which of these items, counted from 0. `losses` are nats (item,), differentiable; `counts` are
    what is right of how much. Both are read off what one `head` on top of the model says (where an answer starts and
    ends is one), and where `asked` is there, off what it says of the pieces at these places, (row, k), alone.
    """

    shown: Batch
    items: list[int]
    losses: Callable[[Output], Tensor]
    counts: Callable[[Output], Counts]
    rows: list[int]
    head: str
    asked: Tensor | None = None


@dataclass(frozen=True)
class Marks:
    """How each item was answered: its loss in nats, and what was right of how much."""

    losses: Floats
    counts: Counts


@dataclass(frozen=True, eq=False)
class Examination:
    """A task as one model is asked it; `left_out` counts items that were too long or could not be asked."""

    task: str
    measure: str
    items: tuple[Item, ...]
    sheets: tuple[Sheet, ...]
    left_out: int
    guess: Counts | None = None
    """Of the answer that is right most often; None where there is no such answer (hidden pieces)."""

    @torch.no_grad()
    def marks(self, run: Run) -> Marks:
        """The marks of every item, in order."""
        losses, right, of = (np.zeros(len(self.items)) for _ in range(3))
        for sheet in self.sheets:
            output = run(sheet.shown)
            counts = sheet.counts(output)
            losses[sheet.items] = sheet.losses(output).double().cpu().numpy()
            right[sheet.items], of[sheet.items] = counts.right, counts.of
        return Marks(losses, Counts(right, of))


def examine(
    encoder: Encoder, corpus: Corpus, *, task: str = "auto", layer: str = "", items: int = 0, seed: int = 0
) -> Examination:
    """The items of a corpus that a model can be asked, at most `items` of them (0: all), drawn by what they say.

    `task` auto: what the model's head is for; `mlm`: 15 % of the pieces hidden, by the pieces and the seed.
    """
    name = asked_task(encoder, corpus) if task == "auto" else task
    if not _can_be_asked(encoder, name):
        have = ", ".join(sorted(encoder.outputs)) or "none"
        raise Refusal(
            f"{encoder.name} cannot be asked the task {name!r} (its heads: {have})",
            "a model fine-tuned for the task, or one with a masked-language-model head for `mlm`",
            "Fine-tune one with `bertology finetune`, or choose another task",
        )
    if name == MASKED:
        return _of_hidden_pieces(encoder, _drawn(corpus.items, items), seed)
    assert isinstance(encoder, HuggingFaceEncoder), "only such a one has the head of a task"
    labels = labels_of(encoder) if name in ("sentence", "pair", "token") else ()
    usable, _ = fitting(corpus, name, (layer or _usual_layer(corpus)) if name == "token" else None)
    asked = _in_words_of(labels, _drawn(usable.items, items), name, encoder.name)
    return _of_head(encoder, name, labels, asked, len(corpus) - len(usable))


def asked_again(encoder: Encoder, before: Examination, items: Sequence[Item], *, seed: int = 0) -> Examination:
    """The same task on other forms of items that were examined, taken as they are: a part may be empty."""
    if before.task == MASKED:
        return _of_hidden_pieces(encoder, items, seed)
    assert isinstance(encoder, HuggingFaceEncoder), "it was asked the task of a head before"
    labels = labels_of(encoder) if before.task in ("sentence", "pair", "token") else ()
    return _of_head(encoder, before.task, labels, items, 0)


def _of_head(
    encoder: HuggingFaceEncoder, name: str, labels: tuple[str, ...], asked: Sequence[Item], left_out: int
) -> Examination:
    judge = head_task(name, labels)
    seen = judge.see(asked, encoder.tokenise, longest=encoder.max_pieces)
    if not seen.examples:
        raise _none_fits(len(asked), encoder)
    guess = next(iter(judge.guesses(seen.items, seen.items).values()))
    return Examination(
        name,
        judge.measure,
        tuple(seen.items),
        tuple(_sheets(judge, seen, _head_of(name), encoder.device)),
        left_out + len(asked) - len(seen.items),
        judge.counts(seen.items, guess),
    )


def asked_task(encoder: Encoder, corpus: Corpus) -> str:
    """What a model can be asked of a corpus: the task of its head, else hidden pieces; refused where it has neither."""
    for head, tasks in HEADS.items():
        for name in tasks if head in encoder.outputs else ():
            if name == "token" or 2 * sum(map(NEEDS[name].met, corpus)) > len(corpus):
                return name
    if _can_be_asked(encoder, MASKED):
        return MASKED
    have = ", ".join(sorted(encoder.outputs)) or "none"
    raise Refusal(
        f"{encoder.name} cannot be asked anything about {corpus.name} (its heads: {have})",
        "a model fine-tuned for a task that the corpus has gold answers for, or one with a masked-language-model head",
        "Fine-tune one with `bertology finetune`, or choose another model or corpus",
    )


def head_task(name: str, labels: tuple[str, ...]) -> HeadTask:
    """The task of a name whose answers are these labels; tags are read from `tags`."""
    match name:
        case "sentence" | "pair":
            return Classes(name, labels)
        case "token":
            return Tags(labels, "tags")
        case "qa":
            return Answers(may_lack=False)
        case _:
            return Choices()


def _can_be_asked(encoder: Encoder, name: str) -> bool:
    if name == MASKED:
        return MASKED in encoder.outputs and encoder.mask_id is not None
    return any(name in tasks for head, tasks in HEADS.items() if head in encoder.outputs)


def _head_of(task: str) -> str:
    return next(head for head, tasks in HEADS.items() if task in tasks)


def _usual_layer(corpus: Corpus) -> str | None:
    """Entities where they are all there is to go by: what taggers are mostly trained for."""
    return "entities" if corpus.layers["entities"] and not corpus.layers["tags"] else None


def _drawn(items: Sequence[Item], count: int) -> list[Item]:
    return ordered(items)[:count] if count else list(items)


def _in_words_of(labels: tuple[str, ...], items: Sequence[Item], name: str, model: str) -> list[Item]:
    """The items with their gold answers in the model's words, whatever their capitals; or by the number of a class."""
    if name == "token":
        return [_tagged_in_words_of(labels, item) for item in items]
    if name not in ("sentence", "pair"):
        return list(items)
    numbers = class_numbers(labels, [item.label for item in items], model)
    return [replace(item, label=labels[number]) for item, number in zip(items, numbers, strict=True)]


def _tagged_in_words_of(labels: tuple[str, ...], item: Item) -> Item:
    """What the model has no tag for stands outside every name."""
    part = item.parts[0]
    outside = "O" if "O" in labels else ""
    tags = tuple(tag if tag in labels else outside or tag for tag in part.tags or ())
    return replace(item, parts=(replace(part, tags=tags), *item.parts[1:]))


def _sheets(task: HeadTask, seen: Seen, head: str, device: str) -> Iterator[Sheet]:
    """Items of like length together, all examples of an item on one sheet."""
    of_item = [list(some) for _, some in groupby(seen.examples, key=lambda example: example.item)]
    places = sorted(range(len(of_item)), key=lambda place: len(of_item[place][0]))
    for start in range(0, len(places), AT_ONCE):
        some = places[start : start + AT_ONCE]
        items, examples = [seen.items[place] for place in some], [of_item[place] for place in some]
        yield _sheet(task, items, some, examples, head, device)


def _sheet(
    task: HeadTask, items: list[Item], places: list[int], examples: Sequence[Sequence[Example]], head: str, device: str
) -> Sheet:
    flat = [replace(example, item=row) for row, some in enumerate(examples) for example in some]
    padded, seen = pad(flat, list(range(len(flat)))), Seen(items, flat, 0)
    row = torch.tensor([example.item for example in flat])
    share = (row[None, :] == torch.arange(len(items))[:, None]).float()
    share /= share.sum(1, keepdim=True)

    def losses(output: Output) -> Tensor:
        each = task.losses(output, padded)
        return share.to(each) @ each

    def counts(output: Output) -> Counts:
        return task.counts(items, task.read([(padded, output)], seen))

    shown = in_rows(padded.shown, device)
    options = len(shown.ids) // len(flat)
    return Sheet(shown, places, losses, counts, [example.item for example in flat for _ in range(options)], head)


def _of_hidden_pieces(encoder: Encoder, items: Sequence[Item], seed: int) -> Examination:
    """15 % of the pieces of each text are hidden; right is the likeliest piece."""
    shown = [(item, text) for item in items for text in item.inputs]
    pieces = encoder.tokenise([text for _, text in shown])
    entries = [
        Entry(place, 0, 0, text, some)
        for place, ((_, text), some) in enumerate(zip(shown, pieces, strict=True))
        if len(some) <= encoder.max_pieces and (some.special == Special.NONE).any()
    ]
    if not entries:
        raise _none_fits(len(shown), encoder)
    sheets: list[Sheet] = []
    by_length = sorted(range(len(entries)), key=lambda place: len(entries[place].pieces))
    for start in range(0, len(entries), AT_ONCE):
        places = by_length[start : start + AT_ONCE]
        sheets.append(_hidden_sheet(encoder, Frame([entries[place] for place in places], encoder.device), places, seed))
    asked = tuple(shown[entry.item][0] for entry in entries)
    return Examination(MASKED, "accuracy of hidden pieces", asked, tuple(sheets), len(shown) - len(entries))


def _hidden_sheet(encoder: Encoder, frame: Frame, places: list[int], seed: int) -> Sheet:
    hidden = masked_positions(frame, seed)
    assert encoder.mask_id is not None, "asked only of models that have a mask"
    batch = replace(frame.batch, ids=torch.where(hidden, encoder.mask_id, frame.batch.ids))

    def losses(output: Output) -> Tensor:
        return masked_losses(frame, output, hidden) / hidden.sum(1)

    def counts(output: Output) -> Counts:
        found = masked_scores(output, hidden).argmax(-1) == frame.batch.ids[hidden]
        right = torch.zeros_like(hidden).masked_scatter(hidden, found)
        return Counts(*(flags.sum(1).double().cpu().numpy() for flags in (right, hidden)))

    return Sheet(batch, places, losses, counts, list(range(len(places))), MASKED, masked_places(hidden))


def _none_fits(count: int, encoder: Encoder) -> Refusal:
    return Refusal(
        f"None of {count} items fits into the {encoder.max_pieces} pieces of {encoder.name}",
        "items that the model can be shown whole",
        "Choose a model that takes longer inputs, or shorten the texts",
    )
