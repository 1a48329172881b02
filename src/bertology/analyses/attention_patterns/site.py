"""The site with the pattern class of every attention pattern, by the rule and by the CNN."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Annotated, Literal

from bertology.analyses.attention_patterns.synthetic import PATTERN_CLASSES
from bertology.lazy import torch
from bertology.recording.sites import ReducedSite
from bertology.statistics.batch_features import MIN_MASS, SpecialTokens, token_runs

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attention_hook import LayerActivations
    from bertology.encoder.token_batch import TokenBatch

PatternClassifier = Literal["rule", "cnn"]
PatternClassifierOption = Annotated[
    PatternClassifier,
    "Classifier of attention patterns: the explicit `rule`, or the `cnn` trained on synthetic patterns.",
]
PATTERN_CLASSIFIERS: tuple[PatternClassifier, ...] = ("rule", "cnn")
MIN_TOKENS = 8
"""Smaller patterns are not classified: three diagonals are most of them."""


@cache
def pattern_class_site(special_tokens: SpecialTokens = "include") -> ReducedSite:
    """The site with the class of each attention pattern by both classifiers: (classifier, class), one-hot."""
    without_special = special_tokens == "exclude"

    def reduce(layer: LayerActivations, batch: TokenBatch, _: None) -> Tensor:
        attention = layer.attention
        classes = attention.new_full(
            (*attention.shape[:2], len(PATTERN_CLASSIFIERS), len(PATTERN_CLASSES)), float("nan")
        )
        for run in token_runs(batch):
            positions = torch.arange(run.length, device=attention.device)
            if without_special:
                positions = torch.cat([positions[part] for part in run.non_special] or [positions[:0]])
            if len(positions) >= MIN_TOKENS:
                classes[run.batch_rows] = _classify(attention[run.batch_rows][:, :, positions][:, :, :, positions])
        return classes

    return ReducedSite(
        "attention.pattern_classes" + ".non_special" * without_special,
        ("classifier", "pattern_class"),
        "class of each attention pattern, by a rule and by a CNN" + " (no special tokens)" * without_special,
        reduce,
        PATTERN_CLASSES,
        version=2,
    )


def _classify(attention: Tensor) -> Tensor:
    """(batch, head, classifier, class) from attention without padding; rows without mass count as uniform."""
    from bertology.analyses.attention_patterns.cnn_classifier import classify_by_cnn
    from bertology.analyses.attention_patterns.rule_classifier import classify_by_rule, pattern_strengths

    mass = attention.sum(-1, keepdim=True)
    attention = torch.where(mass > MIN_MASS, attention / mass.clamp(min=MIN_MASS), 1 / attention.shape[-1]).float()
    classes = [classify_by_rule(pattern_strengths(attention)), classify_by_cnn(attention)]
    return torch.nn.functional.one_hot(torch.stack(classes, -1), len(PATTERN_CLASSES)).to(attention.dtype)
