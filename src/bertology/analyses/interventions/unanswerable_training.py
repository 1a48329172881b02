"""Training on questions that cannot be answered: passages, questions or both shuffled or removed (si2019)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import numpy as np

from bertology.analyses.cache import AnalysisCache
from bertology.analyses.declaration import Cost, analysis
from bertology.analyses.evaluation.answers import run_answers
from bertology.analyses.evaluation.options import FinetuningOptions, RandomBaselineOption
from bertology.analyses.evaluation.score_change import reference_score
from bertology.analyses.text_attacks.perturbations import ShuffleDistanceOption, shuffle_words
from bertology.analyses.text_attacks.registry import example_rng
from bertology.analyses.text_attacks.word_edits import remove_all_words
from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example
from bertology.encoder.encoder import Encoder
from bertology.encoder.layer_variants import LayerVariant
from bertology.errors import Refusal, unknown_name
from bertology.estimates.estimate import Estimates
from bertology.estimates.metrics import Counts, bootstrap_paired_runs, bootstrap_runs
from bertology.recording.overflow import cut_example
from bertology.results.answers import Answer
from bertology.results.measured_shape import MODEL_SERIES
from bertology.results.shapes import Table

if TYPE_CHECKING:
    from bertology.analyses.evaluation.finetuning_sweep import FinetuningSweep

SCORE, DROP = "score", "score drop"
UNCORRUPTED, UNTRAINED_MODEL, CHANCE = "uncorrupted", "untrained model", "chance"
CORRUPTIONS: dict[str, tuple[str, str]] = {
    "P-Shuffle": ("P", "shuffled"),
    "Q-Shuffle": ("Q", "shuffled"),
    "PQ-Shuffle": ("PQ", "shuffled"),
    "P-Remove": ("P", "removed"),
    "Q-Remove": ("Q", "removed"),
    "PQ-Remove": ("PQ", "removed"),
}
"""The corrupted segments (passage, question) and how they are corrupted, in the order of the paper's table 3."""
SEGMENT_NAMES = {"P": "passages", "Q": "questions", "PQ": "passages and questions"}


@analysis(
    question="How well does a model answer intact questions after training on shuffled or missing passages and "
    "questions?",
    special_tokens="Special tokens: included. Options are read at the first token.",
    citations=("si2019",),
    version=4,
    cost=Cost(900.0),
    answers=True,
    test_corpus="generated:reading_comprehension@0:8",
)
def unanswerable_training(
    encoder: Encoder,
    corpus: Corpus,
    cache: AnalysisCache,
    *,
    corruptions: Annotated[
        str, "Corruptions of the training data, comma-separated, such as P-Shuffle,Q-Remove; empty: all six."
    ] = "",
    shuffle_distance: ShuffleDistanceOption = 0.6,
    random_baseline: RandomBaselineOption = True,
    options: FinetuningOptions = FinetuningOptions(sample_size=200, n_seeds=1),
) -> Table:
    """Score (0 to 1) on intact held-out questions of a model trained on questions that cannot be answered.

    `P-Shuffle`, `Q-Shuffle` and `PQ-Shuffle` train on passages, questions or both with shuffled words; `P-Remove`,
    `Q-Remove` and `PQ-Remove` on empty ones (passages with marked answers are never removed). Test questions are not
    changed, as in the paper: all models answer the same readable questions. The row `uncorrupted` is trained on intact
    examples, and `score drop` is its score minus that of the row on the same questions. Baselines: the most frequent
    option (for marked answers, the first words of the passage), the longest option, chance, and an untrained model
    trained on intact examples. The difference from the first of these is also measured on the same questions, with an
    interval that resamples pairs. A score far above it means that the task can be learnt without reading. Drops mean
    nothing if the row `uncorrupted` is no better than chance or the most frequent option, whichever is higher: the
    result then says so first. A passage longer than the model's maximum input is cut before it is shuffled. Questions
    on one passage are never in both training and test set. All epochs are run and the last counts; intervals resample
    questions and runs. This takes minutes on a CPU: eight models are trained for every seed.
    """
    # Listing analyses must not import torch.
    from bertology.analyses.evaluation.finetuning_sweep import FinetuningSweep
    from bertology.training.task_selection import infer_task

    if not 0 <= shuffle_distance <= 1:
        raise Refusal(f"--shuffle-distance is {shuffle_distance}", "a number from 0 to 1", "Omit it for 0.6")
    names = [name.strip() for name in corruptions.split(",") if name.strip()]
    for name in names:
        if name not in CORRUPTIONS:
            raise unknown_name("corruption", name, list(CORRUPTIONS))
    task = infer_task(corpus)
    if task not in ("choice", "qa"):
        raise Refusal(
            f"{corpus.name} has no questions on passages",
            "multiple choice, or questions with answers in a passage",
            "Use such a corpus, for example --corpus generated:reading_comprehension",
        )
    sweep = FinetuningSweep(
        encoder, corpus, cache, task, "", options, analysis_name="interventions/unanswerable_training"
    )
    # What is shuffled is what the model sees; passages with marked answers are read in windows.
    visible = [
        (cut_example(encoder, example, encoder.max_length) if task == "choice" else None) or example
        for example in sweep.split.train
    ]
    corrupted = {
        name: [
            corrupt_example(example, name, shuffle_distance, options.seed, original=original)
            for example, original in zip(visible, sweep.split.train, strict=True)
        ]
        for name in CORRUPTIONS
        if name in (names or CORRUPTIONS) and not (task == "qa" and _removes_passage(name))
    }
    jobs = {name: replace(sweep.job, examples=examples) for name, examples in corrupted.items()}
    counts = sweep.run_jobs({UNCORRUPTED: sweep.job, **jobs})
    untrained_job = replace(sweep.job, variant=LayerVariant(random_weights=True))
    untrained = sweep.run_jobs({UNTRAINED_MODEL: untrained_job}) if random_baseline else {}
    return _build_table(sweep, counts, untrained, options.seed)


