"""What fine-tuning changed, as fields: the score on the labels, the most changed layers and heads, and those needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bertology.analyses.evaluation.score_change import SIGNIFICANCE_LEVEL
from bertology.analyses.recordings_by_role import ForwardPass
from bertology.estimates.estimate import Estimate
from bertology.results.result import Result
from bertology.results.shapes import Head


@dataclass(frozen=True)
class Change:
    """A number before and after fine-tuning, such as the attention of a head to [SEP]."""

    measure: str
    before: Estimate
    after: Estimate

    @property
    def arrow(self) -> str:
        """The change with intervals, for a table."""
        return f"{self.measure.removeprefix('attention ')}: {self.before} → {self.after}"


@dataclass(frozen=True)
class TaskScore:
    """The fine-tuned model's score on the labels of the corpus.

    `baselines` are scores on the same examples: of the most frequent label, of the model with random weights, and of
    the model before fine-tuning if it has the same task head. `above_majority` is the paired difference.
    """

    task: str
    metric: str
    score: Estimate
    baselines: Mapping[str, Estimate]
    above_majority: Estimate
    n_skipped: int = 0

    @property
    def is_above_majority(self) -> bool:
        """Whether the model is clearly better than always predicting the most frequent label."""
        return self.above_majority.clearly_above(0.0)


@dataclass(frozen=True)
class LayerChange:
    """A layer's similarity of representations (1: unchanged), and the share of attention patterns that changed most."""

    layer: int
    similarity: Estimate
    untrained_similarity: Estimate | None
    pattern: Change | None

    @property
    def name(self) -> str:
        """`layer 8`, or `embeddings`."""
        return f"layer {self.layer}" if self.layer else "embeddings"


@dataclass(frozen=True)
class HeadChange:
    """A head's change in attention (0: unchanged) and what it did before and after.

    `different_head` is the divergence from another head of the layer. `pattern_before` and `pattern_after` are the most
    frequent classes of its patterns, `target` is the target whose share of attention changed most, and labels are those
    of analyses that label heads.
    """

    head: Head
    divergence: Estimate
    different_head: Estimate | None
    pattern_before: str
    pattern_after: str
    target: Change | None
    labels_before: tuple[str, ...]
    labels_after: tuple[str, ...]

    @property
    def pattern_change(self) -> str:
        """The most frequent pattern before and after, for a table."""
        if self.pattern_before == self.pattern_after:
            return f"{self.pattern_after} (same)"
        return f"{self.pattern_before} → {self.pattern_after}"


@dataclass(frozen=True)
class NeededHead:
    """What disabling a head costs the fine-tuned model: changes in score and loss, and p with Holm's correction."""

    head: Head
    score: Estimate
    loss: Estimate
    p: float

    @property
    def stands_out(self) -> bool:
        """Whether the loss is significantly higher without the head."""
        return self.p < SIGNIFICANCE_LEVEL and self.loss.value > 0


@dataclass(frozen=True)
class FinetuningChanges:
    """The difference between a model and its fine-tuned version on one corpus.

    `layers` and `heads` are the most changed ones first, `needed` the heads whose removal costs most. `obstacles` say
    why a part is missing. `results` are the results that the parts are read from.
    """

    model: str
    tuned: str
    corpus: str
    score: TaskScore | None = None
    layers: tuple[LayerChange, ...] = ()
    heads: tuple[HeadChange, ...] = ()
    needed: tuple[NeededHead, ...] = ()
    n_heads: int = 0
    n_ablated_heads: int = 0
    n_ablation_examples: int = 0
    unit: str = "tokens"
    obstacles: Mapping[str, str] = field(default_factory=dict[str, str])
    results: tuple[Result, ...] = field(default=(), repr=False)
    passes: tuple[ForwardPass, ...] = ()
    elapsed: Mapping[str, float] = field(default_factory=dict[str, float])
