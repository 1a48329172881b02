"""Options shared by the analyses that evaluate or fine-tune a model on a task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge

from bertology.number_ranges import LEARNING_RATE_OR_ZERO, REPETITIONS
from bertology.recording.overflow import ExampleOverflow

TaskLabelOption = Annotated[
    str,
    "Label to predict, by the name of a column of the corpus; for --task token also an annotation such as pos or "
    "entities (default: the label of the examples, or the first annotation available).",
]
SampleSizeOption = Annotated[int, Ge(0), "Evaluate on a random sample of this many examples (0: all)."]
SeedOption = Annotated[
    int,
    "Random seed for every random choice of this analysis: sampling, splits, masking, initial weights, shuffled "
    "baselines and the bootstrap.",
]
ExampleOverflowOption = Annotated[
    ExampleOverflow,
    "Examples longer than the model allows: `error` stops, `skip` skips them, `truncate` cuts whole words (the "
    "beginning of a classified text, the end of a passage, of a masked text or of the longer text of a pair), `window` "
    "splits the passages of questions; `auto`: as in fine-tuning, texts and passages are truncated, pairs and masked "
    "texts skipped, passages of questions split.",
]
RandomBaselineOption = Annotated[bool, "Measure the untrained model as a baseline."]
NormaliseOption = Annotated[
    Literal["layer", "none"],
    "`layer`: gradients of each layer scaled to unit norm, as in the paper; `none`: nats.",
]
LegacyOption = Annotated[bool, "Reproduce the released code: absolute gradients per token instead of per example."]
NSeedsOption = Annotated[
    int,
    REPETITIONS,
    "Number of repetitions with different random seeds (splits, initial weights, order, control labels); the first is "
    "--seed.",
]
BatchSizeOption = Annotated[int, Ge(1), "Examples per training batch."]


@dataclass(frozen=True)
class EvaluationOptions:
    """The task and the examples a model is evaluated on."""

    task: Annotated[
        Literal["auto", "mlm", "sentence", "pair", "token", "qa", "choice"],
        "Task to evaluate: sentence, pair, token, qa, choice or mlm; `auto`: the task of the model's task head, else "
        "masked language modelling.",
    ] = "auto"
    label: TaskLabelOption = ""
    sample_size: SampleSizeOption = 100
    seed: SeedOption = 0
    overflow: ExampleOverflowOption = "auto"


@dataclass(frozen=True)
class HalvedEvaluationOptions(EvaluationOptions):
    """The same, for analyses that select or rank heads on one half of the examples."""

    sample_size: Annotated[
        int,
        Ge(0),
        "Use a random sample of this many examples (0: all); one half selects or ranks heads, the other is the test "
        "set.",
    ] = 80


@dataclass(frozen=True)
class AttackOptions:
    """The task and the examples that are attacked; words of tagged sentences cannot be moved."""

    task: Annotated[
        Literal["auto", "mlm", "sentence", "pair", "qa", "choice"],
        "Task to evaluate: sentence, pair, qa, choice or mlm; `auto`: the task of the model's task head, else masked "
        "language modelling.",
    ] = "auto"
    label: TaskLabelOption = ""
    sample_size: SampleSizeOption = 100
    seed: SeedOption = 0
    overflow: ExampleOverflowOption = "auto"


@dataclass(frozen=True)
class FinetuningOptions:
    """Examples, hyperparameters and repetitions of fine-tuning."""

    sample_size: Annotated[
        int, Ge(0), "Use a random sample of this many examples; a quarter is the test set (0: all)."
    ] = 400
    n_seeds: NSeedsOption = 2
    epochs: Annotated[int, REPETITIONS, "Training epochs."] = 3
    learning_rate: Annotated[
        float, LEARNING_RATE_OR_ZERO, "Peak learning rate (0: chosen by model width, 5e-5 for 768)."
    ] = 0.0
    batch_size: BatchSizeOption = 16
    seed: SeedOption = 0
    overflow: ExampleOverflowOption = "auto"
