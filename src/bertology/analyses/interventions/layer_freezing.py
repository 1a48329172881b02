"""Fine-tuning with the first layers frozen, or with the first layers only (merchant2020)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge

from bertology.analyses.cache import AnalysisCache
from bertology.analyses.declaration import Cost, analysis
from bertology.analyses.evaluation.answers import run_answers
from bertology.analyses.evaluation.options import FinetuningOptions, RandomBaselineOption, TaskLabelOption
from bertology.analyses.evaluation.score_change import reference_score
from bertology.corpus.corpus import Corpus
from bertology.encoder.encoder import Encoder
from bertology.encoder.layer_variants import LayerVariant
from bertology.estimates.estimate import Estimates
from bertology.estimates.metrics import Counts, bootstrap_paired_runs, bootstrap_runs
from bertology.estimates.resampling import widen_by_rule_of_three
from bertology.results.answers import Answer
from bertology.results.measured_shape import MODEL_SERIES
from bertology.results.shapes import Curve

FROZEN, TRUNCATED = "first k layers frozen", "first k layers only"


@analysis(
    question="How many layers must be trained, and how many are needed at all, to learn a task?",
    special_tokens="Special tokens: included. Classes are read at the first token, tags at the first token of a word.",
    citations=("merchant2020",),
    version=4,
    cost=Cost(300.0),
    answers=True,
)
def layer_freezing(
    encoder: Encoder,
    corpus: Corpus,
    cache: AnalysisCache,
    *,
    task: Annotated[
        Literal["auto", "sentence", "pair", "token", "dependency", "qa", "choice"],
        "Task to train: sentence, pair, token, dependency, qa or choice; `auto`: what the corpus is annotated for.",
    ] = "auto",
    label: TaskLabelOption = "",
    layer_step: Annotated[int, Ge(1), "Evaluate every k-th number of frozen or kept layers."] = 1,
    random_baseline: RandomBaselineOption = True,
    options: FinetuningOptions = FinetuningOptions(),
) -> Curve:
    """Held-out score (0 to 1) of a model fine-tuned with its first k layers frozen, or with only these layers.

    `first k layers frozen`: the embeddings and the first k layers are not trained, the others are trained with the task
    head; at the last k only the task head (with its pooler) is trained. `first k layers only`: the layers above the
    first k are removed and the rest is trained; at 0 the task head reads the embeddings. The score is accuracy, span F1
    of entities, LAS of trees or F1 of answers. All epochs are run and the last counts, so test examples select nothing;
    whole documents, or texts, are held out. Values are means over seeds; intervals resample examples and seeds. All
    parameters are trained with one learning rate and the same number of steps, as in the paper: the last point of the
    frozen curve is what a task head alone reaches in that time, which may be little, and not what the hidden states
    encode (see probes/*, and `--epochs`).

    `change in score` is the score minus that of the model with all layers trained, on the same examples and with the
    same seeds: its interval resamples pairs. If none of n predictions changed, that of another example still may, and
    the interval reaches 3/n to either side. A change near 0 up to k means that the first k layers did not need to
    change: merchant2020 found this up to 8 of 12 for MNLI and SQuAD. If the model with all layers trained is no better
    than the majority class, it has learnt nothing, and the result says so first (`reference`): a change near 0 then
    says nothing.
    """
    # Listing analyses must not import torch.
    from bertology.analyses.evaluation.finetuning_sweep import FinetuningSweep

    sweep = FinetuningSweep(encoder, corpus, cache, task, label, options, analysis_name="interventions/layer_freezing")
    seed = options.seed
    n_layers = sorted({*range(0, encoder.layers + 1, layer_step), encoder.layers})
    all_trained = LayerVariant()
    untrained = {"untrained model": LayerVariant(random_weights=True)} if random_baseline else {}
    variants = {
        FROZEN: [LayerVariant(frozen_layers=k) for k in n_layers],
        TRUNCATED: [all_trained if k == encoder.layers else LayerVariant(kept_layers=k) for k in n_layers],
    }
    all_variants = [all_trained, *untrained.values(), *variants[FROZEN], *variants[TRUNCATED]]
    counts = sweep.run(list(dict.fromkeys(all_variants)))
    scores = {
        f"score ({name})": Estimates.stack([bootstrap_runs(counts[variant], seed) for variant in curve])
        for name, curve in variants.items()
    }
    changes = {
        f"change in score ({name})": score_changes([counts[variant] for variant in curve], counts[all_trained], seed)
        for name, curve in variants.items()
    }
    baseline_name, majority = next(iter(sweep.baseline_counts().items()))
    baselines = {
        "all layers trained": bootstrap_runs(counts[all_trained], seed),
        "majority class": bootstrap_runs([majority], seed),
        **{name: bootstrap_runs(counts[variant], seed) for name, variant in untrained.items()},
    }
    reference = reference_score("the model with all layers trained", counts[all_trained], baseline_name, majority, seed)
    metric, shape = sweep.job.task.metric, (len(n_layers),)

    def answers() -> Iterator[Answer]:
        """What every trained model has right of each test example."""
        examples = sweep.test_set.examples
        for name, curve in variants.items():
            for k, variant in zip(n_layers, curve, strict=True):
                condition: Answer = {"series": MODEL_SERIES, "condition": name, "layers": k}
                yield from run_answers(examples, counts[variant], condition)
        others = {"all layers trained": counts[all_trained], "majority class": [majority]}
        for series, runs in (others | {name: counts[variant] for name, variant in untrained.items()}).items():
            yield from run_answers(examples, runs, {"series": series, "condition": None, "layers": None})

    curve = Curve(
        x_name="layers",
        x=np.array(n_layers, np.float64),
        measures=scores | changes,
        baselines={
            **{name: dict.fromkeys(scores, Estimates.full(shape, value)) for name, value in baselines.items()},
            "zero": dict.fromkeys(changes, Estimates.exact(np.zeros(shape))),
        },
        units=dict.fromkeys(scores, f"{metric}, 0 to 1") | dict.fromkeys(changes, f"change in {metric}, -1 to 1"),
        sample={
            "training examples": len(sweep.train_set.examples),
            "test examples": len(sweep.test_set.examples),
            **sweep.long_examples(),
            "seeds": options.n_seeds,
        },
        reference=reference,
    )
    return curve.with_answers(answers)


def score_changes(runs_by_point: Sequence[Sequence[Counts]], full_model_runs: Sequence[Counts], seed: int) -> Estimates:
    """(point,) scores minus those of the fully trained model, whose difference from itself is exactly 0."""
    is_unchanged = np.array(
        [runs is not full_model_runs and _have_equal_counts(runs, full_model_runs) for runs in runs_by_point]
    )
    differences = Estimates.stack([bootstrap_paired_runs(runs, full_model_runs, seed) for runs in runs_by_point])
    return widen_by_rule_of_three(differences, is_unchanged)


def _have_equal_counts(first: Sequence[Counts], second: Sequence[Counts]) -> bool:
    """Whether no example has another score in any run."""
    return all(
        np.array_equal(left.correct, right.correct) and np.array_equal(left.total, right.total)
        for left, right in zip(first, second, strict=True)
    )
