"""What a fine-tuning run says while it goes on, for a person to read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.encoder.variant import Variant
from bertology.finetuning.division import Division
from bertology.finetuning.examples import Seen
from bertology.finetuning.learn import Judged, Lesson
from bertology.finetuning.loop import Progress

LABELS_SHOWN = 6
MEANING = {
    "dev": "dev (these items also chose the epoch)",
    "test": "test (these items decided nothing)",
}


def opening(encoder: HuggingFaceEncoder, data: str, parts: Division, lesson: Lesson) -> str:
    """What is learnt from what."""
    labels = ""
    if lesson.task.name in {"sentence", "pair"}:
        counts = Counter(str(item.label) for item in parts.learnt).most_common()
        shown = [f"{label} ({100 * count / len(parts.learnt):.0f} %)" for label, count in counts[:LABELS_SHOWN]]
        labels = f"; labels {', '.join(shown)}" + (" ..." if len(counts) > LABELS_SHOWN else "")
    elif lesson.task.labels:
        labels = f"; {len(lesson.task.labels)} labels"
    apart = "" if parts.kept_together.startswith("items") else f", no {parts.kept_together} in both"
    recipe = lesson.recipe
    return (
        f"{encoder.name}{_changed(lesson.variant)} learns the task {lesson.task.name} from {len(parts.learnt)} items "
        f"of {data}; {len(parts.held_out)} decide which epoch is kept{apart}{labels}; "
        f"{recipe.epochs} epochs at most, {recipe.size} items a step, rate {recipe.rate:g}, {recipe.precision}"
    )


def cut_lines(lesson: Lesson, encoder: HuggingFaceEncoder, seen: Mapping[str, Seen]) -> Iterator[str]:
    """How many items did not fit into the model."""
    for part, some in seen.items():
        if some.cut:
            yield f"{some.cut} of the items {part} are longer than {lesson.longest(encoder)} pieces: cut or left out"


def epoch_line(progress: Progress, lesson: Lesson) -> str:
    """What an epoch came to."""
    line = progress.log[-1]
    best = " (best so far)" if progress.best_epoch == line["epoch"] else ""
    return (
        f"epoch {line['epoch']:g} of {lesson.recipe.epochs}: loss {line['loss']:.3f}, "
        f"dev {lesson.task.measure} {line['score']:.3f}{best}, {line['seconds'] + line['scoring']:.0f} s"
    )


def verdict(part: str, judged: Judged, measure: str) -> str:
    """The scores of the model beside those of guessing."""
    scores = ", ".join(f"{name} {estimate}" for name, estimate in judged.scores.items())
    guesses = ", ".join(f"{scores[measure]} ({name})" for name, scores in judged.baselines.items())
    n = judged.scores[measure].n
    return f"{MEANING[part]}, n = {n}: {scores}; {measure} without a model: {guesses}"


def _changed(variant: Variant) -> str:
    changes: list[str] = []
    if variant.random:
        changes.append("with fresh weights")
    if variant.truncate is not None:
        changes.append(f"cut to {variant.truncate} blocks")
    if variant.reinitialise:
        changes.append(f"with {variant.reinitialise} fresh blocks at the top")
    if variant.freeze is not None:
        changes.append(f"with its embeddings and first {variant.freeze} blocks frozen")
    return f" ({', '.join(changes)})" if changes else ""
