"""Attention by what a target is in the language: its part of speech, its role in the tree, Kovaleva's six features.

Pieces are what their word is; words are found by their characters, never by the strings of pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertology.corpus.grammar import ROLES, UNIVERSAL_TAGS, negates, role, universal_tag
from bertology.encoder.pieces import Special
from bertology.recording.annotation import word_layer
from bertology.recording.entry import Entry
from bertology.recording.sites import ReducedSite, reduction

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attend import LayerActivations
    from bertology.recording.frame import Frame

TAGS = tuple(f"to {tag}" for tag in UNIVERSAL_TAGS)
TO_ROLES = tuple(f"to {name}" for name in ROLES)
FEATURES = ("to [CLS]", "to [SEP]", "to noun", "to verb", "to pronoun", "to subject", "to object", "to negation")
_FEATURE_TAGS = (("NOUN", "PROPN"), ("VERB", "AUX"), ("PRON",))
_FEATURE_ROLES = ("subject", "object")


class _Prepared(NamedTuple):
    """`classes` is (batch, piece, class): what each piece is."""

    classes: Tensor


def tags_of(entry: Entry) -> list[str | None]:
    """The universal part of speech of each word; None where it is not annotated."""
    found = word_layer(entry, "pos", "xpos")
    return [None if tag is None else universal_tag(tag) or "X" for tag in found]


def roles_of(entry: Entry) -> list[str | None]:
    """The role of each word; None where it is not annotated."""
    return [None if relation is None else role(relation) for relation in word_layer(entry, "relations")]


def _one_hot(words: Sequence[str | None], names: Sequence[str], entry: Entry) -> NDArray[np.bool_]:
    """(piece, class) flags from the class of each word."""
    numbers = np.array([names.index(name) if name is not None else -1 for name in words] + [-1])
    return numbers[entry.pieces.word][:, None] == np.arange(len(names))  # pieces of no word take the last, none


def _features(entry: Entry) -> NDArray[np.bool_]:
    """(piece, feature) flags, in the order of `FEATURES`."""
    tags, roles = tags_of(entry), roles_of(entry)
    surfaces, marks = entry.input.words, word_layer(entry, "features")
    words = [[tag in some for tag in tags] for some in _FEATURE_TAGS]
    words += [[found == name for found in roles] for name in _FEATURE_ROLES]
    words.append([negates(word, mark) for word, mark in zip(surfaces, marks, strict=True)])
    flags = np.array([[*column, False] for column in words], np.bool_).T[entry.pieces.word]
    special = entry.pieces.special[:, None] == np.array([Special.CLS, Special.SEP])
    return np.concatenate([special, flags], axis=1)


def _prepared(classes: Callable[[Entry], NDArray[np.bool_]]) -> Callable[[Frame], _Prepared]:
    def prepare(frame: Frame) -> _Prepared:
        import torch

        found = [classes(entry) for entry in frame.entries]
        padded = np.zeros((len(found), frame.width, found[0].shape[1]), np.float32)
        for row, flags in enumerate(found):
            padded[row, : len(flags)] = flags
        return _Prepared(torch.from_numpy(padded).to(frame.device))

    return prepare


def _shares(layer: LayerActivations, frame: Frame, prepared: _Prepared) -> Tensor:
    """(batch, head, 2, class): attention between ordinary pieces to each class, and to all classes together."""
    import torch

    from bertology.recording.stretches import received_from_ordinary

    sums = received_from_ordinary(layer.attention, frame.stretches) @ prepared.classes.to(layer.attention.dtype)
    return torch.stack([sums, sums.sum(-1, keepdim=True).expand_as(sums)], 2)


TO_TAGS = reduction(
    "attention.targets.pos",
    axes=("sum_total", "tag"),
    labels=TAGS,
    about="attention between ordinary pieces by the target's part of speech",
    prepare=_prepared(lambda entry: _one_hot(tags_of(entry), UNIVERSAL_TAGS, entry)),
)(_shares)

TO_ROLE = reduction(
    "attention.targets.role",
    axes=("sum_total", "role"),
    labels=TO_ROLES,
    about="attention between ordinary pieces by the target's role in the dependency tree",
    prepare=_prepared(lambda entry: _one_hot(roles_of(entry), ROLES, entry)),
)(_shares)


@cache
def to_features(absent: float = float("nan")) -> ReducedSite:
    """The site of Kovaleva's features; `absent` stands for a sentence without the feature, always NaN for negation."""

    def strongest(layer: LayerActivations, frame: Frame, prepared: _Prepared) -> Tensor:
        """(batch, head, feature): the most attention a piece with the feature gets, mean over all source pieces."""
        import torch

        from bertology.recording.stretches import received

        mean = received(layer.attention, frame.stretches) / frame.lengths[:, None, None]
        has = prepared.classes.transpose(1, 2)[:, None].bool()
        values = mean[:, :, None].masked_fill(~has, -1.0).amax(-1)
        fill = torch.full((len(FEATURES),), absent, device=mean.device)
        fill[FEATURES.index("to negation")] = torch.nan
        return torch.where(has.any(-1), values, fill.to(mean.dtype))

    name = "attention.targets.features" + ("" if np.isnan(absent) else ".legacy")
    about = "mean attention to the piece with a linguistic feature that gets most"
    return ReducedSite(name, ("feature",), about, strongest, FEATURES, prepare=_prepared(_features))


def occurring(entries: Sequence[Entry], classes: Callable[[Entry], list[str | None]]) -> list[str]:
    """The measures whose class occurs in the entries."""
    found: set[Any] = {name for entry in entries for name in classes(entry)}
    return [f"to {name}" for name in found if name is not None]
