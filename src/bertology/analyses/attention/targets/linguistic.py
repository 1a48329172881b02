"""Attention by linguistic class of the target: part of speech, syntactic role, and the features of Kovaleva et al.

Tokens have the class of their word; words are found by their characters, never by the strings of tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Literal

import numpy as np

from bertology.arrays import BoolArray
from bertology.corpus.tagsets import ROLES, UNIVERSAL_TAGS, grammatical_role, is_negation, universal_tag
from bertology.encoder.token_batch import RecordedInput, TokenBatch, word_annotations
from bertology.encoder.tokens import SpecialToken
from bertology.lazy import torch
from bertology.recording.sites import ReducedSite, reduction
from bertology.statistics.rows import attention_received, attention_received_from_non_special

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attention_hook import LayerActivations

FEATURES = ("[CLS]", "[SEP]", "nouns", "verbs", "pronouns", "subjects", "objects", "negation")
_FEATURE_TAGS = (("NOUN", "PROPN"), ("VERB", "AUX"), ("PRON",))
_FEATURE_ROLES = ("subject", "object")
_ROLE_NAMES = {"subject": "subjects", "object": "objects"}


def tag_measure(tag: str) -> str:
    """The measure of attention to a part of speech."""
    return f"attention to {tag}"


def role_measure(role: str) -> str:
    """The measure of attention to a syntactic role."""
    return f"attention to {_ROLE_NAMES.get(role, role)}"


TAG_LABELS = tuple(map(tag_measure, UNIVERSAL_TAGS))
ROLE_LABELS = tuple(map(role_measure, ROLES))
FEATURE_LABELS = tuple(f"attention to {feature}" for feature in FEATURES)


def universal_tags(recorded_input: RecordedInput) -> list[str | None]:
    """The universal part of speech of each word; None if it is not annotated."""
    tags = word_annotations(recorded_input, "pos", "xpos")
    return [None if tag is None else universal_tag(tag) or "X" for tag in tags]


def grammatical_roles(recorded_input: RecordedInput) -> list[str | None]:
    """The syntactic role of each word; None if it is not annotated."""
    return [
        None if relation is None else grammatical_role(relation)
        for relation in word_annotations(recorded_input, "relations")
    ]


def _one_hot(
    word_classes: Sequence[str | None], class_names: Sequence[str], recorded_input: RecordedInput
) -> BoolArray:
    """(token, class) flags from the class of each word."""
    # Tokens outside words have word id -1, the last position, which has no class.
    ids = np.array([class_names.index(name) if name is not None else -1 for name in word_classes] + [-1])
    return ids[recorded_input.tokens.word_ids][:, None] == np.arange(len(class_names))


def _feature_flags(recorded_input: RecordedInput) -> BoolArray:
    """(token, feature) flags, in the order of `FEATURES`."""
    tags, roles = universal_tags(recorded_input), grammatical_roles(recorded_input)
    words, morphology = recorded_input.text.words, word_annotations(recorded_input, "morphology")
    columns = [[tag in feature_tags for tag in tags] for feature_tags in _FEATURE_TAGS]
    columns += [[role == feature_role for role in roles] for feature_role in _FEATURE_ROLES]
    columns.append([is_negation(word, features) for word, features in zip(words, morphology, strict=True)])
    flags = np.array([[*column, False] for column in columns], np.bool_).T[recorded_input.tokens.word_ids]
    special = recorded_input.tokens.special_kinds[:, None] == np.array([SpecialToken.CLS, SpecialToken.SEP])
    return np.concatenate([special, flags], axis=1)


def _prepare_classes(classes: Callable[[RecordedInput], BoolArray]) -> Callable[[TokenBatch], Tensor]:
    """A function that makes (batch, token, class) flags of a batch."""

    def prepare(batch: TokenBatch) -> Tensor:
        flags = [classes(recorded_input) for recorded_input in batch.inputs]
        padded = np.zeros((len(flags), batch.padded_length, flags[0].shape[1]), np.float32)
        for row, input_flags in enumerate(flags):
            padded[row, : len(input_flags)] = input_flags
        return torch.from_numpy(padded).to(batch.device)

    return prepare


def _attention_by_class(layer: LayerActivations, batch: TokenBatch, classes: Tensor) -> Tensor:
    """(batch, head, 2, class): attention among non-special tokens to each class, and to all classes together."""
    received = attention_received_from_non_special(layer.attention, batch)
    sums = received @ classes.to(received.dtype)
    return torch.stack([sums, sums.sum(-1, keepdim=True).expand_as(sums)], 2)


tag_target_site = reduction(
    "attention.targets.pos",
    axes=("sum_total", "tag"),
    labels=TAG_LABELS,
    description="attention among non-special tokens by the target's part of speech",
    prepare=_prepare_classes(lambda recorded: _one_hot(universal_tags(recorded), UNIVERSAL_TAGS, recorded)),
)(_attention_by_class)

role_target_site = reduction(
    "attention.targets.role",
    axes=("sum_total", "role"),
    labels=ROLE_LABELS,
    description="attention among non-special tokens by the target's syntactic role",
    prepare=_prepare_classes(lambda recorded: _one_hot(grammatical_roles(recorded), ROLES, recorded)),
)(_attention_by_class)


@cache
def feature_target_site(fill_value: float = float("nan")) -> ReducedSite:
    """The site of the linguistic features; `fill_value` is that of sentences without the feature (negation: NaN)."""

    def strongest_attention(layer: LayerActivations, batch: TokenBatch, classes: Tensor) -> Tensor:
        """(batch, head, feature): the highest attention to a token with the feature, averaged over source tokens."""
        mean = attention_received(layer.attention, batch) / batch.lengths[:, None, None]
        has_feature = classes.transpose(1, 2)[:, None].bool()
        values = mean[:, :, None].masked_fill(~has_feature, -1.0).amax(-1)
        fill = torch.full((len(FEATURES),), fill_value, device=mean.device)
        fill[FEATURES.index("negation")] = torch.nan
        return torch.where(has_feature.any(-1), values, fill.to(mean.dtype))

    return ReducedSite(
        "attention.targets.feature" + ("" if np.isnan(fill_value) else ".legacy"),
        ("feature",),
        "mean attention to the most attended token with a linguistic feature",
        strongest_attention,
        FEATURE_LABELS,
        prepare=_prepare_classes(_feature_flags),
    )


def occurring_labels(target_type: Literal["pos", "role"], inputs: Sequence[RecordedInput]) -> list[str]:
    """The labels of the site whose classes occur in the inputs."""
    classes, measure = (universal_tags, tag_measure) if target_type == "pos" else (grammatical_roles, role_measure)
    names = {name for recorded_input in inputs for name in classes(recorded_input) if name is not None}
    return [measure(name) for name in sorted(names)]