def _build_table(
    sweep: FinetuningSweep, counts: dict[str, list[Counts]], untrained: Mapping[str, list[Counts]], seed: int
) -> Table:
    baseline_counts = _baseline_counts(sweep)
    first_baseline = next(iter(baseline_counts))
    guesses = [name for name in (first_baseline, CHANCE) if name in baseline_counts]
    guess = max(guesses, key=lambda name: baseline_counts[name].score)
    difference = f"{SCORE} - {first_baseline}"
    baseline_runs = {name: [correct] for name, correct in baseline_counts.items()} | dict(untrained)
    baselines = {name: bootstrap_runs(runs, seed) for name, runs in baseline_runs.items()}
    uncorrupted = bootstrap_runs(counts[UNCORRUPTED], seed).value
    metric, shape = sweep.job.task.metric, (len(counts),)
    table = Table(
        row_names=tuple(counts),
        measures={
            SCORE: Estimates.stack([bootstrap_runs(runs, seed) for runs in counts.values()]),
            DROP: Estimates.stack([bootstrap_paired_runs(counts[UNCORRUPTED], runs, seed) for runs in counts.values()]),
            difference: Estimates.stack(
                [
                    bootstrap_paired_runs(runs, [baseline_counts[first_baseline]] * len(runs), seed)
                    for runs in counts.values()
                ]
            ),
        },
        baselines={
            "zero": {difference: Estimates.exact(np.zeros(shape))},
            **{
                name: {
                    SCORE: Estimates.full(shape, score),
                    DROP: Estimates.exact(np.full(shape, uncorrupted - score.value), score.n),
                }
                for name, score in baselines.items()
            },
        },
        units={
            SCORE: f"{metric}, 0 to 1",
            DROP: f"change in {metric}, -1 to 1",
            difference: f"change in {metric}, -1 to 1",
        },
        notes={name: _note(name) for name in counts},
        sample={
            "training questions": len(sweep.train_set.examples),
            "test questions": len(sweep.test_set.examples),
            **sweep.long_examples(),
        },
        reference=reference_score(UNCORRUPTED, counts[UNCORRUPTED], guess, baseline_counts[guess], seed),
    )
    return table.with_answers(lambda: _answers(sweep.test_set.examples, counts, baseline_runs))


def _answers(
    examples: Sequence[Example], counts: Mapping[str, Sequence[Counts]], baseline_runs: Mapping[str, Sequence[Counts]]
) -> Iterator[Answer]:
    """What every trained model, and every baseline, has right of each test question."""
    for row, runs in counts.items():
        yield from run_answers(examples, runs, {"series": MODEL_SERIES, "row": row})
    for series, runs in baseline_runs.items():
        yield from run_answers(examples, runs, {"series": series, "row": None})


def _baseline_counts(sweep: FinetuningSweep) -> dict[str, Counts]:
    """Test counts of predictions that need no model."""
    examples, counts = sweep.test_set.examples, sweep.baseline_counts()
    if sweep.job.task.name == "choice":
        counts["longest option"] = longest_option_baseline(examples)
        counts[CHANCE] = _unit_counts([1 / (len(example.segments) - 2) for example in examples])
    return counts


def _note(corruption: str) -> str:
    if corruption == UNCORRUPTED:
        return "intact training examples"
    segments, method = CORRUPTIONS[corruption]
    return f"{SEGMENT_NAMES[segments]} {method} in the training examples"


def _removes_passage(corruption: str) -> bool:
    segments, method = CORRUPTIONS[corruption]
    return "P" in segments and method == "removed"


def corrupt_example(
    example: Example, corruption: str, shuffle_distance: float, seed: int, *, original: Example | None = None
) -> Example:
    """The example with its passage, its question or both shuffled or removed; `original`: before it was cut."""
    letters, method = CORRUPTIONS[corruption]
    index = {"P": 0, "Q": 1} if example.kind == "choice" else {"P": 1, "Q": 0}
    rng = example_rng(original or example, corruption, seed)
    segments = list(example.segments)
    for letter in letters:
        segment = segments[index[letter]]
        segments[index[letter]] = (
            shuffle_words(segment, rng, shuffle_distance) if method == "shuffled" else remove_all_words(segment)
        )
    return replace(example, segments=tuple(segments))


def longest_option_baseline(examples: Sequence[Example]) -> Counts:
    """Counts of always choosing the option with the most words; ties share the credit."""
    credits: list[float] = []
    for example in examples:
        lengths = [len(option) for option in example.segments[2:]]
        longest = [index for index, length in enumerate(lengths) if length == max(lengths)]
        credits.append((int(example.label or 0) in longest) / len(longest))
    return _unit_counts(credits)


def _unit_counts(correct: Sequence[float]) -> Counts:
    return Counts(np.array(correct, np.float64), np.ones(len(correct)))
