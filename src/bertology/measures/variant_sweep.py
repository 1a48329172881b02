"""One task learnt many times, each time by a model changed in another way or from other forms of the items.

All are judged on the same items, and no epoch is chosen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from bertology.corpus.corpus import Corpus
from bertology.encoder.encoder import Encoder
from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.encoder.variant import Variant, blocks_of
from bertology.errors import Refusal
from bertology.finetuning.choose import fitting, guessed_task, task_for
from bertology.finetuning.division import Division, digest, divided, ordered
from bertology.finetuning.learn import Lesson, Meter, learner_for, teach
from bertology.finetuning.loop import Recipe, settled
from bertology.finetuning.metrics import Counts
from bertology.maths.resampling import resampled_ratios
from bertology.measures.work import Work
from bertology.results.estimate import Estimate

Floats = NDArray[np.float64]

HELD_OUT = 0.25
Key = TypeVar("Key")


class Sweep:
    """One task learnt many times, by a model changed in another way or from other forms of the items."""

    def __init__(
        self,
        encoder: Encoder,
        corpus: Corpus,
        work: Work,
        task: str,
        layer: str,
        items: int,
        recipe: Recipe,
        seeds: int,
        purpose: str = "causes/freezing",
    ) -> None:
        """`task` may be `auto`; an empty `layer` is the first there is; the seeds are counted up from the recipe's."""
        if not isinstance(encoder, HuggingFaceEncoder):
            raise Refusal(
                f"{purpose} fine-tunes, and {encoder.name} has no blocks", "a transformer", "Choose another model"
            )
        blocks_of(encoder.model.base_model)
        name = guessed_task(corpus) if task == "auto" else task
        usable, chosen = fitting(corpus, name, layer or None)
        drawn = replace(usable, items=tuple(ordered(usable.items)[:items]))
        self.parts: Division = divided(drawn, HELD_OUT, seed=recipe.seed)
        whole = settled(recipe, width=encoder.width, device=encoder.device)
        self.lesson = Lesson(task_for(name, self.parts.learnt, chosen), self.parts.learnt, whole, Variant())
        self.encoder, self.work, self.seeds, self.purpose = encoder, work, seeds, purpose
        self.seen, self.judged = (self.lesson.see(encoder, some) for some in (self.parts.learnt, self.parts.held_out))

    def run(self, variants: Sequence[Variant]) -> dict[Variant, list[Counts]]:
        """What is right after each variant has learnt the lesson, for every seed."""
        return self.counts({variant: replace(self.lesson, variant=variant) for variant in variants})

    def counts(self, lessons: Mapping[Key, Lesson]) -> dict[Key, list[Counts]]:
        """What is right after each lesson, for every seed."""
        runs = [(key, self.lesson.recipe.seed + place) for key in lessons for place in range(self.seeds)]
        meter = self.work.meter(f"fine-tuning {len(runs)} times")
        counts: dict[Key, list[Counts]] = {key: [] for key in lessons}
        for place, (key, seed) in enumerate(runs):
            lesson = replace(lessons[key], recipe=replace(self.lesson.recipe, seed=seed))

            def tell(done: int, total: int, before: int = place) -> None:
                meter(before * total + done, len(runs) * total)

            counts[key].append(self._counts(lesson, tell))
        return counts

    def guess(self) -> Estimate:
        """The score of an answer that needs no model."""
        guesses = self.lesson.task.guesses(self.seen.items, self.judged.items)
        answers = next(iter(guesses.values()))
        return over_seeds([self.lesson.task.counts(self.judged.items, answers)], self.lesson.recipe.seed)

    def _counts(self, lesson: Lesson, tell: Meter) -> Counts:
        about = {
            "analysis": self.purpose,
            "format": 1,
            "model": self.encoder.fingerprint,
            "task": [lesson.task.name, list(lesson.task.labels), lesson.task.measure],
            "learnt": digest(lesson.items),
            "held_out": digest(self.parts.held_out),
            "recipe": asdict(lesson.recipe),
            "variant": asdict(lesson.variant),
        }
        found = self.work.kept(about, lambda: self._learn(lesson, tell))
        return Counts(np.array(found["right"]), np.array(found["of"]))

    def _learn(self, lesson: Lesson, tell: Meter) -> dict[str, list[float]]:
        learner = learner_for(self.encoder, lesson)
        seen = self.seen if lesson.items is self.parts.learnt else lesson.see(self.encoder, lesson.items)
        teach(learner, lesson, seen, None, progress=tell)
        counts = lesson.task.counts(self.judged.items, lesson.task.answers(learner, self.judged))
        return {"right": counts.right.tolist(), "of": counts.of.tolist()}


def over_seeds(counts: Sequence[Counts], seed: int) -> Estimate:
    """The mean of the scores of several runs, with an interval that resamples items and runs together."""
    return _mean_of_runs(*_scores(counts, seed), seed, len(counts[0].right))


def change_over_seeds(after: Sequence[Counts], before: Sequence[Counts], seed: int) -> Estimate:
    """The mean score of several runs less that of as many others, by pairs of runs with one seed and of the same items.

    Its interval resamples the pairs: what makes an item hard for both, or a seed bad for both, does not widen it.
    """
    (value, drawn), (value_before, drawn_before) = (_scores(counts, seed) for counts in (after, before))
    return _mean_of_runs(value - value_before, drawn - drawn_before, seed, len(after[0].right))


def _scores(counts: Sequence[Counts], seed: int) -> tuple[Floats, Floats]:
    """(run,) the score of each run, and (resample, run) those of resampled items, the same for one seed."""
    right, of = (np.stack([getattr(some, name) for some in counts], axis=1) for name in ("right", "of"))
    sums = resampled_ratios(np.concatenate([right, of], axis=1), np.ones(len(right)), seed=seed)
    return _share(right.sum(0), of.sum(0)), _share(sums[:, : len(counts)], sums[:, len(counts) :])


def _mean_of_runs(scores: Floats, drawn: Floats, seed: int, items: int) -> Estimate:
    runs = np.random.default_rng(seed).integers(drawn.shape[1], size=drawn.shape)
    low, high = np.percentile(np.take_along_axis(drawn, runs, axis=1).mean(1), [2.5, 97.5])
    value = float(scores.mean())
    return Estimate(value, min(float(low), value), max(float(high), value), items)


def _share(right: Floats, of: Floats) -> Floats:
    return np.divide(right, of, out=np.zeros_like(right), where=of > 0)
