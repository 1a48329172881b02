"""`bertology.finetune`: a model taught a task by the items of a corpus, as a directory in Hugging Face form.

The folder holds config.json, model.safetensors and the tokeniser, for any tool that reads this form; finetuning.json
with recipe, data and scores, written last; and while it is not finished `training`, which an interrupted run goes on
from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from bertology.corpus.builtin import corpus_named
from bertology.corpus.corpus import Corpus, Item
from bertology.encoder.encoder import Encoder
from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.encoder.load import load
from bertology.encoder.variant import Variant
from bertology.errors import Refusal
from bertology.finetuning.checkpoint import FolderKeeper
from bertology.finetuning.choose import TaskName, fitting, task_for
from bertology.finetuning.division import Division, digest, divided, ordered
from bertology.finetuning.examples import Seen
from bertology.finetuning.learn import Judged, Lesson, Meter, judge, learner_for, teach
from bertology.finetuning.learner import Learner
from bertology.finetuning.loop import Diverged, Progress, Recipe, put_back, settled
from bertology.finetuning.metrics import Scores
from bertology.finetuning.talk import cut_lines, epoch_line, opening, verdict
from bertology.finetuning.workplace import LAST_GOOD, Workplace, save_whole
from bertology.results.estimate import Estimate
from bertology.results.result import versions

DEV_SHARE = 0.1

Notify = Callable[[str], None]


@dataclass(frozen=True)
class FineTuned:
    """A model that has learnt a task: itself, where it lies, and all that is known about how it came to be."""

    encoder: HuggingFaceEncoder
    folder: Path
    record: Mapping[str, Any]

    def scores(self, part: str = "dev") -> dict[str, Estimate]:
        """The scores on the items that decided (`dev`), or on those of their own (`test`)."""
        return {name: Estimate(**_numbers(value)) for name, value in self.record["scores"][part].items()}


def finetune(
    model: Encoder | str,
    data: Corpus | str | Path,
    task: TaskName,
    output: str | Path,
    *,
    dev: Corpus | str | Path | None = None,
    dev_share: float = DEV_SHARE,
    test: Corpus | str | Path | None = None,
    recipe: Recipe = Recipe(),
    variant: Variant = Variant(),
    layer: str | None = None,
    max_pieces: int | None = None,
    keep_checkpoints: bool = False,
    device: str = "cpu",
    seconds: float = 60.0,
    progress: Callable[[str], Meter] | None = None,
    notify: Notify | None = None,
) -> FineTuned:
    """Teach a model a task and write it to the folder `output`; see the file's head for what lies there.

    The epoch with the best score on `dev` is kept, or on `dev_share` of the data, held out by document or text. A run
    that was interrupted goes on from what it kept (every epoch, and every `seconds` within one) and ends with the same
    weights. A loss that is no number stops it, and what it was before is kept. `test` items decide nothing.
    """
    tell = notify or _silent
    encoder = _encoder(model, device)
    corpus, layer = fitting(_corpus(data), task, layer)
    parts = _parts(corpus, dev, dev_share, task, layer)
    whole = settled(recipe, width=encoder.width, device=encoder.device)
    lesson = Lesson(task_for(task, parts.learnt, layer), parts.learnt, whole, variant, max_pieces)
    tests = None if test is None else ordered(fitting(_corpus(test), task, layer)[0].items)
    about = _about(encoder, corpus, parts, tests, lesson, layer)
    work = Workplace(Path(output), about)
    if (record := work.finished()) is not None:
        tell(f"{output} is finished already; nothing was done")
        return FineTuned(load_finished(work.folder, encoder.device), work.folder, record)
    tell(opening(encoder, corpus.name, parts, lesson))
    learner = learner_for(encoder, lesson)
    seen, deciding = lesson.see(encoder, parts.learnt), lesson.see(encoder, parts.held_out)
    for line in cut_lines(lesson, encoder, {"to learn from": seen, "to decide by": deciding}):
        tell(line)
    reached = _taught(learner, lesson, seen, deciding, work, keep_checkpoints, seconds, progress, tell)
    judged = {"dev": judge(lesson.task, learner, deciding, seen.items)}
    if tests is not None:
        judged["test"] = judge(lesson.task, learner, lesson.see(encoder, tests), seen.items)
    for part, found in judged.items():
        tell(verdict(part, found, lesson.task.measure))
    record = {**about, "cut": {"learnt": seen.cut, "dev": deciding.cut}, **asdict(reached), **_scored(judged)}
    work.finish(learner, record)
    return FineTuned(load_finished(work.folder, encoder.device), work.folder, record)


def load_finished(folder: Path, device: str = "cpu") -> HuggingFaceEncoder:
    """The model in a folder that fine-tuning has written."""
    found = load(str(folder.resolve()), device=device)
    assert isinstance(found, HuggingFaceEncoder), "a directory loads as a transformer"
    return replace(found, name=str(folder))


def _taught(
    learner: Learner,
    lesson: Lesson,
    seen: Seen,
    deciding: Seen,
    work: Workplace,
    keep_checkpoints: bool,
    seconds: float,
    progress: Callable[[str], Meter] | None,
    tell: Notify,
) -> Progress:
    keeper = FolderKeeper(work.training, seconds)
    before = keeper.last()
    if before is not None:
        tell(f"going on from step {before.step}, where it was interrupted")

    def after_epoch(reached: Progress, step: int) -> None:
        tell(epoch_line(reached, lesson))
        if keep_checkpoints:
            save_whole(learner, work.folder / f"checkpoint-{step}")

    try:
        return teach(
            learner,
            lesson,
            seen,
            deciding,
            keeper=keeper,
            progress=progress("fine-tuning") if progress else None,
            after_epoch=after_epoch,
        )
    except Diverged as diverged:
        raise _diverged(diverged, learner, lesson, keeper, work) from diverged


def _diverged(diverged: Diverged, learner: Learner, lesson: Lesson, keeper: FolderKeeper, work: Workplace) -> Refusal:
    """Keep the last good weights as a model, and say so."""
    state = keeper.last()
    kept = "It had not finished an epoch, so that nothing was worth keeping"
    if state is not None:
        put_back(learner.module, state.weights)
        save_whole(learner, work.folder / LAST_GOOD)
        kept = f"The weights of step {state.step} are kept in {work.folder / LAST_GOOD}"
    work.give_up()
    return Refusal(
        f"Fine-tuning diverged: {diverged}. {kept}",
        "a loss that stays a finite number",
        f"Try a smaller --rate than {lesson.recipe.rate:g}, or a longer --warm-up",
    )


def _silent(line: str) -> None:
    """Say nothing."""


def _encoder(model: Encoder | str, device: str) -> HuggingFaceEncoder:
    encoder = load(model, device=device) if isinstance(model, str) else model
    if not isinstance(encoder, HuggingFaceEncoder):
        raise Refusal(
            f"{encoder.name} is a table of vectors and has nothing to learn", "a transformer", "Choose another model"
        )
    return encoder


def _corpus(data: Corpus | str | Path) -> Corpus:
    return data if isinstance(data, Corpus) else corpus_named(str(data))


def _parts(corpus: Corpus, dev: Corpus | str | Path | None, share: float, task: str, layer: str | None) -> Division:
    if dev is None:
        # The same whatever the seed of the training, so that runs of several seeds can be compared.
        return divided(corpus, share, seed=0)
    held_out, _ = fitting(_corpus(dev), task, layer)
    return Division(ordered(corpus.items), ordered(held_out.items), "items as they were given")


def _about(
    encoder: HuggingFaceEncoder,
    corpus: Corpus,
    parts: Division,
    tests: Sequence[Item] | None,
    lesson: Lesson,
    layer: str | None,
) -> dict[str, Any]:
    """All that the weights and the scores depend on."""
    return {
        "format": 1,
        "task": lesson.task.name,
        "model": {"name": encoder.name, "fingerprint": encoder.fingerprint},
        "data": {
            "name": corpus.name,
            "learnt": _told(parts.learnt),
            "dev": _told(parts.held_out),
            "test": None if tests is None else _told(tests),
            "kept_together": parts.kept_together,
            "skipped": dict(Counter(skip.reason for skip in corpus.skipped)),
        },
        "layer": layer,
        "labels": list(lesson.task.labels),
        "measure": lesson.task.measure,
        "recipe": asdict(lesson.recipe),
        "variant": asdict(lesson.variant),
        "max_pieces": lesson.longest(encoder),
        "versions": versions(),
    }


def _told(items: Sequence[Item]) -> dict[str, Any]:
    return {"items": len(items), "fingerprint": digest(items)}


def _scored(judged: Mapping[str, Judged]) -> dict[str, Any]:
    return {
        "scores": {part: _as_json(found.scores) for part, found in judged.items()},
        "baselines": {
            part: {name: _as_json(scores) for name, scores in found.baselines.items()}
            for part, found in judged.items()
        },
    }  # fmt: skip


def _as_json(scores: Scores) -> dict[str, Any]:
    """Estimates as JSON has them: null for what is no number."""
    return {
        name: {field: None if value != value else value for field, value in asdict(estimate).items()}
        for name, estimate in scores.items()
    }


def _numbers(value: Mapping[str, Any]) -> dict[str, Any]:
    return {name: float("nan") if number is None else number for name, number in value.items()}
